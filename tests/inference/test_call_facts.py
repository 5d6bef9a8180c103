"""Facts about values that are passed to functions and returned by them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.calls import FEEDS, FLOAT, INT, call, calling_model, function, model, node, with_references
from support.execution import Feeds, assert_equal, build, run

from opshift.converter.convert import convert_version, plan_version

AXES: Feeds = {"axes": np.array([0])}


def clip_in_function() -> onnx.ModelProto:
    """Clip needs the element type of its bounds."""
    return calling_model(function("Cut", [node("Clip", ["a"], ["b"], min=0.5)], 10), 10)


def softmax_in_function() -> onnx.ModelProto:
    """Softmax needs the rank for a downgrade."""
    return calling_model(function("Soft", [node("Softmax", ["a"], ["b"], axis=1)], 13), 13)


def consecutive_calls() -> onnx.ModelProto:
    """The second call receives the result of the first."""
    body = function("Soft", [node("Softmax", ["a"], ["b"], axis=1)], 13)
    return model([call("Soft", ["x"], ["m"]), call("Soft", ["m"], ["y"])], [body], 13)


def clip_after_call() -> onnx.ModelProto:
    """Clip receives the result of a function."""
    body = function("Twice", [node("Add", ["a", "a"], ["b"])], 10)
    nodes = [call("Twice", ["x"], ["m"]), node("Clip", ["m"], ["y"], min=0.5)]
    return model(nodes, [body], 10)


def calls_with_different_ranks() -> onnx.ModelProto:
    """Each call returns a value with the rank of its argument."""
    body = function("Twice", [node("Add", ["a", "a"], ["b"])], 13)
    nodes = [
        call("Twice", ["x"], ["m"]),
        node("Softmax", ["m"], ["s"], axis=1),
        node("Squeeze", ["s", "axes"], ["r"]),
        call("Twice", ["r"], ["t"]),
        node("Softmax", ["t"], ["y"], axis=0),
    ]
    return model(nodes, [body], 13, initializers=AXES)


def rank_from_constant() -> onnx.ModelProto:
    """The shape argument of the call determines the rank of the Reshape output."""
    body = function("To", [node("Reshape", ["a", "shape"], ["b"])], 13, inputs=("a", "shape"))
    nodes = [call("To", ["x", "shape"], ["m"]), node("Softmax", ["m"], ["y"], axis=0)]
    return model(nodes, [body], 13, initializers={"shape": np.array([4, 3])})


def nested_functions() -> onnx.ModelProto:
    inner = function("Soft", [node("Softmax", ["a"], ["b"], axis=1)], 13)
    outer = function("Outer", [node("Neg", ["a"], ["n"]), call("Soft", ["n"], ["b"])], 13)
    return model([call("Outer", ["x"], ["y"])], [outer, inner], 13)


def call_in_branch() -> onnx.ModelProto:
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


def branch_in_function() -> onnx.ModelProto:
    """The branches read an input of the function."""
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
    return calling_model(function("F", [*nodes, node("If", ["c"], ["b"], **bodies)], 13), 13)


def type_from_attribute() -> onnx.ModelProto:
    """An attribute of the call determines the output type of Cast."""
    cast = with_references(node("Cast", ["a"], ["b"]), to=("kind", INT))
    body = function("To", [cast], 10, attributes=["kind"])
    nodes = [
        call("To", ["x"], ["whole"], kind=TensorProto.INT32),
        call("To", ["whole"], ["m"], kind=TensorProto.FLOAT),
        node("Clip", ["m"], ["y"], min=0.5),
    ]
    return model(nodes, [body], 10)


def constant_from_function() -> onnx.ModelProto:
    """Squeeze reads axes that a function returns."""
    value = helper.make_tensor("axes", TensorProto.INT64, [1], [0])
    body = function("Axes", [node("Constant", [], ["b"], value=value)], 13, inputs=())
    nodes = [call("Axes", [], ["axes"]), node("Squeeze", ["x", "axes"], ["y"])]
    return model(nodes, [body], 13)


def constant_argument() -> onnx.ModelProto:
    body = function("Cut", [node("Squeeze", ["a", "axes"], ["b"])], 13, inputs=("a", "axes"))
    return model([call("Cut", ["x", "axes"], ["y"])], [body], 13, initializers=AXES)


def constant_through_two_calls() -> onnx.ModelProto:
    inner = function("Cut", [node("Squeeze", ["a", "axes"], ["b"])], 13, inputs=("a", "axes"))
    same = node("Identity", ["where"], ["axes"])
    outer = function("Outer", [same, call("Cut", ["a", "axes"], ["b"])], 13, inputs=("a", "where"))
    return model([call("Outer", ["x", "axes"], ["y"])], [outer, inner], 13, initializers=AXES)


def softmax_with_axis_reference() -> onnx.FunctionProto:
    """Return a function with a Softmax that reads its axis from the call."""
    return function("Soft", [with_references(node("Softmax", ["a"], ["b"]), axis=("where", INT))])


def default_attribute() -> onnx.ModelProto:
    body = softmax_with_axis_reference()
    body.attribute_proto.append(helper.make_attribute("where", 1))
    return calling_model(body)


@pytest.mark.parametrize(
    ("make", "target"),
    [
        (clip_in_function, 13),
        (softmax_in_function, 11),
        (consecutive_calls, 11),
        (clip_after_call, 13),
        (calls_with_different_ranks, 11),
        (rank_from_constant, 11),
        (nested_functions, 11),
        (call_in_branch, 11),
        (branch_in_function, 11),
        (type_from_attribute, 13),
        (constant_from_function, 11),
        (constant_argument, 11),
        (constant_through_two_calls, 11),
        (default_attribute, 13),
        (lambda: calling_model(softmax_with_axis_reference(), where=1), 13),
        (lambda: calling_model(softmax_with_axis_reference()), 13),
    ],
    ids=[
        "type of an input",
        "rank of an input",
        "result of an earlier call",
        "type of a result",
        "rank of the results of two calls",
        "rank from a constant argument",
        "rank of an input of the outer function",
        "rank of an input, call in a branch",
        "rank of an input, branch in the function",
        "type from an attribute of the call",
        "constant from a function",
        "constant argument",
        "constant through a function",
        "attribute default of the function",
        "attribute of the call",
        "attribute without a value",
    ],
)
def test_infers_facts_through_calls(make: Callable[[], onnx.ModelProto], target: int) -> None:
    before = make()
    feeds: Feeds = {**FEEDS, "yes": np.array(True)} if len(before.graph.input) > 1 else FEEDS
    plan = plan_version(before, target)
    assert plan.refusals == ()
    assert plan.copies == ()
    assert_equal(run(convert_version(before, target), feeds), run(before, feeds))


def test_overridable_initializer_is_not_constant() -> None:
    before = constant_argument()
    before.graph.input.append(helper.make_tensor_value_info("axes", TensorProto.INT64, [1]))
    after = convert_version(before, 11)
    feeds = {"x": FEEDS["x"].reshape(3, 1, 4), "axes": np.array([1])}
    after.graph.input[0].type.tensor_type.ClearField("shape")
    assert_equal(run(after, feeds), [FEEDS["x"].reshape(3, 4)])


def test_function_shadows_the_operator_of_its_name() -> None:
    """The model-local Identity negates its input."""
    body = function("Identity", [node("Neg", ["a"], ["b"])], 13, domain="")
    nodes = [node("Identity", ["axes"], ["where"]), node("Squeeze", ["x", "where"], ["y"])]
    before = build(nodes, FEEDS, ["y"], 13, initializers=AXES)
    before.functions.append(body)
    after = convert_version(before, 11)
    (squeeze,) = (each for each in after.graph.node if each.op_type == "Squeeze")
    (axes,) = (each.ints for each in squeeze.attribute)
    assert list(axes) == [-axis for axis in AXES["axes"]]


def test_shadowing_function_has_the_types_of_its_body() -> None:
    """The model-local Relu returns float16."""
    body = function("Relu", [node("Cast", ["a"], ["b"], to=TensorProto.FLOAT16)], 10, domain="")
    nodes = [node("Relu", ["x"], ["m"]), node("Clip", ["m"], ["y"], min=0.5)]
    before = build(nodes, FEEDS, {"y": TensorProto.FLOAT16}, 10)
    before.functions.append(body)
    bounds = convert_version(before, 13).graph.initializer
    assert {each.data_type for each in bounds} == {TensorProto.FLOAT16}


def test_keeps_references_that_no_step_reads() -> None:
    """Only references that a step has to read are replaced with their values."""
    selu = with_references(node("Selu", ["a"], ["s"]), alpha=("slope", FLOAT))
    soft = with_references(node("Softmax", ["s"], ["b"]), axis=("where", INT))
    before = calling_model(function("F", [selu, soft], attributes=["slope", "where"]), slope=2.0, where=1)
    after = convert_version(before, 13)
    assert after.functions[0].node[0] == selu
    assert list(after.functions[0].attribute) == ["slope", "where"]
    assert after.graph.node[0] == before.graph.node[0]
    assert_equal(run(after, FEEDS), run(before, FEEDS))


def test_ignores_calls_in_uncalled_functions() -> None:
    """Their arguments are unknown and they never run."""
    soft = function("Soft", [node("Softmax", ["a"], ["b"], axis=1)], 13)
    idle = function("Idle", [call("Soft", ["a"], ["b"])], 13)
    before = model([call("Soft", ["x"], ["y"])], [soft, idle], 13)
    assert_equal(run(convert_version(before, 11), FEEDS), run(before, FEEDS))


def nested_calls(depth: int, calls: int = 1) -> onnx.ModelProto:
    """Nest functions that call the next one `calls` times each; the innermost needs a rank."""
    functions = [function("F0", [node("Softmax", ["a"], ["b"], axis=1)], 13)]
    for level in range(1, depth):
        names = ["a", *(f"v{i}" for i in range(1, calls)), "b"]
        body = [call(f"F{level - 1}", [one], [other]) for one, other in pairwise(names)]
        functions.append(function(f"F{level}", body, 13))
    return model([call(f"F{depth - 1}", ["x"], ["y"])], functions, 13)


def test_passes_facts_through_20_nested_calls() -> None:
    assert plan_version(nested_calls(20), 11).refusals == ()


def test_passes_facts_through_400_nested_calls() -> None:
    """Their number is not limited by the depth of Python's stack."""
    assert plan_version(nested_calls(400), 11).refusals == ()


def test_examines_calls_with_equal_facts_once() -> None:
    """Thirty functions that call the next one twice expand to 2^30 nodes."""
    before = nested_calls(30, calls=2)
    before.graph.node.append(node("Softmax", ["y"], ["z"], axis=1))
    assert plan_version(before, 11).refusals == ()
