"""Conversions whose results may not contain some operators, domains or local functions."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper
from support.execution import assert_equal, build, run, run_reference
from support.forms import FORMS, in_form

from opshift import UsageError, convert, convert_file, convert_version, plan_version
from opshift.adapters.core.adapter_table import adapter, temporary_adapters
from opshift.adapters.core.rewriter import Rewriter
from opshift.converter.refusals import ConversionRefused
from opshift.model.graphs import nested_nodes
from opshift.model.node import Node
from opshift.registry.registry import Registry, default_registry

X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
FEEDS = {"x": X}

# Operators expressed at an older opset, by a function body of the version, of a later version or of an older
# one, and by a body that depends on the node.
STANDARD = {
    "Gelu at opset 20": (helper.make_node("Gelu", ["x"], ["y"], approximate="tanh"), 20, 20),
    "Mish at opset 22": (helper.make_node("Mish", ["x"], ["y"]), 22, 22),
    "HardSwish at opset 14": (helper.make_node("HardSwish", ["x"], ["y"]), 14, 18),
    "Softmax at opset 11": (helper.make_node("Softmax", ["x"], ["y"], axis=1), 11, 11),
    "Softmax at opset 13": (helper.make_node("Softmax", ["x"], ["y"], axis=1), 13, 21),
    "Softplus at opset 7": (helper.make_node("Softplus", ["x"], ["y"]), 7, 9),
    "Selu at opset 7": (helper.make_node("Selu", ["x"], ["y"], alpha=1.5), 7, 10),
}


@pytest.mark.parametrize("form", [each for each in FORMS if each not in ("initializer", "computed")])
@pytest.mark.parametrize("case", STANDARD)
def test_other_operators_express_a_standard_operator(case: str, form: str) -> None:
    node, opset, target = STANDARD[case]
    nodes = [helper.make_node("Identity", ["x"], ["h"]), node]
    model, feeds = in_form(form, nodes, FEEDS, {"y": TensorProto.FLOAT}, opset)
    if form == "no shapes" and case == "Softmax at opset 11":
        pytest.skip("the rank decides about the nodes")
    result = convert_version(model, target, without=node.op_type)
    assert node.op_type not in {each.op_type for each in nested_nodes(result.graph, *result.functions)}
    assert_equal(run(result, feeds), run(model, feeds))


def test_target_is_optional() -> None:
    model = build([STANDARD["Mish at opset 22"][0]], FEEDS, ["y"], 22, ir_version=10)
    result = convert_version(model, without=["ai.onnx.Mish", "com.absent"])
    assert (result.opset_import[0].version, result.ir_version) == (22, 10)
    assert_equal(run(result, FEEDS), run(model, FEEDS))
    with pytest.raises(UsageError, match="no target is given"):
        convert_version(model)


def test_emitted_nodes_are_expressed_too() -> None:
    model = build([helper.make_node("Mish", ["x"], ["y"])], FEEDS, ["y"], 18)
    assert "Softplus" in {each.op_type for each in convert_version(model, without="Mish").graph.node}
    result = convert_version(model, without=["Mish", "Softplus"])
    assert {"Mish", "Softplus"}.isdisjoint(each.op_type for each in result.graph.node)
    assert_equal(run(result, FEEDS), run(model, FEEDS))


def test_refuses_all_nodes_without_an_equivalent_and_leaves_the_model_unchanged() -> None:
    nodes = [helper.make_node("Sin", ["x"], ["a"], "one"), helper.make_node("Sin", ["a"], ["y"], "two")]
    model = build(nodes, FEEDS, ["y"], 17)
    before = model.SerializeToString(deterministic=True)
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 18, without="Sin", inplace=True)
    first, second = caught.value.refusals
    assert (first.place, second.place) == ("graph, node 'one'", "graph, node 'two'")
    assert first.reason.startswith("no other operators can replace ai.onnx.Sin:7: no operator of opset 6")
    assert first.remedy.startswith("keep the operator, or define it")
    assert (first.code, first.nearest) == ("operator.no-equivalent", 0)
    assert model.SerializeToString(deterministic=True) == before
    assert pickle.loads(pickle.dumps(caught.value)).refusals == caught.value.refusals


def test_refuses_operators_that_express_each_other() -> None:
    scatter = helper.make_node("ScatterElements", ["x", "i", "x"], ["y"])
    model = build([scatter], {"x": X[0], "i": np.zeros((3, 4), np.int64)}, ["y"], 18)
    reason = (
        "ai.onnx.ScatterElements:11 expands into operators that expand into ai.onnx.ScatterElements:11 again"
    )
    assert plan_version(model, without="ScatterElements").refusals[0].reason == reason


@pytest.mark.parametrize(
    ("without", "reason"),
    [
        ("Gellu", "'Gellu' is not an operator or a domain; did you mean 'Gelu'?"),
        ("ai.onnx.ml.Scalar", "'ai.onnx.ml.Scalar' is not an operator or a domain; did you mean"),
        ("ai.onnx", "'ai.onnx' is not an operator or domain that other operators can express"),
        ("", "'' is not an operator or domain"),
        ("ai.onnx.Gelu:20", "'ai.onnx.Gelu:20' is not an operator or a domain"),
    ],
)
def test_refuses_names(without: str, reason: str) -> None:
    model = build([STANDARD["Gelu at opset 20"][0]], FEEDS, ["y"], 20)
    with pytest.raises(UsageError, match=reason) as caught:
        convert_version(model, 20, without=without)
    assert caught.value.remedy == "pass a domain such as com.microsoft, or an operator such as ai.onnx.Gelu"


@pytest.mark.parametrize(
    ("without", "reason"),
    [
        ([1], "1 is not the name of an operator or domain"),
        (1, "1 is not the name of an operator or domain"),
        (b"com.microsoft", "b'com.microsoft' is not the name"),
        (["com.microsoft", b"com.acme"], "b'com.acme' is not the name"),
        ([["Gelu"]], r"\['Gelu'\] is not the name"),
        ([None], "None is not the name"),
    ],
)
def test_refuses_what_is_not_a_name(without: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        convert_version("missing.onnx", 20, without=without)


def test_refuses_reversible_conversions() -> None:
    model = build([STANDARD["Gelu at opset 20"][0]], FEEDS, ["y"], 20)
    with pytest.raises(UsageError, match="would restore"):
        convert_version(model, 20, without="Gelu", reversible=True)
    older = convert_version(model, 19, reversible=True)
    assert "Gelu" in {each.op_type for each in convert_version(older, 20).graph.node}
    result = convert_version(older, 20, without="Gelu")
    assert "Gelu" not in {each.op_type for each in result.graph.node}
    assert_equal(run(result, FEEDS), run(model, FEEDS))


DOUBLE = """
domain: com.acme
name: Double
shape: same_as_first
versions:
- since_version: 1
  before: adapter
  inputs: [{name: X, type: T}]
  outputs: [{name: Y, type: T}]
  type_constraints: {T: [tensor(float)]}
  descriptions:
    operator: It doubles.
"""

OTHER = DOUBLE.replace("Double", "Other").replace("before: adapter", "before: {refuse: nothing expresses it}")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    folder = tmp_path / "com.acme"
    folder.mkdir()
    (folder / "Double.yaml").write_text(DOUBLE)
    (folder / "Other.yaml").write_text(OTHER)
    with temporary_adapters():

        @adapter("Double", 1, 0, domain="com.acme")
        def add(node: Node, out: Rewriter) -> None:
            """Add the value to itself, and limit it: Clip of opset 6 is converted further."""
            doubled = out.emit("Add", [node.inputs[0]] * 2, domain="", opset=7)
            out.emit("Clip", [doubled], node.outputs, domain="", opset=6, min=-4.0)

        yield default_registry().with_folder(tmp_path)


def _acme(*op_types: str) -> onnx.ModelProto:
    names = ["x", *(f"h{index}" for index in range(len(op_types) - 1)), "y"]
    nodes = [
        helper.make_node(op_type, [one], [two], domain="com.acme")
        for op_type, one, two in zip(op_types, names, names[1:], strict=False)
    ]
    return build(nodes, FEEDS, ["y"], {"": 17, "com.acme": 1, "com.unread": 1})


def test_expresses_a_private_domain_and_removes_its_import(registry: Registry) -> None:
    model = _acme("Double", "Double")
    kept = convert_version(model, 18, registry=registry)
    assert {each.domain for each in kept.graph.node} == {"com.acme"}
    conversion = convert(model, 18, registry=registry, without="com.acme")
    result, report = conversion.model, conversion.report
    assert {each.domain: each.version for each in result.opset_import} == {"": 18, "com.unread": 1}
    assert report.repairs == report.requested == ("the import of com.acme is removed",)
    assert (report.removed_imports, report.warnings) == (("com.acme",), ())
    doubled = np.maximum(X * 2, -4)
    assert_equal(run(result, FEEDS), [np.maximum(doubled * 2, -4)])


def test_refuses_other_operators_of_the_domain(registry: Registry) -> None:
    with pytest.raises(ConversionRefused, match=r"com.acme.Other:1: no other operators can replace"):
        convert_version(_acme("Double", "Other"), registry=registry, without="com.acme")
    kept = convert_version(_acme("Double", "Other"), registry=registry, without="com.acme.Double")
    assert [each.op_type for each in kept.graph.node] == ["Add", "Clip", "Other"]


def test_refuses_a_domain_without_definitions() -> None:
    refusals = plan_version(_acme("Double", "Other"), without="com.acme").refusals
    assert [(each.operator, each.code) for each in refusals] == [
        ("com.acme.Double", "domain.unknown"),
        ("com.acme.Other", "domain.unknown"),
    ]


def test_removes_an_unread_import() -> None:
    model = build([helper.make_node("Relu", ["x"], ["y"])], FEEDS, ["y"], {"": 17, "com.unread": 1})
    plan = plan_version(model, without="com.unread")
    assert not plan.is_empty
    assert plan_version(model, without="com.absent").is_empty
    result = onnx.ModelProto.FromString(convert_version(model.SerializeToString(), without="com.unread"))
    assert [each.domain for each in result.opset_import] == [""]


FUNCTIONS = """
    <ir_version: 9, opset_import: ["": 20, "lib": 1, "kept": 1]>
    main (float[2, 3, 4] x) => (float[2, 3, 4] y) {
        a = lib.Scale <by = 3.0> (x)
        y = kept.Outer <alpha = 0.5> (a)
    }
    <domain: "lib", opset_import: ["": 20]>
    Scale <by> (v) => (w) {
        k = Constant <value_float: float = @by> ()
        s = Mul (v, k)
        w = Gelu (s)
    }
    <domain: "kept", opset_import: ["": 20, "lib": 1]>
    Outer <alpha> (v) => (w) {
        h = lib.Scale <by: float = @alpha> (v)
        w = Neg (h)
    }
    <domain: "lib", opset_import: ["": 20]>
    Unused (v) => (w) { w = Neg (v) }
"""


@pytest.mark.parametrize("target", [None, 18])
def test_inlines_functions_of_a_domain(target: int | None) -> None:
    model = onnx.parser.parse_model(FUNCTIONS)
    conversion = convert(model, target, without=["lib", "Gelu"])
    result, report = conversion.model, conversion.report
    onnx.checker.check_model(result)
    assert [each.name for each in result.functions] == ["Outer"]
    assert {each.domain for each in result.opset_import} == {"", "kept"}
    assert {each.domain for each in result.functions[0].opset_import} == {""}
    assert report.repairs[0] == "calls of the function lib.Scale are replaced by its nodes"
    assert_equal(run(result, FEEDS), run(model, FEEDS))


def test_inlines_one_function() -> None:
    model = onnx.parser.parse_model(FUNCTIONS)
    result = convert_version(model, without="kept.Outer")
    assert [each.name for each in result.functions] == ["Scale", "Unused"]
    assert_equal(run(result, FEEDS), run(model, FEEDS))


def test_a_function_without_imports_has_those_of_the_model() -> None:
    model = onnx.parser.parse_model(FUNCTIONS)
    expected = convert_version(model, without="lib")
    kept = next(each for each in model.functions if each.domain == "kept")
    kept.ClearField("opset_import")
    assert convert_version(model, without="lib") == expected


def test_refuses_a_function_of_another_opset() -> None:
    text = (
        FUNCTIONS.replace("Scale <by>", "Scale <by>")
        .replace(
            '<domain: "lib", opset_import: ["": 20]>\n    Scale',
            '<domain: "lib", opset_import: ["": 21]>\n    Scale',
        )
        .replace("w = Gelu (s)", "w = Reshape (s, n)\n n = Shape (v)")
    )
    model = onnx.parser.parse_model(text)
    (refusal,) = plan_version(model, without="lib").refusals
    assert refusal.reason == "it is written for opset 21 of ai.onnx, the graph for opset 20"
    assert refusal.remedy == "convert all domains of the function and of its callers to one opset"
    assert not plan_version(model, 21, without="lib").refusals


def test_converts_files(tmp_path: Path) -> None:
    model = build([STANDARD["Gelu at opset 20"][0]], FEEDS, ["y"], 20)
    onnx.save(model, tmp_path / "a.onnx")
    convert_file(tmp_path / "a.onnx", tmp_path / "b.onnx", without="Gelu")
    assert_equal(run(onnx.load(tmp_path / "b.onnx"), FEEDS), run(model, FEEDS))


@pytest.mark.parametrize("target", [13, 17, 21])
def test_expresses_flex_attention_at_older_opsets(target: int) -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "ai.onnx.preview": 1]>
    main (float[1, 2, 3, 4] q, float[1, 2, 3, 4] k, float[1, 2, 3, 4] v) => (float[1, 2, 3, 4] y) {
        y = ai.onnx.preview.FlexAttention (q, k, v)
    }"""
    result = convert_version(onnx.parser.parse_model(text), target, without="ai.onnx.preview")
    feeds = {name: X.reshape(1, 2, 3, 4) * scale for name, scale in (("q", 1.0), ("k", 0.5), ("v", 2.0))}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    scores = feeds["q"] @ feeds["k"].swapaxes(2, 3) / 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ feeds["v"]
    assert_equal(run(result, feeds), [expected])


FLEX = """<ir_version: 10, opset_import: ["": 21, "ai.onnx.preview": 1]>
main (float16[{dims}] q, float16[{dims}] k, float16[{dims}] v) => (float16[?, ?, ?, ?] y) {{
    y = ai.onnx.preview.FlexAttention {attributes}(q, k, v)
}}"""


@pytest.mark.parametrize("dims", ["1, 1, 2, 64", "a, b, c, d"], ids=["known sizes", "symbolic sizes"])
@pytest.mark.parametrize("attributes", ["", "<scale = 0.125>"])
def test_scores_of_flex_attention_do_not_overflow(dims: str, attributes: str) -> None:
    """Queries and keys are scaled before their product, which would be infinite in float16."""
    model = onnx.parser.parse_model(FLEX.format(dims=dims, attributes=attributes))
    query = np.full((1, 1, 2, 64), 60, np.float16)
    key = query + np.arange(2, dtype=np.float16).reshape(1, 1, 2, 1)
    feeds = {"q": query, "k": key, "v": np.ones((1, 1, 2, 64), np.float16) * np.array([[1], [3]], np.float16)}
    result = convert_version(model, 21, without="ai.onnx.preview")
    expected = run_reference(model, feeds)
    assert np.isfinite(expected[0]).all()
    assert_equal(run_reference(result, feeds), expected, 1e-2)
    assert_equal(run(result, feeds), expected, 1e-2)


def test_refuses_negative_scale_of_flex_attention() -> None:
    model = onnx.parser.parse_model(FLEX.format(dims="1, 1, 2, 64", attributes="<scale = -0.5>"))
    (refusal,) = plan_version(model, 21, without="ai.onnx.preview").refusals
    assert refusal.code == "result.undefined"
