"""Downgrades that other converters get wrong or refuse: the same models, with the right numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.running import Array, assert_equal, build, run

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refused = Callable[[onnx.ModelProto, int], Refusal]
RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, 2, 6, 7)).astype(np.float32)
BOOL, DOUBLE = TensorProto.BOOL, TensorProto.DOUBLE


def node(op: str, inputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, ["y"], name="node", **attributes)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [0, 1, 2, -2, -1])
def test_softmax_of_any_axis(op: str, axis: int, converted: Converted) -> None:
    """12 flattens; a checker does not see the difference."""
    converted(build([node(op, ["x"], axis=axis)], {"x": IMAGE}, ["y"], 13), 12, {"x": IMAGE})


def test_softmax_before_a_reshape(converted: Converted) -> None:
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], axis=1),
        helper.make_node("Reshape", ["s", "shape"], ["y"]),
    ]
    shape = {"shape": np.array([2, -1])}
    converted(build(nodes, {"x": IMAGE}, ["y"], 13, initializers=shape), 12, {"x": IMAGE})


def test_the_mask_of_dropout_has_the_type_of_the_data(converted: Converted) -> None:
    nodes = [
        helper.make_node("Dropout", ["x"], ["d", "mask"], ratio=0.5),
        helper.make_node("Where", ["mask", "x", "d"], ["y"]),
    ]
    model = build(nodes, {"x": IMAGE}, ["y"], 10)
    converted(model, 9, {"x": IMAGE}, [IMAGE])


@pytest.mark.parametrize(
    ("op", "opset", "target", "attributes", "result"),
    [
        pytest.param(
            "AveragePool", 19, 18, {"kernel_shape": [2, 2], "dilations": [2, 2]}, 1, id="AveragePool"
        ),
        pytest.param("Cast", 19, 18, {"to": DOUBLE, "saturate": 1}, DOUBLE, id="Cast with saturate"),
        pytest.param("Cast", 24, 23, {"to": DOUBLE, "round_mode": "up"}, DOUBLE, id="Cast with round_mode"),
        pytest.param("ReduceMean", 18, 17, {"noop_with_empty_axes": 1}, 1, id="ReduceMean that does nothing"),
        pytest.param("ReduceL1", 18, 17, {"noop_with_empty_axes": 1}, 1, id="ReduceL1 is then Abs"),
        pytest.param("ReduceSum", 13, 12, {"noop_with_empty_axes": 1}, 1, id="ReduceSum that does nothing"),
    ],
)
def test_no_attribute_is_left_that_the_target_lacks(
    op: str, opset: int, target: int, attributes: Mapping[str, Any], result: int, converted: Converted
) -> None:
    model = build([node(op, ["x"], **attributes)], {"x": IMAGE}, {"y": result}, opset)
    converted(model, target, {"x": IMAGE})


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        pytest.param("Flatten", {"axis": -2}, id="Flatten"),
        pytest.param("Unsqueeze", {"axes": [-1]}, id="Unsqueeze"),
        pytest.param("ArgMax", {"axis": -1}, id="ArgMax"),
    ],
)
def test_no_negative_axis_is_left(op: str, attributes: Mapping[str, Any], converted: Converted) -> None:
    element = TensorProto.INT64 if op == "ArgMax" else TensorProto.FLOAT
    result = converted(
        build([node(op, ["x"], **attributes)], {"x": IMAGE}, {"y": element}, 11), 10, {"x": IMAGE}
    )
    (stated,) = result.graph.node[0].attribute
    assert all(axis >= 0 for axis in [*stated.ints, stated.i])


def test_concat_by_a_negative_axis(converted: Converted) -> None:
    result = converted(
        build([node("Concat", ["x", "x"], axis=-1)], {"x": IMAGE}, ["y"], 11), 10, {"x": IMAGE}
    )
    assert result.graph.node[0].attribute[0].i == 3


def test_pad_that_wraps(converted: Converted) -> None:
    pads = {"pads": np.array([0, 0, 1, 2, 0, 0, 3, 1])}
    model = build([node("Pad", ["x", "pads"], mode="wrap")], {"x": IMAGE}, ["y"], 19, initializers=pads)
    converted(model, 18, {"x": IMAGE})


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_symmetric_half_pixels(mode: str, converted: Converted) -> None:
    given = {"s": np.array([1, 1, 2, 2], np.float32)}
    resize = node("Resize", ["x", "", "s"], mode=mode, coordinate_transformation_mode="half_pixel_symmetric")
    converted(build([resize], {"x": IMAGE}, ["y"], 19, initializers=given), 18, {"x": IMAGE})


def _axes_from(attribute: str) -> onnx.NodeProto:
    values = [2, 3]
    value: Any = numpy_helper.from_array(np.array(values)) if attribute == "value" else values
    return helper.make_node("Constant", [], ["axes"], **{attribute: value})


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("attribute", ["value", "value_ints"])
def test_axes_of_a_constant_node(op: str, attribute: str, converted: Converted) -> None:
    nodes = [_axes_from(attribute), node(op, ["x", "axes"])]
    converted(build(nodes, {"x": IMAGE}, ["y"], 18), 12, {"x": IMAGE})


def test_axes_that_a_caller_may_override_stay_an_input(converted: Converted) -> None:
    """They are not folded; the caller's axes go on to count."""
    feeds: dict[str, Array] = {"x": IMAGE, "axes": np.array([2])}
    model = build([node("ReduceMean", ["x", "axes"])], feeds, ["y"], 18, initializers={"axes": np.array([2])})
    result = converted(model, 17, feeds)
    assert [value.name for value in result.graph.input] == ["x", "axes"]
    other: dict[str, Array] = {"x": IMAGE, "axes": np.array([3])}
    assert_equal(run(result, other), run(model, other))


@pytest.mark.parametrize("op", ["Add", "MatMul", "Mul"])
def test_what_is_legal_already_stays_as_it_is(op: str, converted: Converted) -> None:
    square = RANDOM.standard_normal((3, 3)).astype(np.float32)
    model = build([node(op, ["x", "x"])], {"x": square}, ["y"], 13)
    result = converted(model, 12, {"x": square})
    assert result.graph == model.graph


@pytest.mark.parametrize("op", ["Relu", "Abs", "Identity", "Sigmoid", "Neg", "Exp"])
@pytest.mark.parametrize(("opset", "target"), [(13, 12), (14, 13), (11, 10), (16, 15)])
def test_unary_operators_stay_as_they_are(op: str, opset: int, target: int, converted: Converted) -> None:
    model = build([node(op, ["x"])], {"x": IMAGE}, ["y"], opset)
    assert converted(model, target, {"x": IMAGE}).graph == model.graph


def test_what_no_older_operator_gives_is_refused_with_its_reason(refusal: Refused) -> None:
    boxes: dict[str, Array] = {"r": np.zeros((1, 4), np.float32), "b": np.zeros(1, np.int64)}
    model = build([node("RoiAlign", ["x", "r", "b"])], {"x": IMAGE}, ["y"], 10, initializers=boxes)
    assert "no operator that pools regions" in refusal(model, 9).reason
