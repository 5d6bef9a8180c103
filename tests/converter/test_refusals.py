"""Groups of refusals: one sentence for each cause, with the names of the user's model only."""

from __future__ import annotations

import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser
from support.execution import assert_equal, run

from opshift import ConversionRefused, convert_version, plan_version, restamp
from opshift.converter.refusals import Refusal, group_refusals
from opshift.converter.report import Report
from opshift.model.errors import UNKNOWN_SHAPE
from opshift.registry.explanations import refusal_causes


def chain(operators: list[str], element_type: int, opset: int) -> onnx.ModelProto:
    """Return a model that applies unary operators to a value, one after the other."""
    nodes = [
        helper.make_node(each, [f"v{number}"], [f"v{number + 1}"], f"n{number}")
        for number, each in enumerate(operators)
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("v0", element_type, [2, 3])], [value(f"v{len(nodes)}", element_type, [2, 3])]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def refused(model: onnx.ModelProto, target: int) -> ConversionRefused:
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, target)
    return caught.value


def test_groups_nodes_with_one_element_type() -> None:
    error = refused(chain(["Relu", "Neg", "Relu"] * 25, TensorProto.BFLOAT16, 13), 11)
    (group,) = error.groups
    assert (group.code, len(group.refusals)) == ("type.unsupported", 75)
    assert group.summary == (
        "75 nodes are bfloat16, which their operators lack at opset 11; "
        "the lowest opset that supports them is 13"
    )
    assert error.reason == group.summary
    assert [each.place for each in error.refusals] == [f"graph, node 'n{number}'" for number in range(75)]
    assert {each.nearest for each in error.refusals} == {13}


def test_lowest_opset_of_a_group_suits_all_its_nodes() -> None:
    # Identity has bfloat16 since opset 13, Gelu is expressed by operators that have it since opset 13 or 14
    model = chain(["Identity", "Gelu", "Identity", "Cos"], TensorProto.BFLOAT16, 22)
    (group,) = group_refusals(plan_version(model, 12).refusals)
    lowest = int(group.summary.rpartition(" ")[2])
    assert lowest == max(each.nearest for each in group.refusals)
    assert plan_version(model, lowest).refusals == ()
    assert plan_version(model, lowest - 1).refusals


@pytest.mark.parametrize("in_function", [False, True], ids=["graph", "function"])
@pytest.mark.parametrize(
    ("text", "opset", "target", "remedy"),
    [
        ("Compress <axis = 0> (a, b)", 9, 5, "choose a newer target, or cast the values to a supported type"),
        ("ScatterND (a, c, d)", 11, 2, "choose another target"),
    ],
    ids=["cause", "intermediate values"],
)
def test_every_refusal_has_a_remedy(
    text: str, opset: int, target: int, remedy: str, in_function: bool
) -> None:
    """If a step has no advice, that of the cause applies; declarations do not change intermediate values."""
    inputs = "float[4,4] a, bool[4] b, int64[2,1] c, float[2,4] d"
    if in_function:
        function = f'<domain: "local", opset_import: ["" : {opset}]> F(a, b, c, d) => (y) {{ y = {text} }}'
        body = "local.F(a, b, c, d)"
    else:
        body, function = text, ""
    header = f'<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>'
    model = parser.parse_model(f"{header} g ({inputs}) => (float y) {{ y = {body} }} {function}")
    for each in refused(model, target).refusals:
        assert each.remedy == remedy


@pytest.mark.parametrize("gelus", [1, 2], ids=["one node", "a group"])
@pytest.mark.parametrize("target", [12, 13, 20])
def test_remedy_for_an_operator_newer_than_the_import_corrects_the_import(target: int, gelus: int) -> None:
    model = chain(["Relu", *["Gelu"] * gelus], TensorProto.FLOAT, 13)
    (group,) = group_refusals(plan_version(model, target).refusals)
    assert group.code == "operator.not-introduced"
    assert group.remedy == "correct the opset import with `opshift doctor IN OUT --fix` (`restamp` in Python)"
    before = restamp(model)
    feeds = {"v0": np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)}
    assert_equal(run(convert_version(before, target), feeds), run(before, feeds))


RESIZE = 'Resize <mode = "linear", antialias = 1> (c, , s)'


@pytest.mark.parametrize(
    ("text", "opset", "target", "code", "nearest"),
    [
        ("Asinh (a)", 14, 8, "deviation.not-allowed", 9),
        ("Asinh (a)", 14, 6, "unknown.shape", 9),
        ("Det (b)", 14, 10, "unknown.shape", 11),
        (RESIZE, 18, 13, "deviation.not-allowed", 18),
        (RESIZE, 18, 12, "type.unsupported", 18),
    ],
    ids=["only the deviation", "emitted nodes", "the same step", "supported type", "unsupported type"],
)
def test_asks_for_a_deviation_only_if_the_conversion_is_possible_with_it(
    text: str, opset: int, target: int, code: str, nearest: int
) -> None:
    """A refusal that remains is reported instead; `nearest` needs no deviation."""
    header = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    inputs = "float[N] a, float[M,M] b, bfloat16[1,1,4,4] c, float[4] s"
    element_type = "bfloat16" if text == RESIZE else "float"
    model = parser.parse_model(f"{header} g ({inputs}) => ({element_type} y) {{ y = {text} }}")
    (refusal,) = plan_version(model, target).refusals
    assert (refusal.code, refusal.nearest) == (code, nearest)
    assert plan_version(model, nearest).refusals == ()
    allowed = plan_version(model, target, allow="approximate").refusals
    assert [each.reason for each in allowed] == ([] if code == "deviation.not-allowed" else [refusal.reason])


def test_groups_by_element_type_and_cause() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (bfloat16[2] a, float[N, M, K] b, float[N] c, bool[] d) => (bfloat16[2] e, float[N] f, float[N] g) {
            e = Relu (a)
            f, m = Dropout (c, r, d)
            g = Dropout (c, r, d)
            r = Constant <value_float = 0.5> ()
        }
    """)
    node = model.graph.node.pop()
    model.graph.node.insert(0, node)
    groups = group_refusals(plan_version(model, 11).refusals)
    assert [(each.code, len(each.refusals)) for each in groups] == [
        ("type.unsupported", 1),
        ("training.unsupported", 2),
    ]
    # a single refusal keeps its own reason
    assert groups[0].summary.startswith(groups[0].refusals[0].reason)


def test_upgrades_name_the_highest_opset() -> None:
    model = parser.parse_model("""
        <ir_version: 3, opset_import: ["" : 6]>
        g (float[2] x) => (float[2] z) {
            y = Dropout <is_test = 0> (x)
            z = Dropout <is_test = 0> (y)
        }
    """)
    (group,) = refused(model, 13).groups
    assert group.summary.endswith("; the highest opset that supports them is 6")


def test_domain_of_another_target_is_named() -> None:
    refusals = [
        Refusal(place, "ai.onnx.ml.Scaler:1", "a reason", "", "value.inexact", "", 2, 3) for place in "ab"
    ]
    assert "opset 2 of ai.onnx.ml cannot represent" in group_refusals(refusals)[0].summary


@pytest.mark.parametrize("code", refusal_causes())
def test_every_cause_describes_several_nodes(code: str) -> None:
    members = [
        Refusal(
            f"node {name}", "ai.onnx.Relu:6", f"{name!r} is bad", f"remove {name!r}", code, "subject", 7, 0
        )
        for name in ("first", "second")
    ]
    (group,) = group_refusals(members)
    assert "2" in group.summary
    assert "{" not in group.summary
    assert "first" not in group.summary
    cause = refusal_causes()[code]
    assert group.remedy == (members[0].remedy if code == UNKNOWN_SHAPE else cause.remedy)
    assert group.title == members[0].title


@pytest.mark.parametrize(
    ("remedies", "expected"),
    [
        (["", "", "declare 'x'", "declare 'x'", "declare 'y'"], "declare 'x'"),
        (["", "declare 'y'"], "declare 'y'"),
        (["", ""], refusal_causes()[UNKNOWN_SHAPE].remedy),
    ],
)
def test_group_of_unknown_shapes_names_the_most_frequent_values(remedies: list[str], expected: str) -> None:
    refusals = [Refusal("graph", "ai.onnx.Add:14", "", remedy, UNKNOWN_SHAPE) for remedy in remedies]
    (group,) = group_refusals(refusals)
    assert group.remedy == expected


def test_different_reasons_of_one_code_are_separate_groups() -> None:
    reasons = ("opset 10 has no sequences", "opset 14 has no optional values", "opset 10 has no sequences")
    members = [Refusal("node", "ai.onnx.X", each, "", "operator.no-equivalent", each) for each in reasons]
    assert [len(each.refusals) for each in group_refusals(members)] == [2, 1]


def test_reasons_name_neither_new_values_nor_new_operators() -> None:
    model = chain(["Relu"], TensorProto.BFLOAT16, 13)
    (refusal,) = plan_version(model, 9).refusals
    assert refusal.reason == "the operator has no equivalent for bfloat16 below opset 13"
    names = {"v0", "v1"}
    for text in (refusal.reason, refusal.remedy):
        assert set(text.split("'")[1::2]) <= names


def test_values_created_by_the_conversion_are_not_named() -> None:
    model = parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 20]>
        g (float[N] x, int64[K] shape) => (y) {
            a = Reshape (x, shape)
            y = AffineGrid <align_corners = 0> (a, shape)
        }
    """)
    for refusal in plan_version(model, 8).refusals:
        quoted = set(refusal.reason.split("'")[1::2]) | set(refusal.remedy.split("'")[1::2])
        assert quoted <= {"x", "shape", "a", "y"}


def test_features_of_the_ir_version_are_grouped() -> None:
    model = chain(["Relu", "Relu"], TensorProto.FLOAT, 21)
    model.ir_version = 10
    for node in model.graph.node:
        node.metadata_props.add(key="a", value="b")
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT8E4M3FN, [1], [1.0]))
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, ir_version=8)
    assert {each.code for each in caught.value.refusals} <= {"ir.element-type", "ir.feature"}
    for group in caught.value.groups:
        assert group.summary.endswith(("is 9", "is 10"))


def test_report_and_errors_have_groups_as_plain_data() -> None:
    model = chain(["Relu"] * 3, TensorProto.BFLOAT16, 13)
    data = Report.of(plan_version(model, 11)).as_dict()
    (group,) = data["refusal_groups"]
    assert group["count"] == len(group["places"]) == len(data["refusals"]) == 3
    assert {each["code"] for each in data["refusals"]} == {group["code"]} == {"type.unsupported"}
    error = refused(model, 11)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.refusals, copy.groups, str(copy)) == (error.refusals, error.groups, str(error))


def test_many_refusals_have_a_short_message() -> None:
    error = refused(chain(["Relu"] * 2_000, TensorProto.BFLOAT16, 13), 11)
    assert len(str(error)) < 300
    assert len(error.refusals) == 2_000


def test_refused_models_convert_to_the_lowest_opset() -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = chain(["Cos", "Sin"], TensorProto.FLOAT, 22)
    (group,) = refused(model, 6).groups
    lowest = int(group.summary.rpartition(" ")[2])
    data = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    before, after = (
        runtime.InferenceSession(each.SerializeToString()).run(None, {"v0": data})[0]
        for each in (model, convert_version(model, lowest))
    )
    np.testing.assert_allclose(before, after, rtol=1e-6)
