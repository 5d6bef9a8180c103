"""Functions that cannot be converted once for all calls: some of their calls get a copy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.calling import FEEDS, INT, INTS, call, function, model, node, with_references
from support.running import Feeds, assert_equal, run

from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.errors import ConversionRefused
from opshift.converter.report import SpecialisedFunction

AXES: Feeds = {"axes": np.array([0])}
BOUNDS: Feeds = {"low": np.array(-1, np.float32), "high": np.array(1.5, np.float32)}


def soft(opset: int = 11) -> onnx.FunctionProto:
    """The axis is what the call says; by default 1."""
    return function("Soft", [with_references(node("Softmax", ["a"], ["b"]), axis=("where", INT))], opset)


def two_values_of_an_attribute() -> onnx.ModelProto:
    return model([call("Soft", ["x"], ["m"], where=1), call("Soft", ["m"], ["y"], where=2)], [soft()])


def stated_by_one_call_only() -> onnx.ModelProto:
    """What Softmax does without an axis is not the same at 11 and 13."""
    return model([call("Soft", ["x"], ["m"], where=2), call("Soft", ["m"], ["y"])], [soft()])


def passed_on() -> onnx.ModelProto:
    """The attribute comes from the call of the function around."""
    inner = with_references(call("Soft", ["a"], ["b"]), where=("axis", INT))
    nodes = [call("Outer", ["x"], ["m"], axis=1), call("Outer", ["m"], ["y"], axis=2)]
    return model(nodes, [function("Outer", [inner]), soft()])


def an_attribute_that_becomes_an_input() -> onnx.ModelProto:
    body = function("Cut", [with_references(node("ReduceSum", ["a"], ["b"]), axes=("where", INTS))])
    nodes = [call("Cut", ["x"], ["m"], where=[1]), call("Cut", ["m"], ["y"], where=[2])]
    return model(nodes, [body])


def two_ranks() -> onnx.ModelProto:
    body = function("Soft", [node("Softmax", ["a"], ["b"], axis=0)], 13)
    nodes = [call("Soft", ["x"], ["m"]), node("Squeeze", ["m", "axes"], ["r"]), call("Soft", ["r"], ["y"])]
    return model(nodes, [body], 13, initializers=AXES)


def two_ranks_in_a_function_within() -> onnx.ModelProto:
    before = two_ranks()
    for each in before.graph.node:
        each.op_type = each.op_type.replace("Soft", "Outer")
    before.functions.append(function("Outer", [call("Soft", ["a"], ["b"])], 13))
    return before


def two_types() -> onnx.ModelProto:
    """The bounds of Clip are of the type of its input."""
    body = function("Cut", [node("Clip", ["a"], ["b"], min=0.5)], 10)
    nodes = [
        call("Cut", ["x"], ["m"]),
        node("Cast", ["m"], ["h"], to=TensorProto.FLOAT16),
        node("Identity", ["h"], ["i"]),
        node("Cast", ["i"], ["n"], to=TensorProto.FLOAT),
        call("Cut", ["n"], ["y"]),
    ]
    return model(nodes, [body], 10)


def reshaping() -> onnx.FunctionProto:
    """Before 5 the shape is an attribute."""
    nodes = [node("Reshape", ["a", "shape"], ["b"])]
    return function("To", nodes, 7, inputs=("a", "shape"))


def two_constants() -> onnx.ModelProto:
    nodes = [call("To", ["x", "one"], ["m"]), call("To", ["m", "two"], ["y"])]
    shapes: Feeds = {"one": np.array([4, 3]), "two": np.array([2, 6])}
    return model(nodes, [reshaping()], 7, initializers=shapes)


def inputs_left_out() -> onnx.ModelProto:
    body = function("Cut", [node("Clip", ["a", "low", "high"], ["b"])], inputs=("a", "low", "high"))
    nodes = [
        call("Cut", ["x", "low"], ["m"]),
        call("Cut", ["m", "", "high"], ["n"]),
        call("Cut", ["n"], ["y"]),
    ]
    return model(nodes, [body], initializers=BOUNDS)


def inputs_left_out_of_a_function_around() -> onnx.ModelProto:
    before = inputs_left_out()
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


def branches_of_the_function() -> onnx.ModelProto:
    """The axis is read in a graph of the function."""
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
        (two_values_of_an_attribute, 13, {"local.Soft": ("Soft_2",)}),
        (stated_by_one_call_only, 13, {"local.Soft": ("Soft_2",)}),
        (passed_on, 13, {"local.Outer": ("Outer_2",), "local.Soft": ("Soft_2",)}),
        (an_attribute_that_becomes_an_input, 13, {"local.Cut": ("Cut_2",)}),
        (two_ranks, 11, {"local.Soft": ("Soft_2",)}),
        (two_ranks_in_a_function_within, 11, {"local.Outer": ("Outer_2",), "local.Soft": ("Soft_2",)}),
        (two_types, 13, {}),
        (two_constants, 4, {"local.To": ("To_2",)}),
        (inputs_left_out, 10, {"local.Cut": ("Cut_2", "Cut_3")}),
        (
            inputs_left_out_of_a_function_around,
            10,
            {"local.Outer": ("Outer_2", "Outer_3"), "local.Cut": ("Cut_2", "Cut_3")},
        ),
        (calls_in_branches, 13, {"local.Soft": ("Soft_2",)}),
        (branches_of_the_function, 13, {"local.F": ("F_2",)}),
    ],
    ids=[
        "an attribute has two values",
        "an attribute is stated by one call only",
        "an attribute is passed on from two calls",
        "an attribute becomes an input",
        "an input has two ranks",
        "an input of the function around has two ranks",
        "an input has one type in two calls",
        "an input is two constants",
        "inputs are left out",
        "inputs of the function around are left out",
        "the calls are in branches",
        "the attribute is read in branches",
    ],
)
def test_numbers_stay_the_same_where(
    make: Callable[[], onnx.ModelProto], target: int, copies: dict[str, tuple[str, ...]]
) -> None:
    before = make()
    untouched = before.SerializeToString()
    result, report = convert(before, target)
    assert before.SerializeToString() == untouched
    assert {each.function: each.copies for each in report.specialised} == copies
    feeds: Feeds = {**FEEDS, "yes": np.array(False)} if len(before.graph.input) > 1 else FEEDS
    assert_equal(run(result, feeds), run(before, feeds))


def test_calls_that_agree_share_a_copy() -> None:
    nodes = [call("Soft", [f"v{i}"], [f"v{i + 1}"], where=1 + i % 2) for i in range(6)]
    before = model([node("Relu", ["x"], ["v0"]), *nodes, node("Relu", ["v6"], ["y"])], [soft()])
    result = convert_version(before, 13)
    assert [each.op_type for each in result.graph.node[1:-1]] == ["Soft", "Soft_2"] * 3
    assert_equal(run(result, FEEDS), run(before, FEEDS))


def test_what_can_be_converted_once_is() -> None:
    """Beside a function that is specialised; ranks that nobody asks for may differ."""
    before = two_ranks()
    before.functions.append(function("Plain", [node("Dropout", ["a"], ["b"])], 13))
    before.graph.node[-1].output[0] = "z"
    before.graph.node.append(call("Plain", ["z"], ["y"]))
    before.graph.node.append(call("Plain", ["m"], ["unused"]))
    report = convert(before, 11).report
    assert report.specialised == (SpecialisedFunction("local.Soft", ("Soft_2",)),)


def test_sizes_are_told_apart_only_if_ranks_do_not_do() -> None:
    """Three shapes of two ranks take two functions."""
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


def test_a_copy_is_called_like_nothing_else() -> None:
    before = two_values_of_an_attribute()
    before.functions.append(function("Soft_2", [node("Relu", ["a"], ["b"])]))
    before.graph.node[1].output[0] = "z"
    before.graph.node.append(call("Soft_3", ["z"], ["y"]))
    result = convert_version(before, 13)
    assert [each.name for each in result.functions] == ["Soft", "Soft_2", "Soft_4"]
    assert [each.op_type for each in result.graph.node] == ["Soft", "Soft_4", "Soft_3"]


def test_a_copy_has_all_that_the_function_has() -> None:
    before = two_values_of_an_attribute()
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
        (successor,) = (one for one in each.node if one.name == "soft")
        assert successor.doc_string == "of the node"


def test_calls_keep_all_but_the_name_of_the_function() -> None:
    before = two_values_of_an_attribute()
    before.graph.node[1].name, before.graph.node[1].doc_string = "second", "of the call"
    after = convert_version(before, 13).graph.node[1]
    after.op_type = "Soft"
    assert after == before.graph.node[1]


def test_a_call_of_an_overload_calls_a_copy_of_the_overload() -> None:
    before = two_values_of_an_attribute()
    before.functions.append(function("Soft", [node("Relu", ["a"], ["b"])]))
    before.functions[0].overload = "own"
    for each in before.graph.node:
        each.overload = "own"
    result = convert_version(before, 13)
    assert [each.op_type for each in result.graph.node] == ["Soft", "Soft_2"]
    assert [each.overload for each in result.graph.node] == ["own", "own"]
    assert_equal(run(result, FEEDS), run(before, FEEDS))


@pytest.mark.parametrize("inplace", [False, True], ids=["a copy", "in place"])
def test_the_model_is_changed_only_if_asked(inplace: bool) -> None:
    before = two_values_of_an_attribute()
    expected = run(before, FEEDS)
    untouched = before.SerializeToString()
    result = convert_version(before, 13, inplace=inplace)
    assert (result is before) == inplace
    assert (before.SerializeToString() == untouched) != inplace
    assert_equal(run(result, FEEDS), expected)


def test_training_graphs_call_copies_too() -> None:
    before = two_values_of_an_attribute()
    step = helper.make_graph([call("Soft", ["m"], ["new"], where=0)], "algorithm", [], [])
    before.training_info.add().algorithm.CopyFrom(step)
    result = convert_version(before, 13)
    assert result.training_info[0].algorithm.node[0].op_type == "Soft_3"
    assert len(result.functions) == 3


def test_what_no_copy_helps_is_refused_for_the_call() -> None:
    """The caller of the model gives its shape; that of the first call is constant."""
    before = two_constants()
    before.graph.input.append(helper.make_tensor_value_info("two", TensorProto.INT64, [2]))
    before.graph.node[0].name, before.graph.node[1].name = "first", "second"
    with pytest.raises(ConversionRefused) as caught:
        convert_version(before, 4)
    (refusal,) = caught.value.refusals
    assert refusal.place == "function local.To, called by 'second', node Reshape -> b"
    assert "'shape'" in refusal.reason


def test_a_plan_tells_the_copies() -> None:
    (copy,) = plan_version(two_values_of_an_attribute(), 13).copies
    assert (copy.index, copy.function, copy.name) == (0, "local.Soft", "Soft_2")
    assert len(copy.container.changes) == 1
