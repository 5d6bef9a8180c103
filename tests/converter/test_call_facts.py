"""What is known of values that go into functions and come out of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.calling import FEEDS, FLOAT, INT, call, called, function, given, model, node
from support.running import Feeds, assert_equal, build, run

from opshift.converter.convert import convert_version, plan_version

AXES: Feeds = {"axes": np.array([0])}


def clipping() -> onnx.ModelProto:
    """Clip has to know the element type of its bounds."""
    return called(function("Cut", [node("Clip", ["a"], ["b"], min=0.5)], 10), 10)


def softening() -> onnx.ModelProto:
    """Softmax has to know the rank on the way down."""
    return called(function("Soft", [node("Softmax", ["a"], ["b"], axis=1)], 13), 13)


def twice_in_a_row() -> onnx.ModelProto:
    """The second call gets what the first returns."""
    body = function("Soft", [node("Softmax", ["a"], ["b"], axis=1)], 13)
    return model([call("Soft", ["x"], ["m"]), call("Soft", ["m"], ["y"])], [body], 13)


def after_a_call() -> onnx.ModelProto:
    """Clip gets what a function returns."""
    body = function("Twice", [node("Add", ["a", "a"], ["b"])], 10)
    nodes = [call("Twice", ["x"], ["m"]), node("Clip", ["m"], ["y"], min=0.5)]
    return model(nodes, [body], 10)


def after_calls_with_different_ranks() -> onnx.ModelProto:
    """Each call returns the rank that it was given."""
    body = function("Twice", [node("Add", ["a", "a"], ["b"])], 13)
    nodes = [
        call("Twice", ["x"], ["m"]),
        node("Softmax", ["m"], ["s"], axis=1),
        node("Squeeze", ["s", "axes"], ["r"]),
        call("Twice", ["r"], ["t"]),
        node("Softmax", ["t"], ["y"], axis=0),
    ]
    return model(nodes, [body], 13, initializers=AXES)


def through_a_constant() -> onnx.ModelProto:
    """The rank of what Reshape makes is told by the shape that the call gives."""
    body = function("To", [node("Reshape", ["a", "shape"], ["b"])], 13, inputs=("a", "shape"))
    nodes = [call("To", ["x", "shape"], ["m"]), node("Softmax", ["m"], ["y"], axis=0)]
    return model(nodes, [body], 13, initializers={"shape": np.array([4, 3])})


def function_in_function() -> onnx.ModelProto:
    inner = function("Soft", [node("Softmax", ["a"], ["b"], axis=1)], 13)
    outer = function("Outer", [node("Neg", ["a"], ["n"]), call("Soft", ["n"], ["b"])], 13)
    return model([call("Outer", ["x"], ["y"])], [outer, inner], 13)


def call_in_a_branch() -> onnx.ModelProto:
    body = function("Soft", [node("Softmax", ["a"], ["b"], axis=1)], 13)
    branches = {
        name: helper.make_graph(
            [call("Soft", ["x"], [name[0]])],
            name,
            [],
            [helper.make_tensor_value_info(name[0], TensorProto.FLOAT, None)],
        )
        for name in ("then_branch", "else_branch")
    }
    feeds = {**FEEDS, "yes": np.array(True)}
    return model([node("If", ["yes"], ["y"], **branches)], [body], 13, feeds=feeds)


def branch_in_a_function() -> onnx.ModelProto:
    """A graph in a function sees its inputs."""
    bodies = {
        name: helper.make_graph(
            [node("Softmax", ["a"], [name[0]], axis=1)],
            name,
            [],
            [helper.make_tensor_value_info(name[0], TensorProto.FLOAT, None)],
        )
        for name in ("then_branch", "else_branch")
    }
    nodes = [node("ReduceMax", ["a"], ["m"], keepdims=0), node("Cast", ["m"], ["c"], to=TensorProto.BOOL)]
    return called(function("F", [*nodes, node("If", ["c"], ["b"], **bodies)], 13), 13)


def type_from_an_attribute() -> onnx.ModelProto:
    """The call tells what type Cast makes."""
    cast = given(node("Cast", ["a"], ["b"]), to=("kind", INT))
    body = function("To", [cast], 10, attributes=["kind"])
    nodes = [
        call("To", ["x"], ["whole"], kind=TensorProto.INT32),
        call("To", ["whole"], ["m"], kind=TensorProto.FLOAT),
        node("Clip", ["m"], ["y"], min=0.5),
    ]
    return model(nodes, [body], 10)


def constant_from_a_call() -> onnx.ModelProto:
    """Squeeze takes axes that a function makes."""
    value = helper.make_tensor("axes", TensorProto.INT64, [1], [0])
    body = function("Axes", [node("Constant", [], ["b"], value=value)], 13, inputs=())
    nodes = [call("Axes", [], ["axes"]), node("Squeeze", ["x", "axes"], ["y"])]
    return model(nodes, [body], 13)


def constant_to_a_call() -> onnx.ModelProto:
    body = function("Cut", [node("Squeeze", ["a", "axes"], ["b"])], 13, inputs=("a", "axes"))
    return model([call("Cut", ["x", "axes"], ["y"])], [body], 13, initializers=AXES)


def constant_through_two_calls() -> onnx.ModelProto:
    inner = function("Cut", [node("Squeeze", ["a", "axes"], ["b"])], 13, inputs=("a", "axes"))
    same = node("Identity", ["where"], ["axes"])
    outer = function("Outer", [same, call("Cut", ["a", "axes"], ["b"])], 13, inputs=("a", "where"))
    return model([call("Outer", ["x", "axes"], ["y"])], [outer, inner], 13, initializers=AXES)


def softening_somewhere() -> onnx.FunctionProto:
    """The axis is what the call says."""
    return function("Soft", [given(node("Softmax", ["a"], ["b"]), axis=("where", INT))])


def attribute_by_default() -> onnx.ModelProto:
    body = softening_somewhere()
    body.attribute_proto.append(helper.make_attribute("where", 1))
    return called(body)


@pytest.mark.parametrize(
    ("make", "target"),
    [
        (clipping, 13),
        (softening, 11),
        (twice_in_a_row, 11),
        (after_a_call, 13),
        (after_calls_with_different_ranks, 11),
        (through_a_constant, 11),
        (function_in_function, 11),
        (call_in_a_branch, 11),
        (branch_in_a_function, 11),
        (type_from_an_attribute, 13),
        (constant_from_a_call, 11),
        (constant_to_a_call, 11),
        (constant_through_two_calls, 11),
        (attribute_by_default, 13),
        (lambda: called(softening_somewhere(), where=1), 13),
        (lambda: called(softening_somewhere()), 13),
    ],
    ids=[
        "the type of an input",
        "the rank of an input",
        "what the same function returned",
        "the type of what a function returns",
        "the rank of what each of two calls returns",
        "a rank that a constant of the call tells",
        "the rank of an input of the function around",
        "the rank of an input, called in a branch",
        "the rank of an input, in a branch of the function",
        "a type that an attribute of the call tells",
        "a constant that a function makes",
        "a constant that the call gives",
        "a constant that passes through a function",
        "an attribute that the function states by default",
        "an attribute that the call states",
        "an attribute that nobody states",
    ],
)
def test_it_is_known(make: Callable[[], onnx.ModelProto], target: int) -> None:
    before = make()
    feeds: Feeds = {**FEEDS, "yes": np.array(True)} if len(before.graph.input) > 1 else FEEDS
    plan = plan_version(before, target)
    assert plan.refusals == ()
    assert plan.copies == ()
    assert_equal(run(convert_version(before, target), feeds), run(before, feeds))


def test_a_value_that_the_caller_of_the_model_may_override_is_no_constant() -> None:
    before = constant_to_a_call()
    before.graph.input.append(helper.make_tensor_value_info("axes", TensorProto.INT64, [1]))
    after = convert_version(before, 11)
    feeds = {"x": FEEDS["x"].reshape(3, 1, 4), "axes": np.array([1])}
    after.graph.input[0].type.tensor_type.ClearField("shape")
    assert_equal(run(after, feeds), [FEEDS["x"].reshape(3, 4)])


def test_a_function_named_as_an_operator_is_not_taken_for_it() -> None:
    """This Identity of the model's own makes something else of its input."""
    body = function("Identity", [node("Neg", ["a"], ["b"])], 13, domain="")
    nodes = [node("Identity", ["axes"], ["where"]), node("Squeeze", ["x", "where"], ["y"])]
    before = build(nodes, FEEDS, ["y"], 13, initializers=AXES)
    before.functions.append(body)
    after = convert_version(before, 11)
    assert "where" in {name for each in after.graph.node[1:] for name in each.input}


def test_a_function_named_as_an_operator_has_the_types_of_its_body() -> None:
    """This Relu of the model's own returns float16."""
    body = function("Relu", [node("Cast", ["a"], ["b"], to=TensorProto.FLOAT16)], 10, domain="")
    nodes = [node("Relu", ["x"], ["m"]), node("Clip", ["m"], ["y"], min=0.5)]
    before = build(nodes, FEEDS, {"y": TensorProto.FLOAT16}, 10)
    before.functions.append(body)
    bounds = convert_version(before, 13).graph.initializer
    assert {each.data_type for each in bounds} == {TensorProto.FLOAT16}


def test_a_reference_that_the_calls_agree_on_is_kept_where_it_can_be() -> None:
    """Only what a step has to read is written out."""
    selu = given(node("Selu", ["a"], ["s"]), alpha=("slope", FLOAT))
    soft = given(node("Softmax", ["s"], ["b"]), axis=("where", INT))
    before = called(function("F", [selu, soft], attributes=["slope", "where"]), slope=2.0, where=1)
    after = convert_version(before, 13)
    assert after.functions[0].node[0] == selu
    assert list(after.functions[0].attribute) == ["slope", "where"]
    assert after.graph.node[0] == before.graph.node[0]
    assert_equal(run(after, FEEDS), run(before, FEEDS))


def test_calls_of_functions_that_nobody_calls_do_not_count() -> None:
    """Of them nothing is known, and they are never run."""
    soft = function("Soft", [node("Softmax", ["a"], ["b"], axis=1)], 13)
    idle = function("Idle", [call("Soft", ["a"], ["b"])], 13)
    before = model([call("Soft", ["x"], ["y"])], [soft, idle], 13)
    assert_equal(run(convert_version(before, 11), FEEDS), run(before, FEEDS))


def nesting(depth: int, calls: int = 1) -> onnx.ModelProto:
    """Functions that call each other `calls` times, so many deep; the innermost needs a rank."""
    functions = [function("F0", [node("Softmax", ["a"], ["b"], axis=1)], 13)]
    for level in range(1, depth):
        names = ["a", *(f"v{i}" for i in range(1, calls)), "b"]
        body = [call(f"F{level - 1}", [one], [other]) for one, other in pairwise(names)]
        functions.append(function(f"F{level}", body, 13))
    return model([call(f"F{depth - 1}", ["x"], ["y"])], functions, 13)


def test_facts_go_far() -> None:
    assert plan_version(nesting(20), 11).refusals == ()


def test_facts_that_come_from_too_far_are_not_known() -> None:
    """Each call within a call takes room on Python's stack."""
    (refusal,) = plan_version(nesting(400), 11).refusals
    assert "the rank of 'a' is unknown" in refusal.reason


def test_calls_that_tell_the_same_are_looked_at_once() -> None:
    """Functions that call each other twice would have 2^30 nodes."""
    before = nesting(30, calls=2)
    before.graph.node.append(node("Softmax", ["y"], ["z"], axis=1))
    assert plan_version(before, 11).refusals == ()
