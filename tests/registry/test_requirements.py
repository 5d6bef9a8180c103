"""Requirements of definitions for ranks, lengths and values of nodes."""

from __future__ import annotations

import pytest
from onnx.parser import parse_model
from onnx.shape_inference import InferenceError, infer_shapes

from opshift import check, runs
from opshift.inference.infer_shapes import known_shapes
from opshift.model.files import model_of
from opshift.registry.registry import default_registry
from opshift.registry.requirements import InvalidRequirement, names_of, parse_requirement
from opshift.runtimes.model_nodes import ModelNodes

HEADER = '<ir_version: 10, opset_import: ["": 21]> g '


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        ("(float[2,3] x) => (int64[n] y) { z = Det(x) y = Shape(z) }", "size(X, -1) is 3, size(X, -2) is 2"),
        ("(float[2,2] x) => (int64[n] y) { z = Det(x) y = Shape(z) }", ""),
        ("(float[1,1,9,9] x) => (int64[n] y) { z = MaxPool<kernel_shape=[3,0]>(x) y = Shape(z) }", "[3, 0]"),
        (
            "(float[1,1,9,9] x) => (int64[n] y) { z = MaxPool<kernel_shape=[3,3],pads=[1]>(x) y = Shape(z) }",
            "length(pads) is 1, rank(X) is 4",
        ),
        ("(float[1,1,9,9] x) => (int64[n] y) { z = MaxPool<kernel_shape=[3,3]>(x) y = Shape(z) }", ""),
        (
            "(float[3] x) => (int64[n] y) <int64[1] k = {4}> { z, i = TopK(x, k) y = Shape(z) }",
            "K is [4], axis is -1, size(X, axis) is 3",
        ),
        (
            "(float[2,3,4] x, int64[2,5] t) => (int64[n] y) "
            "{ z = NegativeLogLikelihoodLoss(x, t) y = Shape(z) }",
            "sizes(input, 2) is [4], sizes(target, 1) is [5]",
        ),
        (
            "(float[2,3,4] x, int64[2,4] t) => (int64[n] y) "
            "{ z = NegativeLogLikelihoodLoss(x, t) y = Shape(z) }",
            "",
        ),
        (
            "(float[2,3] x, int64[2] i) => (int64[n] y) { z = Slice(x, i, i, i) y = Shape(z) }",
            "",
        ),
        (
            "(float[2,3] x) => (int64[n] y) <int64[2] i = {1, -1}> { z = Slice(x, i, i, i) y = Shape(z) }",
            "distinct(axes, rank(data)) is false",
        ),
        ("(float[2] x) => (int64[n] y) { z = Cast<to=99>(x) y = Shape(z) }", "is 99"),
    ],
)
def test_reports_violations(graph: str, reason: str) -> None:
    errors = [str(each) for each in check(parse_model(HEADER + graph)) if each.level == "error"]
    assert [each for each in errors if reason not in each] == []
    assert bool(errors) == bool(reason)


@pytest.mark.parametrize(
    ("data", "axes", "is_distinct", "is_ascending"),
    [
        ("float[2, 1, 1]", "1, 2", True, True),
        ("float[2, 1, 1]", "-1, 1", True, False),
        ("float[2, 1, 1]", "2, -1", False, True),
        ("float[2, 1, 1]", "-1", True, True),
        ("float", "-1", True, True),
        ("float", "-1, -2", None, None),
        ("float", "1, 2", None, None),
    ],
)
def test_compares_axes_counted_from_the_start(
    data: str, axes: str, is_distinct: bool | None, is_ascending: bool | None
) -> None:
    graph = f"({data} x) => (float[n] y) {{ y = Squeeze <axes = [{axes}]> (x) }}"
    model = parse_model('<ir_version: 8, opset_import: ["": 11]> g ' + graph)
    if data == "float":
        model.graph.input[0].type.tensor_type.ClearField("shape")
    (node,) = ModelNodes(model_of(model.SerializeToString())[0], default_registry()).nodes
    assert node.operator is not None
    values = known_shapes(node.node, node.operator, node.scope)
    found = [
        parse_requirement(f"{each}(axes, rank(data))").evaluate(values) for each in ("distinct", "ascending")
    ]
    assert found == [is_distinct, is_ascending]


@pytest.mark.parametrize("operator", ["Squeeze", "Unsqueeze"])
@pytest.mark.parametrize("opset", [11, 13])
def test_accepts_a_negative_axis_of_data_of_unknown_rank(operator: str, opset: int) -> None:
    nodes = f"y = {operator} <axes = [-1]> (x)"
    if opset == 13:
        nodes = f"a = Constant <value_ints = [-1]> () y = {operator} (x, a)"
    model = parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float x) => (float y) {{ {nodes} }}'
    )
    for each in (model.graph.input[0], model.graph.output[0]):
        each.type.tensor_type.ClearField("shape")
    assert {each.rule for each in check(model) if each.level == "error"} == {"value.shape"}
    supports = {each.runtime: each.support for each in runs(model).results}
    assert not supports["onnxruntime-1.31.1"].missing


@pytest.mark.parametrize(
    ("bias", "is_valid"), [("[4]", True), ("[1]", True), ("[3]", False), ("[]", True), ("[2, 4]", True)]
)
def test_compares_shapes_that_broadcast(bias: str, is_valid: bool) -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> '
        f"g (float[2,4] x, float{bias} b) => (float[2,4] y) {{ y = com.microsoft.FastGelu(x, b) }}"
    )
    assert any(each.rule == "node.requires" for each in check(parse_model(text))) is not is_valid


@pytest.mark.parametrize("text", ["rank(X", "lambda: 1", "other(X)", "size(X)", "X.y == 1", "rank(X) @ 2"])
def test_refuses_other_expressions(text: str) -> None:
    with pytest.raises(InvalidRequirement):
        parse_requirement(text)


def test_requirements_name_what_versions_have() -> None:
    for operator in default_registry().operators():
        known = set().union(*map(names_of, operator.versions))
        for text in operator.requires:
            assert parse_requirement(text).names <= known, (operator.name, text)


SEQUENCE = "float[2,3,4] q, float[2,3,4] k, float[2,3,8] v"
LINEAR = "y, s = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = {}> ({})"
UNGATED = LINEAR.format('"linear"', "q, k, v")
CONV = "y, s = CausalConvWithState (x, w, b, p)"
STATE = "float[2,3,4] x, float[3,1,2] w, float[3] b, float[2,3,1] p"
SCATTER = "y = TensorScatter <axis = {}> (x, u)"
CACHES = "float[2,3,4,5,6,7] x, float[2,3,4,5,6,{}] u"
NEW_OPERATORS = {
    "LinearAttention": (SEQUENCE, UNGATED, True),
    "gated": (f"{SEQUENCE}, float[2,3,2] d", LINEAR.format('"gated"', 'q, k, v, "", d'), True),
    "decay of each row": (f"{SEQUENCE}, float[2,3,4] d", LINEAR.format('"gated"', 'q, k, v, "", d'), True),
    "delta": (f"{SEQUENCE}, float[2,3,1] b", LINEAR.format('"delta"', 'q, k, v, "", "", b'), True),
    "past state": (f"{SEQUENCE}, float[2,2,2,4] p", LINEAR.format('"linear"', "q, k, v, p"), True),
    "unknown sizes": ("float[A,B,C] q, float[D,E,F] k, float[G,H,I] v", UNGATED, True),
    "no decay": (SEQUENCE, LINEAR.format('"gated"', "q, k, v"), False),
    "no beta": (SEQUENCE, LINEAR.format('"delta"', "q, k, v"), False),
    "decay without gate": (f"{SEQUENCE}, float[2,3,2] d", LINEAR.format('"linear"', 'q, k, v, "", d'), False),
    "beta of gated": (f"{SEQUENCE}, float[2,3,2] b", LINEAR.format('"gated"', 'q, k, v, "", b, b'), False),
    "size of decay": (f"{SEQUENCE}, float[2,3,3] d", LINEAR.format('"gated"', 'q, k, v, "", d'), False),
    "size of beta": (f"{SEQUENCE}, float[2,3,4] b", LINEAR.format('"delta"', 'q, k, v, "", "", b'), False),
    "tokens": ("float[2,3,4] q, float[2,5,4] k, float[2,3,8] v", UNGATED, False),
    "head sizes": ("float[2,3,8] q, float[2,3,4] k, float[2,3,8] v", UNGATED, False),
    "partial heads": ("float[2,3,4] q, float[2,3,4] k, float[2,3,7] v", UNGATED, False),
    "state": (f"{SEQUENCE}, float[2,2,3,4] p", LINEAR.format('"linear"', "q, k, v, p"), False),
    "rank of query": ("float[2,3] q, float[2,3,4] k, float[2,3,8] v", UNGATED, False),
    "head counts": (
        "float[2,3,6] q, float[2,3,4] k, float[2,3,8] v",
        'y, s = LinearAttention <q_num_heads = 3, kv_num_heads = 2, update_rule = "linear"> (q, k, v)',
        False,
    ),
    "CausalConvWithState": (STATE, CONV, True),
    "weight groups": (STATE.replace("3,1,2", "3,2,2"), CONV, False),
    "channels of weight": (STATE.replace("3,1,2", "4,1,2"), CONV, False),
    "empty kernel": (STATE.replace("3,1,2", "3,1,0"), "y, s = CausalConvWithState (x, w)", False),
    "bias": (STATE.replace("float[3] b", "float[4] b"), CONV, False),
    "past columns": (STATE.replace("2,3,1", "2,3,2"), CONV, False),
    "past batch": (STATE.replace("2,3,1", "1,3,1"), CONV, False),
    "spatial input": (STATE.replace("2,3,4", "2,3,4,1"), CONV, False),
    "SwiGLU": ("float[2,3] a, float[2,3] b", "y = SwiGLU (a, b)", True),
    "fewer dimensions": ("float[2,3] a, float[3] b", "y = SwiGLU (a, b)", False),
    "broadcast": ("float[2,3] a, float[2,1] b", "y = SwiGLU (a, b)", False),
    "TensorScatter": (CACHES.format(2), SCATTER.format(5), True),
    "last of six dimensions": (CACHES.format(2), SCATTER.format(1), False),
    "fifth of six dimensions": (CACHES.format(7).replace("6,7] u", "2,7] u"), SCATTER.format(-1), False),
}  # fmt: skip


@pytest.mark.parametrize(("inputs", "node", "is_valid"), NEW_OPERATORS.values(), ids=NEW_OPERATORS)
def test_agrees_with_onnx_about_new_operators(inputs: str, node: str, is_valid: bool) -> None:
    state = ", float[?,?,?] s" if "CausalConv" in node else ", float[?,?,?,?] s" if ", s =" in node else ""
    rank = 2 if "SwiGLU" in node else 6 if "Scatter" in node else 3
    result = f"float[{','.join('?' * rank)}] y"
    text = f'<ir_version: 14, opset_import: ["": 28]> g ({inputs}) => ({result}{state}) {{ {node} }}'
    model = parse_model(text)
    found = any(each.rule == "node.requires" for each in check(model))
    assert found is not is_valid
    try:
        infer_shapes(model, check_type=True, strict_mode=True)
    except InferenceError:
        assert not is_valid
    else:
        assert is_valid
