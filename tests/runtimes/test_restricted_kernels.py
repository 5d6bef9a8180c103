"""Nodes that releases refuse or compute wrongly, or that only some of their forms have."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator
from support.runtimes import support_of

from opshift import DoesNotFit, fit
from opshift.model.files import model_of
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.check_support import RuntimeCheck
from opshift.runtimes.model_nodes import ModelNodes
from random_graphs.execution import run_in_onnxruntime

LATEST, OLD, BEFORE_SOFTCAP = "onnxruntime-1.31.1", "onnxruntime-1.23.2", "onnxruntime-1.26.0"
BEFORE_FLOOR, OPENVINO, TRACT = "onnxruntime-1.20.1", "openvino-2026.4.1", "tract-0.23.9"
TABLES = "int32[2, 4] i, int32[2, 4] s, float[6, {0}] w, float[5, 3] p, float[2, 3] g, float[3] a, float[3] b"
EMBED = "y, m = com.microsoft.EmbedLayerNormalization (i, s, w, p, g, a, b)"
HEADS = "float[1, 2, 4, 8] q, float[1, 2, 6, 8] k"
SOFTCAP = "y = Attention <softcap = 0.5> (q, k, k)"
AXES = "float[2, 3] x, int64[{}] axes"
SUM = "y = ReduceSum (x, axes)"
NORMALIZED = """
    two = Constant <value = float {2.0}> () e = Constant <value = float {1.0}> ()
    p = Pow (x, two) m = ReduceMean <axes = [-1]> (p) a = Add (m, e) r = Sqrt (a) d = Div (x, r)
    y = Mul (d, w)
"""
STRINGS = """
    n = Constant <value = int64 {2}> ()
    y, z = Loop (n, , x) <body = b (int64 i, bool c, float[2] s) => (bool o, float[2] t, string[1] u) {
        o = Identity (c) t = Identity (s) u = Constant <value_strings = ["a"]> ()
    }>
"""


def _model(inputs: str, nodes: str, opset: int, output: str = "y") -> onnx.ModelProto:
    imports = f'"" : {opset}, "com.microsoft" : 1, "ai.onnx.ml" : 3'
    return onnx.parser.parse_model(
        f"<ir_version: 8, opset_import: [{imports}]> g ({inputs}) => (float[] {output}) {{ {nodes} }}"
    )


def _verdict(model: onnx.ModelProto, runtime: str) -> str:
    nodes = ModelNodes(model_of(model.SerializeToString())[0], default_registry())
    support = RuntimeCheck(get_runtime(runtime)).check(nodes)
    if support.missing:
        return "does not run"
    return "may run" if support.uncertain else "wrong" if support.wrong else "runs"


@pytest.mark.parametrize(
    ("runtime", "inputs", "nodes", "opset", "verdict"),
    [
        (LATEST, TABLES.format(3), EMBED, 17, "runs"),
        (LATEST, TABLES.format("N"), EMBED, 17, "does not run"),
        (LATEST, "double[2, 3] x, float[3] s", "y = LayerNormalization (x, s)", 13, "runs"),
        (OLD, "double[2, 1] x, double[1] s", "y = LayerNormalization (x, s)", 13, "does not run"),
        (OLD, "double[2, 1] x, float[1] s", "y = LayerNormalization (x, s)", 13, "runs"),
        (OLD, "float[2, 3, 4] x", 'y = Einsum <equation = "ijk->kj"> (x)', 13, "may run"),
        (LATEST, "float[2, 3, 4] x", 'y = Einsum <equation = "ijk->kj"> (x)', 13, "runs"),
        (OLD, "float[0, 3] x, float[3, 2] z", 'y = Einsum <equation = "ij,jk->ik"> (x, z)', 13, "may run"),
        (OLD, "float[2, 3] x, float[3, 2] z", 'y = Einsum <equation = "ij,jk->ik"> (x, z)', 13, "runs"),
        (OLD, "float[2, 3] x, float[3] w", NORMALIZED, 17, "runs"),
        (OLD, "float[2, 1] x, float[1] w", NORMALIZED, 17, "may run"),
        (OLD, "float[2] x", STRINGS, 20, "may run"),
        (LATEST, "float[2] x", STRINGS, 20, "runs"),
        (OLD, "float[1, 1, 2, 2] x, int64 i", "y = MaxUnpool <kernel_shape = [2, 2]> (x, i)", 11, "runs"),
        (BEFORE_SOFTCAP, HEADS, SOFTCAP, 24, "wrong"),
        (BEFORE_SOFTCAP, HEADS, SOFTCAP, 25, "wrong"),  # the function body that it uses is wrong, too
        (LATEST, HEADS, SOFTCAP, 24, "runs"),
        (LATEST, HEADS, SOFTCAP, 25, "runs"),
        (OPENVINO, AXES.format(1), SUM, 13, "runs"),
        (OPENVINO, AXES.format("N"), SUM, 13, "does not run"),
        (OPENVINO, "float[2, 3, 4] x", "y = Softmax <axis = 1> (x)", 12, "wrong"),
        (OPENVINO, "float[2, 3] x", "y = Softmax <axis = 1> (x)", 12, "runs"),
        (OPENVINO, "float[2, 3] x", "y = Constant <value_floats = [0.5]> ()", 12, "does not run"),
        (OPENVINO, "float[2, 3] x", "y = Constant <value_floats = [0.5]> ()", 13, "runs"),
        (TRACT, "float[2, 3] x", "y = Swish <alpha = 0.5> (x)", 24, "wrong"),
        (TRACT, "float[2, 3] x", "y = Swish (x)", 24, "runs"),
        (TRACT, "float[1, 2] x", "y = Squeeze (x)", 11, "does not run"),
        (TRACT, "float[1, 2] x", "y = Squeeze (x)", 13, "runs"),
    ],
)
def test_predicts_nodes_that_releases_treat_differently(
    runtime: str, inputs: str, nodes: str, opset: int, verdict: str
) -> None:
    assert _verdict(_model(inputs, nodes, opset), runtime) == verdict


@pytest.mark.parametrize("form", ["initializer", "Constant"])
@pytest.mark.parametrize("opset", [7, 13])
def test_constants_without_elements_are_computed_where_a_runtime_reads_scalars(form: str, opset: int) -> None:
    model = _model(
        "float[2] x", "c = Constant <value = float[0, 2] {}> () h = Abs (c) y = Identity (h)", opset
    )
    if form == "initializer":
        tensor = model.graph.node.pop(0).attribute[0].t
        model.graph.initializer.add().CopyFrom(tensor)
        model.graph.initializer[0].name = "c"
    assert _verdict(model, OPENVINO) == "does not run"
    fitted = fit(model, OPENVINO).model
    assert _verdict(fitted, OPENVINO) == "runs"
    assert fitted.graph.node[0].op_type == "ConstantOfShape"
    feeds = {"x": np.zeros(2, np.float32)}
    assert run_in_onnxruntime(fitted, feeds)[0].shape == run_in_onnxruntime(model, feeds)[0].shape == (0, 2)


@pytest.mark.parametrize("form", ["initializer", "Constant"])
def test_empty_vectors_are_computed_although_they_are_read_as_sizes(form: str) -> None:
    model = _model("float[2] x", "c = Constant <value = int64[0] {}> () y = Cast <to = 1> (c)", 13)
    if form == "initializer":
        tensor = model.graph.node.pop(0).attribute[0].t
        model.graph.initializer.add().CopyFrom(tensor)
        model.graph.initializer[0].name = "c"
    fitted = fit(model, OPENVINO).model
    assert fitted.graph.node[0].op_type == "ConstantOfShape"
    feeds = {"x": np.zeros(2, np.float32)}
    assert run_in_onnxruntime(fitted, feeds)[0].shape == run_in_onnxruntime(model, feeds)[0].shape == (0,)


@pytest.mark.parametrize(
    ("element_type", "is_computed"), [("uint32", True), ("uint64", True), ("int32", False), ("uint8", False)]
)
def test_constants_without_elements_are_computed_where_a_runtime_reads_other_types(
    element_type: str, *, is_computed: bool
) -> None:
    constant = f"c = Constant <value = {element_type}[0, 2] {{}}> ()"
    nodes = f"{constant} h = Concat <axis = 0> (c, x) y = Cast <to = 1> (h)"
    model = _model(f"{element_type}[1, 2] x", nodes, 13)
    assert _verdict(model, TRACT) == ("does not run" if is_computed else "runs")
    fitted = fit(model, TRACT).model
    assert _verdict(fitted, TRACT) == "runs"
    assert fitted.graph.node[0].op_type == ("ConstantOfShape" if is_computed else "Constant")
    feeds = {"x": np.array([[3, 4]], element_type)}
    assert run_in_onnxruntime(fitted, feeds)[0].tolist() == [[3, 4]]


@pytest.mark.parametrize(
    ("element_type", "fits"),
    [("FLOAT8E4M3FN", True), ("FLOAT4E2M1", True), ("STRING", False), ("COMPLEX64", False)],
)
def test_constants_without_elements_of_any_type_are_computed_or_refused(
    element_type: str, *, fits: bool
) -> None:
    model = _model("float[2] x", "s = Shape (c) y = Cast <to = 1> (s)", 24)
    number = onnx.TensorProto.DataType.Value(element_type)
    model.graph.initializer.add(name="c", data_type=number, dims=[0, 2])
    if not fits:
        with pytest.raises(DoesNotFit, match="ConstantOfShape"):
            fit(model, OPENVINO)
        return
    fitted = fit(model, OPENVINO).model
    assert fitted.graph.node[0].op_type == "ConstantOfShape"
    assert ReferenceEvaluator(fitted).run(None, {"x": np.zeros(2, np.float32)})[0].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("runtime", "element_type"),
    [(TRACT, "BFLOAT16"), (TRACT, "FLOAT8E4M3FN"), (TRACT, "INT4"), (OPENVINO, "FLOAT8E4M3FNUZ")],
)
def test_types_that_a_runtime_cannot_read_are_widened(runtime: str, element_type: str) -> None:
    model = _model("float[2] x", "y = Abs (x)", 21)
    number = onnx.TensorProto.DataType.Value(element_type)
    model.graph.initializer.append(onnx.helper.make_tensor("unused", number, [2], [1, 2]))
    assert _verdict(model, runtime) == "does not run"
    assert _verdict(fit(model, runtime).model, runtime) == "runs"


TEXTS = """
    y, z = Loop (n, , x) <body = b (int64 i, bool c, float[2] s) => (bool o, float[2] t, string[1] u) {
        o = Identity (c) t = Identity (s) u = Identity (a)
    }>
"""
ENCODED = "y = ai.onnx.ml.OneHotEncoder <cats_int64s = [0, 1, 2]> (x)"
POOLED = """
    a = com.microsoft.QLinearAveragePool <kernel_shape = [3], strides = [3], ceil_mode = 1, pads = {}> (
        x, s, z, s, z)
    y = Cast <to = 1> (a)
"""
WIDENED = "a = Cast <to = 7> (c) b = Cast <to = 7> (d)"
CONSTANT = "b = Constant <value_ints = [{}]> ()"
LARGEST = "m = {} (a, b) y = Cast <to = 1> (m)"


@pytest.mark.parametrize(
    ("inputs", "nodes", "warned", "unwarned"),
    [
        ("float[2] x, float[2] w", "y = LayerNormalization (x, w)", ["1.20.1", "1.26.0"], ["1.27.0"]),
        ("int64[2] a, int64[2] b", LARGEST.format("Max"), ["1.21.1", "1.31.1"], ["1.20.1", "1.32.0"]),
        ("int64[2] a, int64[2] b", LARGEST.format("Min"), ["1.21.1", "1.31.1"], ["1.20.1", "1.32.0"]),
        ("int32[2] a, int32[2] b", LARGEST.format("Max"), [], ["1.31.1"]),
        ("int64[2] a, float b", "m = Max (a) y = Cast <to = 1> (m)", [], ["1.31.1"]),
        ("float[N] c, float[M] d", f"a = Shape (c) b = Shape (d) {LARGEST.format('Max')}", [], ["1.31.1"]),
        ("int32[2] c, int32[2] d", WIDENED + LARGEST.format("Min"), [], ["1.31.1"]),
        ("int64[2] a", CONSTANT.format(9) + LARGEST.format("Max"), ["1.31.1"], []),
        ("float[N] c", "a = Shape (c)" + CONSTANT.format(9) + LARGEST.format("Max"), [], ["1.31.1"]),
        ("float[N] c", "a = Shape (c)" + CONSTANT.format(2**31) + LARGEST.format("Max"), ["1.31.1"], []),
        ("float[2] x, int64 n, string[1] a", TEXTS, ["1.28.0", "1.31.1"], []),
        ("float[] x", ENCODED, ["1.16.3", "1.23.2"], ["1.24.4", "1.31.1"]),
        ("float[2] x", ENCODED, [], ["1.23.2"]),
    ],
)
def test_warns_about_kernels_that_compute_some_values_wrongly(
    inputs: str, nodes: str, warned: list[str], unwarned: list[str]
) -> None:
    model = _model(inputs, nodes, 17)
    for release in (*warned, *unwarned):
        assert bool(support_of(model, f"onnxruntime-{release}").warnings) == (release in warned), release


@pytest.mark.parametrize(
    ("runtime", "pads", "verdict"),
    [
        (BEFORE_FLOOR, "[1, 2]", "wrong"),
        (BEFORE_FLOOR, "[0, 0]", "runs"),
        ("onnxruntime-1.21.1", "[1, 2]", "runs"),
    ],
)
def test_pools_with_windows_in_the_padding_at_the_end(runtime: str, pads: str, verdict: str) -> None:
    nodes = POOLED.format(pads)
    assert _verdict(_model("uint8[1, 3, 4] x, float s, uint8 z", nodes, 16), runtime) == verdict


@pytest.mark.parametrize(
    ("key", "keys", "verdict"),
    [
        ("[1, 1, 5, 8]", 5, "wrong"),
        ("[1, 1, 1, 8]", 1, "runs"),
        ("[1, 5, 8]", 5, "wrong"),
        ("[1, 1, 8]", 1, "runs"),
    ],
)
def test_masks_of_keys_that_are_not_as_many_as_queries(key: str, keys: int, verdict: str) -> None:
    inputs = f"float[1, 1, 8] q, float{key} k, int32[1, 1, {keys}] m"
    nodes = "y = com.microsoft.MultiHeadAttention <num_heads = 1> (q, k, k, , m)"
    assert _verdict(_model(inputs, nodes, 17), BEFORE_FLOOR) == verdict
