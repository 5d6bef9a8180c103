"""Which function a node calls: domains, overloads, names of operators, and functions that call themselves."""

from __future__ import annotations

import onnx
import pytest
from onnx import NodeProto, helper
from support.calling import FEEDS, called, function, model, node
from support.running import assert_equal, build, op_types, run

from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused, InvalidModel


def squeezing() -> list[NodeProto]:
    return [node("Squeeze", ["a"], ["s"], axes=[0]), node("Softmax", ["s"], ["b"], axis=0)]


@pytest.mark.parametrize("of_function", ["", "ai.onnx"], ids=["empty", "spelled out"])
@pytest.mark.parametrize("of_node", ["", "ai.onnx"], ids=["empty", "spelled out"])
def test_a_function_comes_before_an_operator_of_the_default_domain(of_function: str, of_node: str) -> None:
    """However either spells the domain: this Squeeze keeps its attribute at any opset."""
    body = function("Squeeze", [node("Relu", ["a"], ["b"])], domain=of_function)
    before = model([node("Squeeze", ["x"], ["y"], of_node, axes=[0])], [body])
    assert convert_version(before, 13).graph == before.graph


def test_a_call_of_a_name_that_no_operator_has_is_no_unknown_operator() -> None:
    body = function("Nonesuch", squeezing(), domain="")
    before = build([node("Nonesuch", ["x"], ["y"])], FEEDS, ["y"], 11)
    before.functions.append(body)
    assert op_types(convert_version(before, 13)) == ["Nonesuch"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["F"], "local.F -> local.F"),
        (["F", "G"], "local.F -> local.G -> local.F"),
        (["F", "G", "H"], "local.F -> local.G -> local.H -> local.F"),
    ],
    ids=["itself", "each other", "each other in a ring"],
)
def test_functions_that_call_themselves_have_no_meaning(names: list[str], said: str) -> None:
    ring = zip(names, [*names[1:], names[0]], strict=True)
    functions = [function(name, [node(other, ["a"], ["b"], "local")]) for name, other in ring]
    with pytest.raises(InvalidModel) as caught:
        convert_version(model([node("F", ["x"], ["y"], "local")], functions), 13)
    cycle = caught.value.reason.removeprefix("functions call themselves: ").split(" -> ")
    start = cycle.index("local.F")
    assert cycle[0] == cycle[-1]
    assert " -> ".join([*cycle[start:-1], *cycle[:start], "local.F"]) == said
    assert caught.value.remedy


def test_a_call_in_a_graph_within_counts_for_the_ring() -> None:
    branch = helper.make_graph(
        [node("F", ["a"], ["t"], "local")], "branch", [], [helper.make_tensor_value_info("t", 1, None)]
    )
    nodes = [
        node("Cast", ["a"], ["yes"], to=9),
        node("If", ["yes"], ["b"], then_branch=branch, else_branch=branch),
    ]
    with pytest.raises(InvalidModel, match=r"local\.F -> local\.F"):
        convert_version(called(function("F", nodes)), 13)


# Overloads


def overloaded() -> onnx.ModelProto:
    """Two functions of one name."""
    functions = [
        function("Cut", squeezing(), overload="soft"),
        function("Cut", [node("Squeeze", ["a"], ["b"], axes=[0])], overload="plain"),
    ]
    nodes = [
        node("Cut", ["x"], ["c"], "local", overload="soft"),
        node("Unsqueeze", ["c"], ["d"], axes=[0]),
        node("Cut", ["d"], ["y"], "local", overload="plain"),
    ]
    return model(nodes, functions)


def test_each_overload_is_a_function_of_its_own() -> None:
    after = convert_version(overloaded(), 13)
    assert [each.overload for each in after.functions] == ["soft", "plain"]
    assert_equal(run(after, FEEDS), run(overloaded(), FEEDS))


def test_a_call_of_an_overload_that_is_not_there_has_no_meaning() -> None:
    before = overloaded()
    before.graph.node[2].overload = "fancy"
    with pytest.raises(InvalidModel) as caught:
        convert_version(before, 13)
    assert "no function local.Cut has overload 'fancy'" in caught.value.reason
    assert "'soft', 'plain'" in caught.value.remedy


def test_an_overload_of_a_standard_name_leaves_the_operator_alone() -> None:
    """Squeeze without an overload is the operator; with one it is the function."""
    body = function("Squeeze", [node("Relu", ["a"], ["b"])], domain="", overload="mine")
    nodes = [node("Squeeze", ["x"], ["c"], axes=[0]), node("Squeeze", ["c"], ["y"], overload="mine")]
    after = convert_version(model(nodes, [body]), 13)
    assert [len(each.input) for each in after.graph.node] == [2, 1]


def test_two_functions_of_one_name_have_no_meaning() -> None:
    functions = [function("Cut", squeezing()), function("Cut", squeezing())]
    with pytest.raises(InvalidModel, match=r"function local\.Cut is defined twice"):
        convert_version(model([node("Cut", ["x"], ["y"], "local")], functions), 13)


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [(["x", "x"], ["y"], "2 inputs; function local.Cut has 1"), (["x"], ["y", "z"], "2 outputs")],
    ids=["more inputs", "more outputs"],
)
def test_a_call_has_no_more_than_the_function_has(inputs: list[str], outputs: list[str], said: str) -> None:
    before = model([node("Cut", inputs, outputs, "local")], [function("Cut", squeezing())])
    with pytest.raises(InvalidModel, match=said):
        convert_version(before, 13)


# Names of operators


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("Shape", node("Softmax", ["x"], ["y"], axis=1)),
        ("Squeeze", node("Unsqueeze", ["x"], ["y"], axes=[0])),
        ("Constant", node("Unsqueeze", ["x"], ["y"], axes=[0])),
    ],
    ids=["an operator that new nodes need", "an operator that nobody needs", "Constant, in a graph"],
)
def test_new_nodes_are_no_calls(name: str, changed: NodeProto) -> None:
    """A new Shape would be a call of the model's own Shape."""
    body = function(name, [node("Relu", ["a"], ["b"])], domain="")
    before = model([changed], [body])
    try:
        after = convert_version(before, 13)
    except ConversionRefused as error:
        (refusal,) = error.refusals
        assert f"it needs the operator {name}, but a function of the model has that name" in refusal.reason
        assert f"rename the function ai.onnx.{name}" in refusal.remedy
    else:
        assert name not in op_types(after)
