"""Resolution of calls: domains, overloads, functions that shadow operators, and recursion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper, parser
from support.calls import FEEDS, calling_model, function, model, node
from support.execution import assert_equal, build, op_types, run

from opshift.analysis.infer import infer
from opshift.checker.check import check
from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused
from opshift.inference.call_facts import CallFacts, CallSite, Fact
from opshift.inference.root_scopes import add_call_facts, root_scopes
from opshift.inference.scope import SHAPES
from opshift.model.errors import InvalidModel
from opshift.registry.registry import default_registry


def squeeze_and_softmax() -> list[NodeProto]:
    return [node("Squeeze", ["a"], ["s"], axes=[0]), node("Softmax", ["s"], ["b"], axis=0)]


@pytest.mark.parametrize("function_domain", ["", "ai.onnx"], ids=["empty", "explicit"])
@pytest.mark.parametrize("node_domain", ["", "ai.onnx"], ids=["empty", "explicit"])
def test_function_takes_precedence_over_an_operator(function_domain: str, node_domain: str) -> None:
    """The model-local Squeeze keeps its attribute at every opset, under both names of the domain."""
    body = function("Squeeze", [node("Relu", ["a"], ["b"])], domain=function_domain)
    before = model([node("Squeeze", ["x"], ["y"], node_domain, axes=[0])], [body])
    assert convert_version(before, 13).graph == before.graph


def test_call_is_not_an_unknown_operator() -> None:
    body = function("Nonesuch", squeeze_and_softmax(), domain="")
    before = build([node("Nonesuch", ["x"], ["y"])], FEEDS, ["y"], 11)
    before.functions.append(body)
    assert op_types(convert_version(before, 13)) == ["Nonesuch"]


def test_function_takes_precedence_over_a_removed_operator() -> None:
    """Inference takes the type from the function: the removed Crop returns the type of its input."""
    body = function("Crop", [node("Cast", ["a"], ["b"], to=onnx.TensorProto.DOUBLE)], domain="")
    nodes = [node("Crop", ["x"], ["c"]), node("Scale", ["c"], ["y"], scale=2.0)]
    before = build(nodes, FEEDS, {"y": onnx.TensorProto.DOUBLE}, 11)
    before.functions.append(body)
    found = convert_version(before, 13)
    assert op_types(found) == ["Crop", "Mul"]
    assert [each.data_type for each in found.graph.initializer] == [onnx.TensorProto.DOUBLE]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["F"], "local.F -> local.F"),
        (["F", "G"], "local.F -> local.G -> local.F"),
        (["F", "G", "H"], "local.F -> local.G -> local.H -> local.F"),
    ],
    ids=["one function", "two functions", "three functions"],
)
def test_rejects_recursive_functions(names: list[str], expected: str) -> None:
    pairs = zip(names, [*names[1:], names[0]], strict=True)
    functions = [function(name, [node(other, ["a"], ["b"], "local")]) for name, other in pairs]
    with pytest.raises(InvalidModel) as caught:
        convert_version(model([node("F", ["x"], ["y"], "local")], functions), 13)
    cycle = caught.value.reason.removeprefix("functions call each other in a cycle: ").split(" -> ")
    start = cycle.index("local.F")
    assert cycle[0] == cycle[-1]
    assert " -> ".join([*cycle[start:-1], *cycle[:start], "local.F"]) == expected
    assert caught.value.remedy


def test_finds_recursion_through_subgraphs() -> None:
    branch = helper.make_graph(
        [node("F", ["a"], ["t"], "local")], "branch", [], [helper.make_tensor_value_info("t", 1, None)]
    )
    nodes = [
        node("Cast", ["a"], ["yes"], to=9),
        node("If", ["yes"], ["b"], then_branch=branch, else_branch=branch),
    ]
    with pytest.raises(InvalidModel, match=r"local\.F -> local\.F"):
        convert_version(calling_model(function("F", nodes)), 13)


# Overloads


def overloaded() -> onnx.ModelProto:
    """Return a model with two overloads of one function."""
    functions = [
        function("Cut", squeeze_and_softmax(), overload="soft"),
        function("Cut", [node("Squeeze", ["a"], ["b"], axes=[0])], overload="plain"),
    ]
    nodes = [
        node("Cut", ["x"], ["c"], "local", overload="soft"),
        node("Unsqueeze", ["c"], ["d"], axes=[0]),
        node("Cut", ["d"], ["y"], "local", overload="plain"),
    ]
    return model(nodes, functions)


def test_converts_overloads_separately() -> None:
    after = convert_version(overloaded(), 13)
    assert [each.overload for each in after.functions] == ["soft", "plain"]
    assert_equal(run(after, FEEDS), run(overloaded(), FEEDS))


def test_rejects_unknown_overloads() -> None:
    before = overloaded()
    before.graph.node[2].overload = "fancy"
    with pytest.raises(InvalidModel) as caught:
        convert_version(before, 13)
    assert "no function local.Cut has overload 'fancy'" in caught.value.reason
    assert "'soft', 'plain'" in caught.value.remedy


def test_overload_does_not_shadow_the_operator() -> None:
    """Squeeze without an overload is the operator; with an overload it is the function."""
    body = function("Squeeze", [node("Relu", ["a"], ["b"])], domain="", overload="mine")
    nodes = [node("Squeeze", ["x"], ["c"], axes=[0]), node("Squeeze", ["c"], ["y"], overload="mine")]
    after = convert_version(model(nodes, [body]), 13)
    assert [len(each.input) for each in after.graph.node] == [2, 1]


def test_overload_does_not_shadow_a_removed_operator() -> None:
    """Crop without an overload is the operator that opset 10 removed; with an overload it is the function."""
    body = function("Crop", [node("Relu", ["a"], ["b"])], domain="", overload="mine")
    nodes = [node("Crop", ["x"], ["c"], border=[0, 0, 1, 1]), node("Crop", ["c"], ["y"], overload="mine")]
    feeds = {"x": np.arange(-8, 8, dtype=np.float32).reshape(1, 1, 4, 4)}
    before = build(nodes, feeds, ["y"], 11, ir_version=10)
    before.functions.append(body)
    after = convert_version(before, 13)
    assert op_types(after) == ["Slice", "Crop"]
    assert_equal(run(after, feeds), [np.maximum(feeds["x"][:, :, :3, :3], 0)])


def test_models_without_functions_share_inferred_facts() -> None:
    def caches(content: onnx.ModelProto) -> list[object]:
        scopes = root_scopes(content, content, default_registry())
        return [scope.inference_cache(SHAPES) for scope, _, _ in scopes]

    plain = [model([node("Relu", ["x"], ["y"])], []) for _ in range(2)]
    assert caches(plain[0]) == caches(plain[1])
    own, other = caches(overloaded()), caches(overloaded())
    assert not [each for each in own if each in other]


def test_rejects_duplicate_functions() -> None:
    functions = [function("Cut", squeeze_and_softmax()), function("Cut", squeeze_and_softmax())]
    with pytest.raises(InvalidModel, match=r"function local\.Cut is defined twice"):
        convert_version(model([node("Cut", ["x"], ["y"], "local")], functions), 13)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [(["x", "x"], ["y"], "2 inputs; function local.Cut has 1"), (["x"], ["y", "z"], "2 outputs")],
    ids=["extra input", "extra output"],
)
def test_rejects_calls_with_extra_inputs_or_outputs(
    inputs: list[str], outputs: list[str], message: str
) -> None:
    before = model([node("Cut", inputs, outputs, "local")], [function("Cut", squeeze_and_softmax())])
    with pytest.raises(InvalidModel, match=message):
        convert_version(before, 13)


# Functions that shadow operators


@pytest.mark.parametrize(
    ("name", "rewritten"),
    [
        ("Shape", node("Softmax", ["x"], ["y"], axis=1)),
        ("Squeeze", node("Unsqueeze", ["x"], ["y"], axes=[0])),
        ("Constant", node("Unsqueeze", ["x"], ["y"], axes=[0])),
    ],
    ids=["operator of emitted nodes", "operator that is not emitted", "Constant in a graph"],
)
def test_emitted_nodes_never_call_functions(name: str, rewritten: NodeProto) -> None:
    """An emitted Shape node would call the model-local Shape."""
    body = function(name, [node("Relu", ["a"], ["b"])], domain="")
    before = model([rewritten], [body])
    try:
        after = convert_version(before, 13)
    except ConversionRefused as error:
        (refusal,) = error.refusals
        assert f"use the operator {name}, but a function of the model has that name" in refusal.reason
        assert f"rename the function ai.onnx.{name}" in refusal.remedy
    else:
        assert name not in op_types(after)


@pytest.mark.parametrize("op_type", ["Add", "Concat"])
def test_compares_each_call_once(op_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of a chain reads the one before: the questions about them interrupt each comparison."""
    attributes: dict[str, Any] = {"axis": 0} if op_type == "Concat" else {}
    body = function("F", [node(op_type, ["a", "a"], ["t"], **attributes), node("Relu", ["t"], ["b"])])
    count = 60
    names = ["x", *(f"v{position}" for position in range(count - 1)), "y"]
    chain = [node("F", [before], [after], body.domain) for before, after in pairwise(names)]
    compared: Counter[tuple[str, str, str]] = Counter()
    fact_of = CallFacts._fact_of

    def counted(self: CallFacts, call: CallSite, asked: Fact) -> Hashable:
        if len(self.calls) == count:
            compared[asked.kind, asked.name, call.node.outputs[0]] += 1
        return fact_of(self, call, asked)

    monkeypatch.setattr(CallFacts, "_fact_of", counted)
    check(model(chain, [body]))
    assert compared
    assert sum(compared.values()) < 4 * len(compared)


def test_many_questions_about_outer_values_do_not_end_at_the_node_that_asks() -> None:
    """A branch in a function reads values of callers, whose outputs depend on the branch."""
    count = 40
    names = [f"n{index}" for index in range(count)]
    inputs = ", ".join(names)
    before = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18, "local": 1]>
        g (bool c, {", ".join(f"int64[1] {name}" for name in names)}) => (float[a] y) {{
            list = local.join(c, {inputs})
            y = ConstantOfShape(list)
        }}
        <domain: "local", opset_import: ["": 18]>
        join (c, {inputs}) => (r) {{
            r = If(c) <
                then_branch = t() => (u) {{ u = Concat <axis = 0> ({inputs}) }},
                else_branch = e() => (v) {{ v = Concat <axis = 0> ({inputs}) }}
            >
        }}"""
    )
    found = infer(before).values
    assert found["list"].shape == (count,)
    assert len(found["y"].shape or ()) == count


CALLS_IN_EACH_ORDER = {
    "outer call first": "z = f.outer (x)  y = f.inner (x, m)",
    "inner call first": "y = f.inner (x, m)  z = f.outer (x)",
}


@pytest.mark.parametrize("nodes", CALLS_IN_EACH_ORDER.values(), ids=CALLS_IN_EACH_ORDER)
def test_call_facts_do_not_depend_on_the_order_of_calls(nodes: str) -> None:
    """One call of `inner` passes an input of `outer` that is omitted: the calls do not agree."""
    opset = '["": 17, "f": 1]'
    inner = f'<domain: "f", opset_import: {opset}> inner (a, b) => (r) {{ r = Clip (a, b) }}'
    outer = f'<domain: "f", opset_import: {opset}> outer (a, b) => (r) {{ r = f.inner (a, b) }}'
    header = f"<ir_version: 10, opset_import: {opset}> main (float[2] x, float m) => (float[2] y, float[2] z)"
    before = parser.parse_model(f"{header} {{ {nodes} }} {inner} {outer}")
    scopes = [scope for scope, _, _ in root_scopes(before, before, default_registry())]
    calls = add_call_facts(scopes)
    facts = scopes[1].call_facts
    assert len(calls[0]) == 2
    assert facts is not None
    assert facts.describe_disagreement(scopes[1].node_of(scopes[1].node_records[0]), scopes[1]) == "input 'b'"
