"""Rules for the shapes of inputs, and for declared shapes that contradict inference."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from support.checker_cases.case import Case, Change, parse_text, set_field, value

if TYPE_CHECKING:
    import onnx


def node_case(what: str, inputs: str, call: str, wrong: str, opset: int = 21) -> Case:
    """Return a case of `shape.inputs`; `wrong` replaces the inputs of the model."""
    text = f'<ir_version: 10, opset_import: ["": {opset}]> g ({{}}) => (float[?] y) {{{{ {call} }}}}'

    def change(model: Any) -> None:
        for entry, shape in zip(model.graph.input, wrong.split(), strict=True):
            set_shape(entry, shape)

    return Case("shape.inputs", text.format(inputs), without_output_shape(change), what)


def set_shape(entry: Any, shape: str) -> None:
    """Set the shape of a ValueInfoProto to sizes and names such as `2,N`; `-` stands for no dimensions."""
    dims = [] if shape == "-" else shape.split(",")
    made = value("", entry.type.tensor_type.elem_type, [int(dim) if dim.isdigit() else dim for dim in dims])
    entry.type.tensor_type.shape.CopyFrom(
        type(entry.type.tensor_type.shape).FromString(made.type.tensor_type.shape.SerializeToString())
    )


def without_output_shape(change: Change) -> Change:
    """Return a change, after which the model does not declare the shape of its output."""

    def changed(model: Any) -> None:
        model.graph.output[0].type.tensor_type.ClearField("shape")
        change(model)

    return changed


def constant_case(what: str, text: str, position: int, wrong: list[int]) -> Case:
    """Return a case of `shape.inputs` with other elements of an initializer."""
    change = set_field(f"graph.initializer[{position}].int64_data", wrong)
    return Case("shape.inputs", text, without_output_shape(change), what)


STALE = "g (float[n, 3] x) => (float[n, 3] y) <float[n, 3] z> { z = Relu(x)  y = Neg(z) }"
FLIPPED = "g (float[2, 3] x) => (float[3, 2] y) { y = Transpose(x) }"
DOUBLED = "g (float[N, 3] x) => (float[M, 3] y) { y = Concat <axis = 0> (x, x) }"
FIXED = "g (float[N, 3] x) => (float[M] y) { y = Shape(x) }".replace("float[M] y", "int64[M] y")
SEQUENCE = "g (seq(float[N]) q, float[2] x) => (int64 n, int64[M] y) { n = SequenceLength(q)  y = Shape(x) }"
TWO = """g (float[2] a, float[3] b) => (float[K] y, float[L] z) { y = Relu(a)  z = Relu(b) }"""
OUTPUT = "graph.output[0].type.tensor_type.shape.dim[0]"
SECOND = "graph.output[1].type.tensor_type.shape.dim[0]"


def defaults() -> onnx.ModelProto:
    """Return a model of two inputs with defaults and variable dimensions."""
    model = parse_text("g (float[1,2] a = {1,2}, float[2] b = {1,2}) => (float[?,2] y) { y = Add(a, b) }")
    for entry, name in zip(model.graph.input, "KL", strict=True):
        entry.type.tensor_type.shape.dim[0].dim_param = name
    return model


def stale(*dims: int | str) -> Callable[[Any], None]:
    """Declare dimensions for the value `z`."""

    def change(model: Any) -> None:
        del model.graph.value_info[:]
        model.graph.value_info.add().MergeFromString(value("z", shape=[*dims]).SerializeToString())

    return change


CASES = (
    Case("shape.inferred", FLIPPED, set_field("graph.output[0].type.tensor_type.shape.dim[0].dim_value", 2)),
    Case("shape.inferred", STALE, stale(3), "the rank of a value"),
    Case("shape.variable", STALE, stale(2, 3), "a number that varies"),
    Case("shape.variable", FIXED, set_field(f"{OUTPUT}.dim_param", "N"), "a variable that does not vary"),
    Case("shape.variable", SEQUENCE, set_field(f"{SECOND}.dim_param", "N"), "a variable of a sequence"),
    Case("shape.variable-value", DOUBLED, set_field(f"{OUTPUT}.dim_param", "N"), "a multiple"),
    Case(
        "shape.variable-value",
        TWO,
        set_field("graph.output[1].type.tensor_type.shape.dim[0].dim_param", "K"),
        "two numbers",
    ),
    Case(
        "shape.variable-value",
        defaults,
        set_field("graph.input[1].type.tensor_type.shape.dim[0].dim_param", "K"),
        "of initializers",
    ),
    node_case("Add", "float[N,3] x, float[3] w", "y = Add(x, w)", "N,3 4"),
    node_case("Where", "bool[2,1] c, float[3] x", "y = Where(c, x, x)", "2,2 3"),
    node_case("Max of several", "float[2,3] x, float[1,3] w", "y = Max(x, x, w)", "2,3 2,4"),
    node_case("MatMul", "float[N,3] x, float[3,4] w", "y = MatMul(x, w)", "N,3 4,3"),
    node_case("MatMul of a vector", "float[3] x, float[2,3,4] w", "y = MatMul(x, w)", "4 2,3,4"),
    node_case("MatMul of batches", "float[1,2,3] x, float[5,3,4] w", "y = MatMul(x, w)", "6,2,3 5,3,4"),
    node_case("MatMul of a scalar", "float[3] x, float[3] w", "y = MatMul(x, w)", "- 3"),
    node_case("Gemm", "float[3,N] x, float[4,3] w", "y = Gemm <transA = 1, transB = 1> (x, w)", "2,N 4,3"),
    node_case("Gemm of vectors", "float[2,3] x, float[3,4] w", "y = Gemm(x, w)", "2,3 3"),
    node_case("bias of Gemm", "float[2,3] x, float[3,4] w, float[4] b", "y = Gemm(x, w, b)", "2,3 3,4 3"),
    node_case("Concat", "float[2,N] x, float[2,3] w", "y = Concat <axis = -1> (x, w)", "2,N 3,3"),
    node_case("rank of Concat", "float[2,3] x, float[1,3] w", "y = Concat <axis = 0> (x, w)", "2,3 3"),
    node_case(
        "channels of Conv",
        "float[1,4,8,8] x, float[6,2,3,3] w",
        "y = Conv <group = 2> (x, w)",
        "1,3,8,8 6,2,3,3",
    ),
    node_case(
        "groups of Conv",
        "float[1,4,8,8] x, float[6,2,3,3] w",
        "y = Conv <group = 2> (x, w)",
        "1,4,8,8 5,2,3,3",
    ),
    node_case("rank of Conv", "float[1,4,8,8] x, float[6,4,3,3] w", "y = Conv(x, w)", "1,4,8 6,4,3,3"),
    node_case(
        "kernel of Conv",
        "float[1,4,8,8] x, float[6,4,3,3] w",
        "y = Conv <kernel_shape = [3,3]> (x, w)",
        "1,4,8,8 6,4,3,5",
    ),
    node_case("ConvTranspose", "float[1,4,8] x, float[4,2,3] w", "y = ConvTranspose(x, w)", "1,2,8 4,2,3"),
    node_case("rank of a pool", "float[1,4,8,8] x", "y = MaxPool <kernel_shape = [2,2]> (x)", "1,4,8"),
    node_case(
        "BatchNormalization",
        "float[N,3,8] x, float[3] s",
        "y = BatchNormalization(x, s, s, s, s)",
        "N,3,8 4",
    ),
    node_case("Transpose", "float[2,3,4] x", "y = Transpose <perm = [0,2,1]> (x)", "2,3"),
    constant_case(
        "Reshape", "g (float[2,6] x) => (float[3,4] y) <int64[2] s = {3,4}> { y = Reshape(x, s) }", 0, [3, 5]
    ),
    constant_case(
        "Reshape with an inferred size",
        "g (float[2,6] x) => (float[3,4] y) <int64[2] s = {3,-1}> { y = Reshape(x, s) }",
        0,
        [5, -1],
    ),
    constant_case(
        "Reshape with a copied size",
        "g (float[2,6] x) => (float[2,3,2] y) <int64[3] s = {0,3,2}> { y = Reshape(x, s) }",
        0,
        [3, 2, 0],
    ),
    constant_case(
        "Expand", "g (float[2,1] x) => (float[2,6] y) <int64[2] s = {2,6}> { y = Expand(x, s) }", 0, [3, 6]
    ),
    constant_case(
        "Squeeze", "g (float[2,1] x) => (float[2] y) <int64[1] a = {1}> { y = Squeeze(x, a) }", 0, [0]
    ),
    constant_case(
        "sum of Split",
        "g (float[6] x) => (float[2] y, float[4] z) <int64[2] s = {2,4}> { y, z = Split <axis = 0> (x, s) }",
        0,
        [2, 3],
    ),
)
