"""Functions that one conversion cannot serve for all calls are specialized into copies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.calls import FEEDS, INT, INTS, call, function, model, node, with_references
from support.execution import Feeds, assert_equal, run, run_reference

from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.refusals import ConversionRefused
from opshift.converter.report import SpecialisedFunction

AXES: Feeds = {"axes": np.array([0])}
BOUNDS: Feeds = {"low": np.array(-1, np.float32), "high": np.array(1.5, np.float32)}


def soft(opset: int = 11) -> onnx.FunctionProto:
    """Return a function with a Softmax that reads its axis from the call; the default is 1."""
    return function("Soft", [with_references(node("Softmax", ["a"], ["b"]), axis=("where", INT))], opset)


def two_attribute_values() -> onnx.ModelProto:
    return model([call("Soft", ["x"], ["m"], where=1), call("Soft", ["m"], ["y"], where=2)], [soft()])


def attribute_of_one_call() -> onnx.ModelProto:
    """The default axis of Softmax differs between opsets 11 and 13."""
    return model([call("Soft", ["x"], ["m"], where=2), call("Soft", ["m"], ["y"])], [soft()])


def forwarded_attribute() -> onnx.ModelProto:
    """The outer function forwards an attribute of its own call."""
    inner = with_references(call("Soft", ["a"], ["b"]), where=("axis", INT))
    nodes = [call("Outer", ["x"], ["m"], axis=1), call("Outer", ["m"], ["y"], axis=2)]
    return model(nodes, [function("Outer", [inner]), soft()])


def attribute_to_input() -> onnx.ModelProto:
    body = function("Cut", [with_references(node("ReduceSum", ["a"], ["b"]), axes=("where", INTS))])
    nodes = [call("Cut", ["x"], ["m"], where=[1]), call("Cut", ["m"], ["y"], where=[2])]
    return model(nodes, [body])


def two_ranks() -> onnx.ModelProto:
    body = function("Soft", [node("Softmax", ["a"], ["b"], axis=0)], 13)
    nodes = [call("Soft", ["x"], ["m"]), node("Squeeze", ["m", "axes"], ["r"]), call("Soft", ["r"], ["y"])]
    return model(nodes, [body], 13, initializers=AXES)


def two_ranks_in_nested_function() -> onnx.ModelProto:
    before = two_ranks()
    for each in before.graph.node:
        each.op_type = each.op_type.replace("Soft", "Outer")
    before.functions.append(function("Outer", [call("Soft", ["a"], ["b"])], 13))
    return before


def two_types() -> onnx.ModelProto:
    """The bounds of Clip have the type of its input."""
    body = function("Cut", [node("Clip", ["a"], ["b"], min=0.5)], 10)
    nodes = [
        call("Cut", ["x"], ["m"]),
        node("Cast", ["m"], ["h"], to=TensorProto.FLOAT16),
        node("Identity", ["h"], ["i"]),
        node("Cast", ["i"], ["n"], to=TensorProto.FLOAT),
        call("Cut", ["n"], ["y"]),
    ]
    return model(nodes, [body], 10)


def reshape_function() -> onnx.FunctionProto:
    """Return a function with a Reshape, whose shape is an attribute before opset 5."""
    nodes = [node("Reshape", ["a", "shape"], ["b"])]
    return function("To", nodes, 7, inputs=("a", "shape"))


def two_constants() -> onnx.ModelProto:
    nodes = [call("To", ["x", "one"], ["m"]), call("To", ["m", "two"], ["y"])]
    shapes: Feeds = {"one": np.array([4, 3]), "two": np.array([2, 6])}
    return model(nodes, [reshape_function()], 7, initializers=shapes)


def omitted_inputs() -> onnx.ModelProto:
    body = function("Cut", [node("Clip", ["a", "low", "high"], ["b"])], inputs=("a", "low", "high"))
    nodes = [
        call("Cut", ["x", "low"], ["m"]),
        call("Cut", ["m", "", "high"], ["n"]),
        call("Cut", ["n"], ["y"]),
    ]
    return model(nodes, [body], initializers=BOUNDS)


def omitted_inputs_of_outer_function() -> onnx.ModelProto:
    before = omitted_inputs()
    for each in before.graph.node:
        each.op_type = "Outer"
    inner = call("Cut", ["a", "low", "high"], ["b"])
    before.functions.append(function("Outer", [inner], inputs=("a", "low", "high")))
    return before


def calls_in_branches() -> onnx.ModelProto:
    branches = {
        name: helper.make_graph(
            [call("Soft", ["x"], [name[0]], where=axis)],
            name,
            [],
            [helper.make_tensor_value_info(name[0], TensorProto.FLOAT, None)],
        )
        for name, axis in (("then_branch", 1), ("else_branch", 2))
    }
    feeds = {**FEEDS, "yes": np.array(False)}
    return model([node("If", ["yes"], ["y"], **branches)], [soft()], feeds=feeds)


def attribute_in_branches() -> onnx.ModelProto:
    """Subgraphs of the function read the axis."""
    bodies = {
        name: helper.make_graph(
            [with_references(node("Softmax", ["a"], [name[0]]), axis=(where, INT))],
            name,
            [],
            [helper.make_tensor_value_info(name[0], TensorProto.FLOAT, None)],
        )
        for name, where in (("then_branch", "yes"), ("else_branch", "no"))
    }
    nodes = [node("ReduceMax", ["a"], ["m"], keepdims=0), node("Cast", ["m"], ["c"], to=TensorProto.BOOL)]
    body = function("F", [*nodes, node("If", ["c"], ["b"], **bodies)])
    calls = [call("F", ["x"], ["m"], yes=1, no=2), call("F", ["m"], ["y"], yes=2, no=2)]
    return model(calls, [body])


@pytest.mark.parametrize(
    ("make", "target", "copies"),
    [
        (two_attribute_values, 13, {"local.Soft": ("Soft_2",)}),
        (attribute_of_one_call, 13, {"local.Soft": ("Soft_2",)}),
        (forwarded_attribute, 13, {"local.Outer": ("Outer_2",), "local.Soft": ("Soft_2",)}),
        (attribute_to_input, 13, {"local.Cut": ("Cut_2",)}),
        (two_ranks, 11, {"local.Soft": ("Soft_2",)}),
        (two_ranks_in_nested_function, 11, {"local.Outer": ("Outer_2",), "local.Soft": ("Soft_2",)}),
        (two_types, 13, {}),
        (two_constants, 4, {"local.To": ("To_2",)}),
        (omitted_inputs, 10, {"local.Cut": ("Cut_2", "Cut_3")}),
        (
            omitted_inputs_of_outer_function,
            10,
            {"local.Outer": ("Outer_2", "Outer_3"), "local.Cut": ("Cut_2", "Cut_3")},
        ),
        (calls_in_branches, 13, {"local.Soft": ("Soft_2",)}),
        (attribute_in_branches, 13, {"local.F": ("F_2",)}),
    ],
    ids=[
        "attribute with two values",
        "attribute in only one call",
        "attribute forwarded from two calls",
        "attribute becomes an input",
        "input with two ranks",
        "input of the outer function with two ranks",
        "input with one type in two calls",
        "input with two constants",
        "omitted inputs",
        "omitted inputs of the outer function",
        "calls in branches",
        "attribute read in branches",
    ],
)
def test_specializes_functions_and_preserves_outputs(
    make: Callable[[], onnx.ModelProto], target: int, copies: dict[str, tuple[str, ...]]
) -> None:
    before = make()
    serialized = before.SerializeToString()
    result, report = convert(before, target)
    assert before.SerializeToString() == serialized
    assert {each.function: each.copies for each in report.specialised} == copies
    feeds: Feeds = {**FEEDS, "yes": np.array(False)} if len(before.graph.input) > 1 else FEEDS
    assert_equal(run(result, feeds), run(before, feeds))


def test_calls_with_equal_facts_share_a_copy() -> None:
    nodes = [call("Soft", [f"v{i}"], [f"v{i + 1}"], where=1 + i % 2) for i in range(6)]
    before = model([node("Relu", ["x"], ["v0"]), *nodes, node("Relu", ["v6"], ["y"])], [soft()])
    result = convert_version(before, 13)
    assert [each.op_type for each in result.graph.node[1:-1]] == ["Soft", "Soft_2"] * 3
    assert_equal(run(result, FEEDS), run(before, FEEDS))


def test_specializes_only_where_a_step_queries_the_difference() -> None:
    """The ranks of the calls of Plain differ, but no step queries them."""
    before = two_ranks()
    before.functions.append(function("Plain", [node("Dropout", ["a"], ["b"])], 13))
    before.graph.node[-1].output[0] = "z"
    before.graph.node.append(call("Plain", ["z"], ["y"]))
    before.graph.node.append(call("Plain", ["m"], ["unused"]))
    report = convert(before, 11).report
    assert report.specialised == (SpecialisedFunction("local.Soft", ("Soft_2",)),)


def test_specializes_by_rank_before_shape() -> None:
    """Three shapes with two ranks need two functions."""
    body = function("Soft", [node("Softmax", ["a"], ["b"], axis=0)], 13)
    nodes = [
        call("Soft", ["x"], ["m"]),
        node("Concat", ["m", "m"], ["c"], axis=1),
        call("Soft", ["c"], ["d"]),
        node("Squeeze", ["d", "axes"], ["r"]),
        call("Soft", ["r"], ["y"]),
    ]
    report = convert(model(nodes, [body], 13, initializers=AXES), 11).report
    assert report.specialised == (SpecialisedFunction("local.Soft", ("Soft_2",)),)


def test_copies_have_unused_names() -> None:
    before = two_attribute_values()
    before.functions.append(function("Soft_2", [node("Relu", ["a"], ["b"])]))
    before.graph.node[1].output[0] = "z"
    before.graph.node.append(call("Soft_3", ["z"], ["y"]))
    result = convert_version(before, 13)
    assert [each.name for each in result.functions] == ["Soft", "Soft_4", "Soft_2"]
    assert [each.op_type for each in result.graph.node] == ["Soft", "Soft_4", "Soft_3"]


def test_copies_keep_metadata_and_kept_nodes() -> None:
    before = two_attribute_values()
    body = before.functions[0]
    body.doc_string, body.attribute[:] = "a note", ["where"]
    body.node[0].name, body.node[0].doc_string = "soft", "of the node"
    body.metadata_props.add(key="k", value="v")
    relu = node("Relu", ["b"], ["unread"], doc_string="kept")
    body.node.append(relu)
    first, second = convert_version(before, 13).functions
    for each in (first, second):
        assert (each.doc_string, list(each.attribute)) == ("a note", ["where"])
        assert [(one.key, one.value) for one in each.metadata_props] == [("k", "v")]
        assert each.node[-1] == relu
        (replacement,) = (one for one in each.node if one.name == "soft")
        assert replacement.doc_string == "of the node"


def test_calls_change_only_the_function_name() -> None:
    before = two_attribute_values()
    before.graph.node[1].name, before.graph.node[1].doc_string = "second", "of the call"
    after = convert_version(before, 13).graph.node[1]
    after.op_type = "Soft"
    assert after == before.graph.node[1]


def test_specializes_overloads() -> None:
    before = two_attribute_values()
    before.functions.append(function("Soft", [node("Relu", ["a"], ["b"])]))
    before.functions[0].overload = "own"
    for each in before.graph.node:
        each.overload = "own"
    result = convert_version(before, 13)
    assert [each.op_type for each in result.graph.node] == ["Soft", "Soft_2"]
    assert [each.overload for each in result.graph.node] == ["own", "own"]
    assert_equal(run(result, FEEDS), run(before, FEEDS))


@pytest.mark.parametrize("inplace", [False, True], ids=["copy", "in place"])
def test_changes_the_argument_only_in_place(inplace: bool) -> None:
    before = two_attribute_values()
    expected = run(before, FEEDS)
    serialized = before.SerializeToString()
    result = convert_version(before, 13, inplace=inplace)
    assert (result is before) == inplace
    assert (before.SerializeToString() == serialized) != inplace
    assert_equal(run(result, FEEDS), expected)


def test_training_graphs_call_copies() -> None:
    before = two_attribute_values()
    step = helper.make_graph([call("Soft", ["m"], ["new"], where=0)], "algorithm", [], [])
    before.training_info.add().algorithm.CopyFrom(step)
    result = convert_version(before, 13)
    assert result.training_info[0].algorithm.node[0].op_type == "Soft_3"
    assert len(result.functions) == 3


def test_refuses_calls_that_no_copy_can_serve() -> None:
    """The shape of the second call is a model input; that of the first call is constant."""
    before = two_constants()
    before.graph.input.append(helper.make_tensor_value_info("two", TensorProto.INT64, [2]))
    before.graph.node[0].name, before.graph.node[1].name = "first", "second"
    with pytest.raises(ConversionRefused) as caught:
        convert_version(before, 4)
    (refusal,) = caught.value.refusals
    assert refusal.place == "function local.To, called by 'second', node Reshape -> b"
    assert "'shape'" in refusal.reason


def test_copies_follow_their_originals() -> None:
    """Programs such as onnx.reference need the functions that a function calls before it."""
    before = forwarded_attribute()
    before.functions.reverse()
    result = convert_version(before, 13)
    assert [each.name for each in result.functions] == ["Soft", "Soft_2", "Outer", "Outer_2"]
    assert_equal(run_reference(result, FEEDS), run(before, FEEDS))


def test_conversion_back_removes_the_copies() -> None:
    before = forwarded_attribute()
    before.functions.reverse()
    result = convert_version(before, 13, reversible=True)
    assert_equal(run(result, FEEDS), run(before, FEEDS))
    assert convert_version(result, 11) == before


@pytest.mark.parametrize(
    ("without", "names"),
    [
        ("local", []),
        ("local.Inner", ["Outer", "Outer_2"]),
        ("local.Outer", ["Inner", "Inner_2"]),
        (["local.Inner", "local.Outer"], []),
    ],
    ids=str,
)
def test_copies_are_inlined_with_their_originals(without: str | list[str], names: list[str]) -> None:
    before = forwarded_attribute()
    outer, inner = before.functions
    inner.name = outer.node[0].op_type = "Inner"
    result = convert_version(before, 13, without=without)
    assert [each.name for each in result.functions] == names
    assert_equal(run(result, FEEDS), run(before, FEEDS))


def test_plan_lists_the_copies() -> None:
    (copy,) = plan_version(two_attribute_values(), 13).copies
    assert (copy.index, copy.function, copy.name) == (0, "local.Soft", "Soft_2")
    assert len(copy.container.changes) == 1
