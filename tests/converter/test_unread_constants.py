"""Constants that only replaced nodes read are removed."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper
from support.execution import assert_equal, build, op_types, run

from opshift import convert

X = np.array([[-1, 0.5, 2]], np.float32)


def constant(name: str, value: float) -> onnx.NodeProto:
    tensor = numpy_helper.from_array(np.array(value, np.float32))
    return helper.make_node("Constant", [], [name], value=tensor)


def clip(*others: onnx.NodeProto, low: str = "low") -> onnx.ModelProto:
    nodes = [constant("low", 0), constant("high", 1), helper.make_node("Clip", ["x", low, "high"], ["y"])]
    return build([*nodes, *others], {"x": X}, ["y", *(each.output[0] for each in others[-1:])], 11)


def test_removes_constant_nodes_without_readers() -> None:
    model = clip()
    converted = convert(model, 10)
    assert op_types(converted.model) == ["Clip"]
    assert converted.report.nodes == (3, 1)
    assert_equal(run(converted.model, {"x": X}), run(model, {"x": X}))


def test_keeps_constant_nodes_that_others_read() -> None:
    model = clip(helper.make_node("Add", ["x", "low"], ["z"]))
    result = convert(model, 10).model
    assert op_types(result) == ["Constant", "Clip", "Add"]
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_keeps_constant_nodes_that_subgraphs_read() -> None:
    output = helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, None)
    branch = helper.make_graph([helper.make_node("Add", ["x", "high"], ["b"])], "b", [], [output])
    holder = helper.make_node("If", ["yes"], ["z"], then_branch=branch, else_branch=branch)
    model = clip(constant("one", 1), helper.make_node("Cast", ["one"], ["yes"], to=9), holder)
    result = convert(model, 10).model
    assert op_types(result) == ["Constant", "Clip", "Constant", "Cast", "If"]
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_keeps_all_constants_of_reversible_conversions() -> None:
    down = convert(clip(), 10, reversible=True).model
    assert op_types(down) == ["Constant", "Constant", "Clip"]
    assert op_types(convert(down, 11).model) == op_types(clip())
