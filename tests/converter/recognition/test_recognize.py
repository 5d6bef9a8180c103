"""Recognition: nodes that express an operator become a node of it, and all others remain."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from support.execution import op_types, run

import opshift
from opshift import convert, convert_version, plan_version

SWISH = "s = Sigmoid (x)  y = Mul (x, s)"
MISH = "p = Softplus (x)  t = Tanh (p)  y = Mul (t, x)"
RMS = (
    "q = Mul (x, x)  m = ReduceMean <keepdims = 1> (q, axes)  v = Add (m, epsilon)  d = Sqrt (v)"
    "  n = Div (x, d)  y = Mul (n, scale)"
)
CONSTANTS = "float epsilon = {1e-6}, int64[1] axes = {-1}, float[4] scale = {1, 2, 3, 4}"
FEEDS = {"x": np.array([[-3, -0.5, 0, 2], [1, 0.25, -1, 7]], np.float32)}


def model_of(
    body: str, *, opset: int = 24, x: str = "float[N, 4]", y: str = "float[N, 4] y", constants: str = ""
) -> onnx.ModelProto:
    """Return a model with the body, one node per double space."""
    nodes = "\n".join(body.split("  "))
    return onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : {opset}]> g ({x} x) => ({y}) <{constants}> {{ {nodes} }}'
    )


def recognized(model: onnx.ModelProto, **arguments: Any) -> list[str]:
    """Return the operators of a model after recognition."""
    return op_types(convert_version(model, recognize=True, **arguments))


def test_recognizes_body_of_function() -> None:
    model = model_of(SWISH)
    converted = convert(model, recognize=True)
    assert op_types(converted.model) == ["Swish"]
    np.testing.assert_allclose(run(model, FEEDS), run(converted.model, FEEDS), rtol=1e-6)
    (node,) = converted.report.recognized
    assert (node.operator, node.nodes, node.rounding) == ("ai.onnx.Swish:24", 2, "")
    assert "recognized: 1 x ai.onnx.Swish:24 from 2 nodes" in str(converted.report)
    assert converted.report.nodes == (2, 1)


def test_does_nothing_by_default() -> None:
    assert op_types(convert_version(model_of(SWISH), 25)) == ["Sigmoid", "Mul"]


def test_keeps_name_of_last_node() -> None:
    model = model_of(SWISH)
    model.graph.node[1].name = "last"
    (node,) = convert_version(model, recognize=True).graph.node
    assert (node.name, node.output[0]) == ("last", "y")


@pytest.mark.parametrize("wanted", ["Swish", "ai.onnx.Swish", ["Mish", "Swish"]])
def test_recognizes_named_operators_only(wanted: str | list[str]) -> None:
    model = model_of(
        f"{SWISH.replace('y =', 'a =')}  h = HardSigmoid <alpha = 0.16666667> (a)  y = Mul (a, h)"
    )
    assert op_types(convert_version(model, recognize=wanted)) == ["Swish", "HardSigmoid", "Mul"]


@pytest.mark.parametrize(("opset", "expected"), [(23, ["Sigmoid", "Mul"]), (24, ["Swish"])])
def test_operator_has_to_exist_at_target(opset: int, expected: list[str]) -> None:
    assert recognized(model_of(SWISH, opset=17), target=opset) == expected


def test_plan_recognizes_in_copy() -> None:
    model = model_of(SWISH)
    plan = plan_version(model, recognize=True)
    assert plan.recognition is not None
    assert list(plan.recognition.sentences()) == ["1 x ai.onnx.Swish:24 from 2 nodes"]
    assert op_types(model) == ["Sigmoid", "Mul"]


def test_operator_in_operator() -> None:
    model = model_of(
        "p = Exp (x)  one = Add (p, c)  l = Log (one)  t = Tanh (l)  y = Mul (x, t)",
        constants="float c = {1}",
    )
    assert recognized(model, allow="approximate") == ["Mish"]


def test_restores_downgrade_without_record() -> None:
    model = model_of(
        "y = RMSNormalization <epsilon = 0.001> (x, scale)", constants="float[4] scale = {1, 2, 3, 4}"
    )
    low = convert_version(model, 17)
    assert len(low.graph.node) > 1
    assert convert_version(low, 24, recognize="RMSNormalization").graph.node[0] == model.graph.node[0]


@pytest.mark.full  # its patterns take seconds to compile
@pytest.mark.parametrize("count", [1, 2, 3])
def test_restores_optional_outputs(count: int) -> None:
    names = ["y", "mean", "deviation"][:count]
    outputs = ", ".join(["float[N, 4] y", "float[N, 1] mean", "float[N, 1] deviation"][:count])
    body = f"{', '.join(names)} = LayerNormalization <epsilon = 0.001> (x, scale, scale)"
    model = model_of(body, y=outputs, constants=CONSTANTS)
    low = convert_version(model, 16)
    (node,) = convert_version(low, 24, recognize="LayerNormalization").graph.node
    assert node == model.graph.node[0]


@pytest.mark.parametrize(
    ("body", "y", "reason"),
    [
        (f"{SWISH}  z = Neg (s)", "float[N, 4] y, float[N, 4] z", "'s' is also read by other nodes"),
        (SWISH, "float[N, 4] y, float[N, 4] s", "'s' is also read by other nodes"),
        (f"{RMS}  z = Neg (d)", "float[N, 4] y, float[N, 1] z", "'d' is also read by other nodes"),
        (f"{RMS}", "float[N, 4] y, float[N, 4] n", "'n' is also read by other nodes"),
    ],
)
def test_keeps_values_that_others_read(body: str, y: str, reason: str) -> None:
    model = model_of(body, y=y, constants=CONSTANTS)
    plan = plan_version(model, recognize=["Swish", "RMSNormalization"], allow="approximate")
    assert plan.recognition is not None
    assert not plan.recognition.nodes
    assert reason in {each.reason for each in plan.recognition.near_misses}


def test_keeps_values_that_subgraphs_read() -> None:
    then, otherwise = "t () => (float[N, 4] a) { a = Neg (s) }", "e () => (float[N, 4] b) { b = Abs (s) }"
    body = f"branch = If <then_branch = {then}, else_branch = {otherwise}> (c)"
    model = model_of(f"{SWISH}  {body}", y="float[N, 4] y, float[N, 4] branch", constants="bool c = {1}")
    assert recognized(model) == ["Sigmoid", "Mul", "If"]


CAPTURED_MEAN = (
    "z = If <then_branch = t () => (float[N, 1] a) { a = Neg (mean) },"
    " else_branch = e () => (float[N, 1] b) { b = Abs (mean) }> (c)"
)


@pytest.mark.parametrize("is_early", [False, True])
@pytest.mark.parametrize("reader", ["z = Neg (mean)", CAPTURED_MEAN], ids=["node", "subgraph"])
def test_optional_output_has_no_earlier_reader(reader: str, is_early: bool) -> None:
    outputs, constants = "float[N, 4] y, float[N, 1] z", f"{CONSTANTS}, bool c = {{1}}"
    body = f"y, mean = LayerNormalization (x, scale, scale)  {reader}"
    low = convert_version(model_of(body, y=outputs, constants=constants), 16)
    if is_early:
        nodes = [*low.graph.node]
        position = next(index for index, each in enumerate(nodes) if "mean" in each.output)
        low.graph.ClearField("node")
        low.graph.node.extend([*nodes[: position + 1], nodes[-1], *nodes[position + 1 : -1]])
    result = convert_version(low, 17, recognize="LayerNormalization")
    assert ("LayerNormalization" in op_types(result)) != is_early
    for found, expected in zip(run(result, FEEDS), run(low, FEEDS), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [-0.25, 0.0, 0.25])
@pytest.mark.parametrize(
    "scores",
    [
        pytest.param("t = MatMul (x, k)  s = Mul (t, scale)", id="product"),
        pytest.param("p = Mul (x, root)  r = Mul (k, root)  s = MatMul (p, r)", id="factors"),
    ],
)
def test_scale_of_attention_is_positive(scores: str, scale: float) -> None:
    body = (
        f"k = Transpose <perm = [0, 1, 3, 2]> (x)  {scores}  w = Softmax <axis = -1> (s)  y = MatMul (w, x)"
    )
    dims = "float[1, 2, 3, 4]"
    root = f"float root = {{{math.copysign(math.sqrt(abs(scale)), scale)}}}"
    constants = f"float scale = {{{scale}}}, {root}"
    model = model_of(body, opset=23, x=dims, y=f"{dims} y", constants=constants)
    expected = ["Attention"] if scale > 0 else op_types(model)
    assert recognized(model, allow="approximate") == expected


def test_reports_sizes_that_may_differ_at_run_time() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 23]>
    g (float[A, 2, L, 4] x, float[B, 2, S, 4] k) => (float[C, 2, L, 4] y) {
        t = Transpose <perm = [0, 1, 3, 2]> (k)
        s = MatMul (x, t)
        w = Softmax <axis = -1> (s)
        y = MatMul (w, k)
    }
    """
    report = convert(onnx.parser.parse_model(text), recognize=True, allow="approximate").report
    reasons = {each.reason for each in report.near_misses}
    assert reasons == {"a size of 'k' may differ at run time from the size that the form requires"}


def test_keeps_attributes_that_training_updates() -> None:
    model = model_of("t = Mul (x, alpha)  g = Sigmoid (t)  y = Mul (x, g)", constants="float alpha = {1.5}")
    assert recognized(model) == ["Swish"]
    model.training_info.add().update_binding.add(key="alpha", value="alpha")
    assert recognized(model) == ["Mul", "Sigmoid", "Mul"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(SWISH.replace("(x, s)", "(s, s)"), id="other operand"),
        pytest.param(SWISH.replace("Sigmoid", "Tanh"), id="other operator"),
        pytest.param(MISH.replace("(t, x)", "(t, p)"), id="other value"),
        pytest.param(
            "c = Cast <to = 10> (x)  s = Sigmoid (c)  d = Cast <to = 1> (s)  y = Mul (x, d)",
            id="cast between",
        ),
        pytest.param("k = Mul (x, scale)  s = Sigmoid (k)  y = Mul (x, s)", id="alpha of several numbers"),
        pytest.param(RMS.replace("(q, axes)", "(q, other)"), id="first axis"),
        pytest.param(RMS.replace("Sqrt", "Exp"), id="no root"),
        pytest.param(RMS.replace("Mul (x, x)", "Pow (x, near)"), id="power that is NaN below 0"),
        pytest.param(RMS.replace("(m, epsilon)", "(m, scale)"), id="epsilon of several numbers"),
        pytest.param(
            RMS.replace("<keepdims = 1>", "<keepdims = 0>").replace("(m, epsilon)", "(m, epsilon)"),
            id="no axis",
        ),
    ],
)
def test_keeps_other_formulas(body: str) -> None:
    model = model_of(
        body,
        x="float[4, 4]",
        y="float[4, 4] y",
        constants=f"{CONSTANTS}, int64[1] other = {{0}}, float near = {{2.0000002}}",
    )
    before = op_types(model)
    found = op_types(
        convert_version(model, recognize=["Swish", "Mish", "RMSNormalization"], allow="approximate")
    )
    assert found == before


@pytest.mark.parametrize(
    ("x", "scale"),
    [
        ("float[N, 1]", "float[4] scale = {1, 2, 3, 4}"),
        ("float[4]", "float[2, 4] scale = {1, 2, 3, 4, 5, 6, 7, 8}"),
    ],
)
def test_keeps_formula_that_broadcasts_data(x: str, scale: str) -> None:
    constants = CONSTANTS.replace("float[4] scale = {1, 2, 3, 4}", scale)
    model = model_of(RMS, x=x, y="float[N, 4] y", constants=constants)
    assert "RMSNormalization" not in op_types(
        convert_version(model, recognize="RMSNormalization", allow="approximate")
    )


LOOKUP = "c = Reshape (x, two)  y = RotaryEmbedding (x, c, c, k)"
LENGTHS = "y = Attention (x, x, x, , , , k)"
HEADS, ROTATION = "y = Attention (x, k, k)", "y = RotaryEmbedding (x, k, k)"


@pytest.mark.parametrize(
    ("body", "x", "k", "other"),
    [
        pytest.param(LENGTHS, "float[2, 2, 3, 4]", "int64[2]", "int64[1]", id="one length"),
        pytest.param(LENGTHS, "float[2, 2, 3, 4]", "int64[2]", "int64[1, 2]", id="matrix of lengths"),
        pytest.param("y = Clip (x, k, k)", "float[3]", "float", "float[3]", id="bounds"),
        pytest.param("y = Clip (x, k, k)", "float[N]", "float", "float[N]", id="bounds of unknown size"),
        pytest.param(HEADS, "float[2, 2, 3, 4]", "float[2, 2, 3, 4]", "float[1, 2, 3, 4]", id="batch"),
        pytest.param(HEADS, "float[N, 2, 3, 4]", "float[N, 2, 3, 4]", "float[1, 2, 3, 4]", id="any batch"),
        pytest.param(ROTATION, "float[N, 2, 3, 4]", "float[N, 3, 2]", "float[1, 3, 2]", id="caches"),
        pytest.param(LOOKUP, "float[6, 2, 3, 4]", "int64[6, 3]", "int64[1, 3]", id="positions of one entry"),
        pytest.param(LOOKUP, "float[6, 2, 3, 4]", "int64[6, 3]", "int64[6, 1]", id="one position"),
    ],
)
def test_keeps_inputs_that_operator_refuses(body: str, x: str, k: str, other: str) -> None:
    operator = body.partition("y = ")[2].split()[0]
    model = model_of(body, x=f"{k} k, {x}", y=f"{x} y", constants="int64[2] two = {-1, 2}")
    low = convert_version(model, without=f"ai.onnx.{operator}")
    assert recognized(low) == op_types(model)
    changed = onnx.parser.parse_model(f"<ir_version: 10> g ({other} k) => () {{ }}").graph.input[0]
    low.graph.input[0].CopyFrom(changed)
    nodes = convert_version(low, recognize=True).graph.node
    assert not any("k" in each.input for each in nodes if each.op_type == operator)


@pytest.mark.parametrize("number", [math.inf, math.nan, 1e30])
def test_keeps_window_that_no_attribute_stores(number: float) -> None:
    dims = "float[1, 2, 3, 4]"
    model = model_of("y = Attention <left_window_size = 1> (x, x, x)", opset=25, x=dims, y=f"{dims} y")
    low = convert_version(model, without="ai.onnx.Attention")
    size = next(each for each in low.graph.initializer if numpy_helper.to_array(each).tolist() == -1)
    size.CopyFrom(numpy_helper.from_array(np.float32(number), size.name))
    assert "left_window_size" not in str(convert_version(low, recognize="Attention"))


def test_lengths_of_keys_and_values_may_have_other_names() -> None:
    """The product with the values compares the lengths at run time."""
    k, v = "float[2, 2, S, 4] k", "float[2, 2, S, 4] v"
    model = model_of("y = Attention (x, k, v)", x=f"{k}, {v}, float[2, 2, 3, 4]", y="float[2, 2, 3, 4] y")
    low = convert_version(model, without="ai.onnx.Attention")
    low.graph.input[1].type.tensor_type.shape.dim[2].dim_param = "other"
    assert recognized(low) == ["Attention"]


def test_keeps_nodes_of_other_rank() -> None:
    body = "y = SpaceToDepth <blocksize = 2> (x)"
    low = convert_version(model_of(body, opset=28, x="float[1, 1, 2, 4]", y="float[1, 4, 1, 2] y"), 26)
    low = convert_version(low, without="ai.onnx.SpaceToDepth")
    low.graph.input[0].type.tensor_type.shape.dim.add().dim_value = 1
    assert recognized(low) == op_types(low)


def test_keeps_scale_of_rank_one() -> None:
    low = convert_version(
        model_of("y, s, z = DynamicQuantizeLinear (x)", y="uint8[N, 4] y, float s, uint8 z"), 10
    )
    assert recognized(low, target=11) == ["DynamicQuantizeLinear"]
    for each in low.graph.initializer:
        each.dims[:] = [1]
    for value in low.graph.output[1:]:
        value.type.tensor_type.ClearField("shape")
    assert recognized(low, target=11) == op_types(low)


def test_keeps_scale_of_higher_rank() -> None:
    """A scale with five dimensions adds one to the result of an attention."""
    body = "k = Transpose <perm = [0, 1, 3, 2]> (x)  t = MatMul (x, k)  s = Mul (t, c)"
    body = f"{body}  w = Softmax <axis = -1> (s)  y = MatMul (w, x)"
    for dims, expected in [("1", ["Attention"]), ("1, 1, 1, 1, 1", None)]:
        model = model_of(body, x="float[1, 2, 3, 4]", y="float y", constants=f"float[{dims}] c = {{0.5}}")
        model.graph.output[0].type.tensor_type.ClearField("shape")
        assert recognized(model, allow="approximate") == (expected or op_types(model))


@pytest.mark.full  # the patterns of LayerNormalization take seconds to compile
def test_keeps_scale_computed_from_mean() -> None:
    outputs = "float[N, 4] y, float[N, 1] mean, float[N, 1] d"
    body = "y, mean, d = LayerNormalization (x, scale, scale)"
    low = convert_version(model_of(body, opset=17, y=outputs, constants=CONSTANTS), 16)
    product = next(each for each in low.graph.node if each.op_type == "Mul")
    product.input[1] = next(each.output[0] for each in low.graph.node if each.op_type == "Sub")
    result = convert_version(low, 17, recognize="LayerNormalization")
    assert op_types(result) == op_types(low)


@pytest.mark.parametrize("is_shared", [False, True])
def test_outputs_of_attention_are_valid(is_shared: bool) -> None:
    """An Attention needs both `present_key` and `present_value`, which are different values."""
    dims = "float[1, 2, 3, 4]"
    outputs = f"{dims} y, {dims.replace('3', '8')} k, {dims.replace('3', '8')} v"
    body = "y, k, v = Attention (x, x, x, , p, p)"
    model = model_of(body, opset=25, x=f"{dims.replace('3', '5')} p, {dims}", y=outputs)
    low = convert_version(model, without="ai.onnx.Attention")
    assert recognized(low) == ["Attention"]
    if is_shared:
        low.graph.node[-1].input[1] = "k"
    else:
        low.graph.node.add(op_type="Concat", input=["p", "x"], output=["k2"])
        low.graph.node[-1].attribute.add(name="axis", i=2, type=onnx.AttributeProto.INT)
        low.graph.output[1].name = "k2"
    assert recognized(low)[:3] == ["Concat", "Concat", "Attention"]


def test_difference_in_rounding_has_to_be_allowed() -> None:
    model = model_of("e = Exp (x)  a = Add (e, c)  y = Log (a)", constants="float c = {1}")
    plan = plan_version(model, recognize="Softplus")
    assert plan.recognition is not None
    (miss,) = plan.recognition.near_misses
    assert miss.reason == "the exponential overflows for large numbers; allow=approximate accepts it"
    converted = convert(model, recognize="Softplus", allow="approximate")
    assert op_types(converted.model) == ["Softplus"]
    assert converted.report.recognized[0].rounding == "the exponential overflows for large numbers"


def test_recognizes_in_subgraphs_and_functions() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 24, "f" : 1]>
    g (float[N, 4] x, bool c) => (float[N, 4] y, float[N, 4] z)
    {
        y = If <then_branch = t () => (float[N, 4] a) { s = Sigmoid (x)  a = Mul (x, s) },
                else_branch = e () => (float[N, 4] b) { b = Neg (x) }> (c)
        z = f.twice (x)
    }
    <domain: "f", opset_import: ["" : 24]>
    twice (i) => (o) { s = Sigmoid (i)  o = Mul (s, i) }
    """
    model = convert_version(onnx.parser.parse_model(text), recognize="Swish")
    then_branch = model.graph.node[0].attribute[0].g
    assert [each.op_type for each in then_branch.node] == ["Swish"]
    assert [each.op_type for each in model.functions[0].node] == ["Swish"]


def test_function_of_the_model_hides_operator() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 24]>
    g (float[4] x) => (float[4] y) { s = Sigmoid (x)  y = Mul (x, s) }
    <domain: "", opset_import: ["" : 24]>
    Swish (i) => (o) { o = Neg (i) }
    """
    assert recognized(onnx.parser.parse_model(text)) == ["Sigmoid", "Mul"]


def test_removes_unread_constants_only() -> None:
    model = model_of(RMS.replace("(x, x)", "(x, x)"), constants=f"{CONSTANTS}, float unread = {{1}}")
    result = convert_version(model, recognize="RMSNormalization", allow="approximate")
    assert {each.name for each in result.graph.initializer} == {"scale", "unread"}


def test_keeps_unread_constants_of_subgraphs_and_sparse_constants() -> None:
    branch = "If (flag) <then_branch = t () => (float[N, 4] r) <float unread = {2}> { r = Neg (s) }"
    branch += ", else_branch = e () => (float[N, 4] r) { r = Identity (s) }>"
    body = SWISH.replace("y =", "a =").replace("x", "h").replace("s", "g")
    model = model_of(
        f"h = Neg (x)  {body}  s = Abs (a)  y = {branch}", constants="bool flag = {1}, float sparse = {3}"
    )
    sparse = model.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "sparse"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([1])))
    del model.graph.initializer[1]
    result = convert_version(model, recognize=True)
    assert op_types(result) == ["Neg", "Swish", "Abs", "If"]
    assert result.graph.sparse_initializer == model.graph.sparse_initializer
    assert result.graph.node[-1] == model.graph.node[-1]
    np.testing.assert_allclose(run(model, FEEDS), run(result, FEEDS), rtol=1e-6)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("Gulu", "'Gulu' is not an operator; did you mean"),
        ("Conv", "Conv has no function body"),
        ("com.acme.Blur", "'com.acme.Blur' is not an operator"),
    ],
)
def test_refuses_operators_without_pattern(wanted: str, message: str) -> None:
    with pytest.raises(opshift.UsageError, match=message):
        convert_version(model_of(SWISH), recognize=wanted)


def test_refuses_record_of_recognized_nodes() -> None:
    with pytest.raises(opshift.UsageError, match="pass only one of reversible and recognize"):
        convert_version(model_of(SWISH), 25, recognize=True, reversible=True)


def test_removes_record_of_earlier_conversion() -> None:
    model = model_of("y = Swish (x)")
    low = convert_version(model, 17, reversible=True)
    converted = convert(low, 23, recognize="Gelu")
    assert converted.model.metadata_props
    assert not converted.report.recognized


def test_conversion_without_option_imports_no_recognition() -> None:
    text = '<ir_version: 10, opset_import: ["" : 24]> g (float[4] x) => (float[4] y) { y = Swish (x) }'
    script = (
        f"import onnx.parser, opshift, sys; opshift.convert(onnx.parser.parse_model({text!r}), 17);"
        "print(*[each for each in sys.modules if each.startswith('opshift.converter.recognition.')],"
        "sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"opshift.converter.recognition.result"}  # the records of reports


SPLIT = (
    "shape = Shape (x)  length = Slice (shape, zero, one)  target = Concat <axis = 0> (length, rest)"
    "  cut = Slice (table, zero, length, zero)  sum = Add (x, cut)  h = Reshape (sum, target)"
)


@pytest.mark.parametrize("length", [1, 3, 8])
def test_recognizes_formula_of_sizes_known_at_run_time(length: int) -> None:
    table = ", ".join(["0.5"] * 32)
    constants = (
        "float epsilon = {1e-6}, int64[1] axes = {-1}, float[2] scale = {1, 2}, int64[1] zero = {0},"
        f" int64[1] one = {{1}}, int64[2] rest = {{-1, 2}}, float[8, 4] table = {{{table}}}"
    )
    body = f"{SPLIT}  {RMS.replace('(x, x)', '(h, h)').replace('(x, d)', '(h, d)')}"
    model = model_of(body, y="float[N, 2, 2] y", constants=constants)
    converted = convert_version(model, recognize="RMSNormalization", allow="approximate")
    assert "RMSNormalization" in op_types(converted)
    feeds = {"x": np.linspace(-3, 7, length * 4, dtype=np.float32).reshape(length, 4)}
    np.testing.assert_allclose(run(model, feeds)[0], run(converted, feeds)[0], rtol=1e-6)


def test_large_chain_in_linear_time() -> None:
    body = "  ".join(f"s{i} = Sigmoid (v{i})  v{i + 1} = Mul (v{i}, s{i})" for i in range(300))
    model = model_of(body.replace("v0", "x").replace("v300 ", "y "))
    assert recognized(model, allow="approximate") == ["Swish"] * 300
