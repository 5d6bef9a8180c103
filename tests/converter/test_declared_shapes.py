"""Shapes that the caller declares make conversions possible, and appear in the result."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from support.execution import Feeds, assert_equal, run

import opshift
from opshift.analysis.reach import reach
from opshift.converter.arguments import ShapesLike
from opshift.converter.refusals import Refusal, group_refusals
from opshift.model.errors import UnknownShape
from opshift.model.graphs import nested_containers
from opshift.model.types import declared_dims

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)

REVERSE = """
    <ir_version: 8, opset_import: ["" : 16]>
    main (float[T, B, 4] x, int64[B] lengths) => (float[T, B, 4] y) {
        h = Relu (x)
        y = ReverseSequence (h, lengths)
    }
"""

SOFTMAX_FORMS = {
    "fed": """
        <ir_version: 8, opset_import: ["" : 13]>
        main (float x, int64[K] s) => (float y) {
            h = Relu (x)
            y = Softmax <axis = 1> (h)
        }
    """,
    "in a branch": """
        <ir_version: 8, opset_import: ["" : 13]>
        main (float x, int64[K] s) => (float y) {
            yes = Constant <value_ints = [1]> ()
            one = Cast <to = 9> (yes)
            y = If (one) <
                then_branch = yes () => (float a) { a = Softmax <axis = 1> (x) },
                else_branch = no () => (float b) { c = Neg (x) b = Softmax <axis = 1> (c) }
            >
        }
    """,
    "in a function": """
        <ir_version: 8, opset_import: ["" : 13, "local" : 1]>
        main (float x, int64[K] s) => (float y) { y = local.normalize (x) }
        <domain: "local", opset_import: ["" : 13]>
        normalize (v) => (w) { u = Abs (v) w = Softmax <axis = 1> (u) }
    """,
}

COMPUTED = """
    <ir_version: 8, opset_import: ["" : 13]>
    main (float[N] x, int64[K] s) => (float y) {
        h = Reshape (x, s)
        y = Softmax <axis = 1> (h)
    }
"""


def parse(text: str, *unknown: str) -> onnx.ModelProto:
    """Parse a model and clear unknown shapes: the parser reads types without dimensions as scalars."""
    model = onnx.parser.parse_model(text)
    for graph in nested_containers([model.graph]):
        for value in (*graph.input, *graph.output):
            if value.name in unknown:
                value.type.tensor_type.ClearField("shape")
    return model


def input_dims(model: Any) -> dict[str, Any]:
    return {value.name: declared_dims(value.type) for value in model.graph.input}


def refusal(model: onnx.ModelProto, target: int, **arguments: Any) -> Refusal:
    (found,) = opshift.plan_version(model, target, **arguments).refusals
    return found


SHAPES: list[ShapesLike] = [{"x": (2, 3, 4)}, {"x": "2,?, ?", "lengths": [3]}, ["x=2,B,4", "lengths=3"]]


@pytest.mark.parametrize("shapes", SHAPES)
def test_sizes_make_conversion_possible(shapes: ShapesLike) -> None:
    model = parse(REVERSE)
    assert "--shape x=..." in refusal(model, 9).remedy
    result, report = opshift.convert(model, 9, shapes=shapes)
    feeds = {"x": X, "lengths": np.array([1, 2, 2])}
    assert_equal(run(result, feeds), run(model, feeds))
    assert input_dims(result) == {"x": (2, 3, 4), "lengths": (3,)}
    assert report.repairs[0] == (
        "input 'x' is declared as [2, 3, 4] instead of [T, B, 4]; the result may require this shape"
    )
    assert input_dims(model)["x"] == ("T", "B", 4)


@pytest.mark.parametrize("form", SOFTMAX_FORMS)
@pytest.mark.parametrize("inplace", [False, True])
def test_rank_makes_conversion_possible(form: str, inplace: bool) -> None:
    model = parse(SOFTMAX_FORMS[form], "x", "y", "a", "b")
    feeds = {"x": X, "s": np.array([1])}
    expected = run(model, feeds)
    for each in opshift.plan_version(model, 11).refusals:
        assert each.remedy.startswith("declare the shape of 'x' with --shape x=... (shapes= in Python)")
    result = opshift.convert_version(model, 11, shapes={"x": (None, None, None)}, inplace=inplace)
    assert (result is model) == inplace
    assert_equal(run(result, feeds), expected)
    assert input_dims(result)["x"] == (None, None, None)


def test_shape_of_computed_value_is_declared_in_value_info() -> None:
    model = parse(COMPUTED, "y")
    assert refusal(model, 11).remedy.startswith("declare the shape of 'h' with --shape h=...")
    result: Any
    result, report = opshift.convert(model, 11, shapes={"h": ("A", "B")})
    feeds = {"x": X.reshape(-1), "s": np.array([4, 6])}
    assert_equal(run(result, feeds), run(model, feeds))
    (info,) = result.graph.value_info
    assert (info.name, declared_dims(info.type)) == ("h", ("A", "B"))
    assert "'h' is declared as [A, B]" in report.repairs


def test_remedy_names_values_behind_several_nodes_and_the_alternative() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 9]>
        main (bool[N] c, string p, string q) => (string y) {
            a = Identity (p)
            b = Identity (q)
            y = Where (c, a, b)
        }
    """
    remedy = refusal(parse(text, "p", "q", "y"), 8).remedy
    assert remedy == (
        "declare the shape of 'p' and 'q' with --shape p=... (shapes= in Python), "
        "or convert to opset 9 or later, or try --infer-shapes (infer_shapes=True)"
    )


def test_remedy_follows_computed_sizes_to_their_input() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 13]>
        main (float[N, M] x, int64[K] axes) => (float y) {
            sizes = Shape (x)
            more = Concat <axis = 0> (sizes, sizes)
            h = ConstantOfShape (more)
            y = Squeeze (h, axes)
        }
    """
    remedy = refusal(parse(text, "y"), 11).remedy
    assert remedy.startswith("declare the shape of 'axes' [K] with --shape axes=... (shapes= in Python)")
    text = text.replace("float[N, M] x", "float x").replace("Squeeze (h, axes)", "Softmax <axis = 1> (h)")
    remedy = refusal(parse(text, "x", "y"), 11).remedy
    assert remedy.startswith("declare the shape of 'x' with --shape x=... (shapes= in Python)")


def test_remedy_names_input_of_split_to_sequence() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 13]>
        main (float[N, 2] x) => (float[M, 2] y) {
            s = SplitToSequence (x)
            y = ConcatFromSequence <axis = 0> (s)
        }
    """
    model = parse(text)
    remedies = {each.remedy for each in opshift.plan_version(model, 10).refusals}
    assert "declare the shape of 'x' [N, 2] with --shape x=... (shapes= in Python)" in remedies
    result = opshift.convert_version(model, 10, shapes={"x": (3, 2)})
    feeds = {"x": X.reshape(12, 2)[:3]}
    assert_equal(run(result, feeds), run(model, feeds))


@pytest.mark.parametrize("op_type", ["Squeeze", "Unsqueeze"])
def test_length_of_computed_axes_makes_conversion_possible(op_type: str) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["" : 13]>
        main (float[A, B, C] x, int64[K] axes) => (float y) {{ y = {op_type} (x, axes) }}
    """
    model = parse(text, "y")
    assert "'axes' [K]" in refusal(model, 11).remedy
    result = opshift.convert_version(model, 11, shapes={"axes": (1,)})
    feeds = {"x": X[:1], "axes": np.array([0])}
    assert_equal(run(result, feeds), run(model, feeds))


def test_size_makes_computed_k_possible() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 11]>
        main (float[N, M] x, int64[1] k) => (float[N, K] values, int64[N, K] indices) {
            values, indices = TopK <axis = 1> (x, k)
        }
    """
    model = parse(text)
    assert refusal(model, 9).remedy.endswith("make K a constant, or try --infer-shapes (infer_shapes=True)")
    result = opshift.convert_version(model, 9, shapes={"x": (None, 12)})
    feeds = {"x": X.reshape(2, 12), "k": np.array([5])}
    assert_equal(run(result, feeds), run(model, feeds))


@pytest.mark.parametrize(
    ("call", "target", "shapes", "labels"),
    [
        ("Trilu (x)", 6, {"x": (3, 4)}, "'x' [N, C]"),
        ("EyeLike <k = 1> (x)", 6, {"x": (3, 4)}, "'x' [N, C]"),
        ("GatherElements (x, j)", 6, {"x": (3, 4), "j": (3, 4)}, "'j' [K, L]"),
        ("GatherElements (x, i)", 6, {"x": (3, 4), "i": (3, 4)}, "'i' [N, C]"),
        ("InstanceNormalization (z, s, s)", 4, {"z": (2, 2, 3), "s": (2,)}, "'z' [N, C, W]"),
        ("InstanceNormalization (z, s, u)", 4, {"z": (2, 2, 3), "s": (2,), "u": (2,)}, "'z' [N, C, W]"),
    ],
    ids=["Trilu", "EyeLike", "other names", "shared names", "subset of the names", "three inputs"],
)
def test_remedy_names_inputs_if_emitted_nodes_depend_on_their_sizes(
    call: str, target: int, shapes: dict[str, tuple[int, ...]], labels: str
) -> None:
    """Emitted loops have an unknown number of iterations, and emitted nodes may need constant shapes.

    Inputs are not named if all their dimensions are dimensions of a named input.
    """
    types = {"x": "float[N, C]", "i": "int64[N, C]", "z": "float[N, C, W]", "s": "float[C]"}
    types |= {"j": "int64[K, L]", "u": "float[C]"}
    inputs = ", ".join(f"{types[name]} {name}" for name in shapes)
    header = '<ir_version: 8, opset_import: ["" : 14]>'
    model = parse(f"{header} g ({inputs}) => (float y) {{ y = {call} }}", "y")
    remedy = refusal(model, target).remedy
    assert remedy.startswith(f"declare the shape of {labels} with --shape ")
    # The emitted nodes of GatherElements read only the sizes of the indices.
    assert "or choose another target" in remedy or call.startswith("GatherElements")
    named = {name: shape for name, shape in shapes.items() if f"{name!r} [" in labels}
    older = opshift.convert_version(model, target, shapes=named)
    feeds: Feeds = {
        name: (np.arange(np.prod(shape)).reshape(shape) % 3).astype(np.int64 if name in "ij" else np.float32)
        for name, shape in shapes.items()
    }
    assert_equal(run(opshift.convert_version(older, 8), feeds), run(model, feeds))


def test_remedy_of_several_nodes_with_constant_shapes() -> None:
    """The group of the nodes has the remedy of one node, which names its inputs."""
    text = """
        <ir_version: 8, opset_import: ["" : 14]>
        main (float[N, C, W] x, float[C] s, float[M, D, V] z, float[D] u) => (float a, float b) {
            a = InstanceNormalization (x, s, s)
            b = InstanceNormalization (z, u, u)
        }
    """
    model = parse(text, "a", "b")
    (group,) = group_refusals(opshift.plan_version(model, 4).refusals)
    assert (group.code, len(group.refusals)) == ("unknown.shape", 2)
    assert group.remedy.startswith("declare the shape of 'x' [N, C, W] with --shape x=...")
    shapes = {"x": (2, 2, 3), "z": (3, 4, 2)}
    older = opshift.convert_version(model, 4, shapes=shapes)
    feeds: Feeds = {
        name: RANDOM.standard_normal(shape).astype(np.float32)
        for name, shape in {**shapes, "s": (2,), "u": (4,)}.items()
    }
    assert_equal(run(opshift.convert_version(older, 8), feeds), run(model, feeds))


LOOP = """
    <ir_version: 8, opset_import: ["" : 14]>
    main (float[N, C] x, int64 m, bool c) => (float y) {{
        h = Loop (m, c, x) <body = b (int64 i, bool d, float[{declared}] s) => (bool e, float t) {{
            e = Identity (d)
            t = {inner}
        }}>
        y = {outer} (h)
    }}
"""

LOOPS: Mapping[str, tuple[str, str, str, str, Mapping[str, Any]]] = {
    "body, other names": ("A, B", "Trilu (s)", "Neg", "choose another target", {}),
    "body, shared names": ("N, C", "Trilu (s)", "Neg", "declare the shape of 'x' [N, C]", {"x": (3, 4)}),
    "result, other names": ("A, B", "Abs (s)", "Trilu", "declare the shape of 'h'", {"h": (3, 4)}),
    "result, shared names": ("N, C", "Abs (s)", "Trilu", "declare the shape of 'x' [N, C]", {"x": (3, 4)}),
    "result, known body": ("3, 4", "Abs (s)", "Trilu", "declare the shape of 'x' [N, C]", {"x": (3, 4)}),
    "result, outer value": ("A, B", "Abs (x)", "Trilu", "declare the shape of 'x' [N, C]", {"x": (3, 4)}),
}


@pytest.mark.parametrize(("declared", "inner", "outer", "remedy", "shapes"), LOOPS.values(), ids=LOOPS)
def test_remedy_of_loop_names_a_value_that_determines_the_shape(
    declared: str, inner: str, outer: str, remedy: str, shapes: Mapping[str, Any]
) -> None:
    """Loop-carried values may change their shapes, so the shape of the argument alone is not enough."""
    model = parse(LOOP.format(declared=declared, inner=inner, outer=outer), "y", "t")
    assert refusal(model, 6).remedy.startswith(remedy)
    if shapes:
        older = opshift.convert_version(model, 6, shapes=shapes)
        feeds: Feeds = {"x": X[0], "m": np.array(2), "c": np.array(True)}
        assert_equal(run(opshift.convert_version(older, 8), feeds), run(model, feeds))


def test_remedy_quotes_names_for_the_shell() -> None:
    model = parse(REVERSE)
    model.graph.input[0].name = model.graph.node[0].input[0] = "my input"
    assert "with --shape 'my input=...' (shapes= in Python)" in refusal(model, 9).remedy


def test_remedy_shows_the_declared_shape() -> None:
    remedy = refusal(parse(REVERSE), 9, infer_shapes=True).remedy
    assert remedy == "declare the shape of 'x' [T, B, 4] with --shape x=... (shapes= in Python)"


def test_dimensions_keep_denotations() -> None:
    model = parse(REVERSE)
    model.graph.input[0].type.tensor_type.shape.dim[1].denotation = "DATA_BATCH"
    result = opshift.convert_version(model, 17, shapes={"x": (2, 3, 4)})
    assert result.graph.input[0].type.tensor_type.shape.dim[1].denotation == "DATA_BATCH"


def test_file_is_converted_with_declared_shape_and_back(tmp_path: Path) -> None:
    onnx.save(parse(REVERSE), tmp_path / "in.onnx")
    report = opshift.convert_file(
        tmp_path / "in.onnx", tmp_path / "out.onnx", 9, shapes={"x": (2, 3, 4)}, reversible=True
    )
    assert report.repairs
    result = onnx.load(tmp_path / "out.onnx")
    assert input_dims(result)["x"] == (2, 3, 4)
    opshift.verify(tmp_path / "in.onnx", tmp_path / "out.onnx")
    back = opshift.convert_version(result, 16)
    assert [each.op_type for each in back.graph.node] == ["Relu", "ReverseSequence"]


def test_verification_feeds_declared_sizes() -> None:
    model = parse(REVERSE)
    result = opshift.convert_version(model, 9, shapes={"x": (5, 7, 4)})
    (x, lengths) = opshift.verify(model, result, {"lengths": np.arange(1, 6).repeat(2)[:7]}).inputs
    assert (x.shape, lengths.shape) == ((5, 7, 4), (7,))


def test_reach_uses_declared_shapes() -> None:
    model = parse(REVERSE)
    assert reach(model).lowest == 10
    assert reach(model, shapes=["x=2,3,4"]).lowest < 10


ERRORS: Mapping[str, tuple[ShapesLike, str]] = {
    "unknown name": ({"leng": (3,)}, "the model has no input or value 'leng'; did you mean 'lengths'?"),
    "number": ({"x": (2, 3, 5)}, "shape [2, 3, 5] contradicts the declared shape [T, B, 4] of 'x'"),
    "name for a size": (
        {"x": (2, 3, "C")},
        "shape [2, 3, C] contradicts the declared shape [T, B, 4] of 'x'",
    ),
    "rank": ({"x": (2, 3)}, "shape [2, 3] contradicts the declared shape [T, B, 4] of 'x'"),
    "two sizes": (
        {"x": (2, 3, 4), "lengths": (5,)},
        "dimension 'B' would be both 5 and 3, because of 'x'",
    ),
    "two names, one of a computed value": (
        {"x": ("A", None, None), "y": ("C", None, None)},
        "dimension 'T' would be both A and C, because of 'y'",
    ),
    "repeated and new name": (
        {"x": ("B", "T", 4), "lengths": ("B",)},
        "dimension 'B' would be both T and B, because of 'lengths'",
    ),
    "initializer": ({"w": (4,)}, "'w' is an initializer, so its shape cannot be declared"),
    "sequence": ({"q": (4,)}, "'q' has the type seq(tensor(float)), which has no shape"),
    "computed number": ({"h": (2, 3, 5)}, "shape [2, 3, 5] contradicts the inferred shape [?, ?, 4] of 'h'"),
    "computed symbol": ({"h": (2, 3, 4)}, "shape [2, 3, 4] contradicts the inferred shape [?, ?, 4] of 'h'"),
    "untyped value": ({"f": (2,)}, "the element type of 'f' is unknown"),
    "negative": ({"x": (2, 3, -4)}, "-4 is not a dimension of 'x'"),
    "negative text": (["x=2,3,-4"], "'-4' is not a dimension of 'x'"),
    "empty dimension": (["x=2,,4"], "'' is not a dimension of 'x'"),
    "float": ({"x": (2, 3.5, 4)}, "3.5 is not a dimension of 'x'"),
    "bool": ({"x": (True, 3, 4)}, "True is not a dimension of 'x'"),
    "huge": ([f"x={'9' * 5000},3,4"], f"'{'9' * 5000}' is not a dimension of 'x'"),
    "beyond int64": ({"x": (2**62, 3, 4)}, f"{2**62} is not a dimension of 'x'"),
    "many": ({"x": (1,) * 65}, "the shape of 'x' has 65 dimensions, more than 64"),
    "no shape": ({"x": 5}, "5 is not a shape of 'x'"),
    "no equals sign": (["x"], "'x' is not a shape"),
    "no name": (["=2"], "'=2' is not a shape"),
    "twice": (["x=2,3,4", "x=2,2,4"], "'x' has two shapes"),
}

WITH_OTHER_VALUES = """
    <ir_version: 8, opset_import: ["" : 16, "acme" : 1]>
    main (float[T, B, 4] x, int64[B] lengths, seq(float[N]) q) => (float[T, B, 4] y)
    <float[2] w = {1, 2}> {
        h = Relu (x)
        f = acme.Mystery (h, w)
        y = ReverseSequence (h, lengths)
    }
"""


@pytest.mark.parametrize("name", ERRORS)
def test_refuses_shape(name: str) -> None:
    shapes, reason = ERRORS[name]
    model = parse(WITH_OTHER_VALUES)
    before = model.SerializeToString(deterministic=True)
    with pytest.raises(opshift.UsageError) as caught:
        opshift.convert_version(model, 17, shapes=shapes, inplace=True)
    assert caught.value.reason == reason
    assert caught.value.remedy
    assert pickle.loads(pickle.dumps(caught.value)).reason == reason
    assert model.SerializeToString(deterministic=True) == before


def test_error_of_unknown_shape_pickles() -> None:
    error = UnknownShape("reason", "x", otherwise="wait")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.values, copy.otherwise, str(copy)) == (("x",), "wait", str(error))
    assert str(error) == "reason (declare the shape of 'x', or wait)"


@pytest.mark.full
def test_remedies_are_found_in_linear_time() -> None:
    nodes = [onnx.helper.make_node("Softmax", [f"v{i}"], [f"v{i + 1}"], axis=1) for i in range(5_000)]
    values = [onnx.helper.make_tensor_value_info(name, 1, None) for name in ("v0", "v5000")]
    graph = onnx.helper.make_graph(nodes, "g", values[:1], values[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)])
    refusals = opshift.plan_version(model, 11).refusals
    assert len(refusals) == 5_000
    assert all("'v0'" in each.remedy for each in refusals)


def test_group_of_refusals_names_the_most_useful_input() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 13]>
        main (float p, float x) => (float a, float b, float c) {
            a = Softmax <axis = 1> (p)
            b = Softmax <axis = 1> (x)
            c = Softmax <axis = 1> (b)
        }
    """
    with pytest.raises(opshift.ConversionRefused) as caught:
        opshift.convert_version(parse(text, "p", "x", "a", "b", "c"), 11)
    (group,) = caught.value.groups
    assert len(group.refusals) == 3
    assert group.remedy == (
        "declare the shape of 'x' with --shape x=... (shapes= in Python), "
        "or try --infer-shapes (infer_shapes=True)"
    )
