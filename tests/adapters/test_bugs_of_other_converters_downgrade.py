"""Downgrades that other converters refuse or get wrong; results are compared with the original model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.conversion import convert_and_check
from support.execution import Array, assert_equal, build, run

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, 2, 6, 7)).astype(np.float32)
BOOL, DOUBLE = TensorProto.BOOL, TensorProto.DOUBLE


def _node(op_type: str, inputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, ["y"], name="node", **attributes)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [0, 1, 2, -2, -1])
def test_downgrades_softmax_along_any_axis(op_type: str, axis: int) -> None:
    """Softmax-12 flattens its input; onnx.checker does not detect the difference."""
    convert_and_check(build([_node(op_type, ["x"], axis=axis)], {"x": IMAGE}, ["y"], 13), 12, {"x": IMAGE})


def test_downgrades_softmax_before_a_reshape() -> None:
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], axis=1),
        helper.make_node("Reshape", ["s", "shape"], ["y"]),
    ]
    shape = {"shape": np.array([2, -1])}
    convert_and_check(build(nodes, {"x": IMAGE}, ["y"], 13, initializers=shape), 12, {"x": IMAGE})


def test_dropout_mask_has_the_type_of_the_data() -> None:
    nodes = [
        helper.make_node("Dropout", ["x"], ["d", "mask"], ratio=0.5),
        helper.make_node("Where", ["mask", "x", "d"], ["y"]),
    ]
    model = build(nodes, {"x": IMAGE}, ["y"], 10)
    convert_and_check(model, 9, {"x": IMAGE}, [IMAGE])


@pytest.mark.parametrize(
    ("op_type", "opset", "target", "attributes", "element_type"),
    [
        pytest.param(
            "AveragePool", 19, 18, {"kernel_shape": [2, 2], "dilations": [2, 2]}, 1, id="AveragePool"
        ),
        pytest.param("Cast", 19, 18, {"to": DOUBLE, "saturate": 1}, DOUBLE, id="Cast with saturate"),
        pytest.param("Cast", 24, 23, {"to": DOUBLE, "round_mode": "up"}, DOUBLE, id="Cast with round_mode"),
        pytest.param("ReduceMean", 18, 17, {"noop_with_empty_axes": 1}, 1, id="ReduceMean over no axes"),
        pytest.param("ReduceL1", 18, 17, {"noop_with_empty_axes": 1}, 1, id="ReduceL1 over no axes"),
        pytest.param("ReduceSum", 13, 12, {"noop_with_empty_axes": 1}, 1, id="ReduceSum over no axes"),
    ],
)
def test_drops_attributes_unknown_to_the_target(
    op_type: str, opset: int, target: int, attributes: Mapping[str, Any], element_type: int
) -> None:
    model = build([_node(op_type, ["x"], **attributes)], {"x": IMAGE}, {"y": element_type}, opset)
    convert_and_check(model, target, {"x": IMAGE})


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        pytest.param("Flatten", {"axis": -2}, id="Flatten"),
        pytest.param("Unsqueeze", {"axes": [-1]}, id="Unsqueeze"),
        pytest.param("ArgMax", {"axis": -1}, id="ArgMax"),
    ],
)
def test_makes_negative_axes_nonnegative(op_type: str, attributes: Mapping[str, Any]) -> None:
    element_type = TensorProto.INT64 if op_type == "ArgMax" else TensorProto.FLOAT
    result = convert_and_check(
        build([_node(op_type, ["x"], **attributes)], {"x": IMAGE}, {"y": element_type}, 11), 10, {"x": IMAGE}
    )
    (attribute,) = result.graph.node[0].attribute
    assert all(axis >= 0 for axis in [*attribute.ints, attribute.i])


def test_makes_a_negative_concat_axis_nonnegative() -> None:
    result = convert_and_check(
        build([_node("Concat", ["x", "x"], axis=-1)], {"x": IMAGE}, ["y"], 11), 10, {"x": IMAGE}
    )
    assert result.graph.node[0].attribute[0].i == 3


def test_expands_pad_in_wrap_mode() -> None:
    pads = {"pads": np.array([0, 0, 1, 2, 0, 0, 3, 1])}
    model = build([_node("Pad", ["x", "pads"], mode="wrap")], {"x": IMAGE}, ["y"], 19, initializers=pads)
    convert_and_check(model, 18, {"x": IMAGE})


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_expands_resize_with_symmetric_half_pixels(mode: str) -> None:
    initializers = {"s": np.array([1, 1, 2, 2], np.float32)}
    resize = _node("Resize", ["x", "", "s"], mode=mode, coordinate_transformation_mode="half_pixel_symmetric")
    convert_and_check(build([resize], {"x": IMAGE}, ["y"], 19, initializers=initializers), 18, {"x": IMAGE})


def _axes_constant(attribute: str) -> onnx.NodeProto:
    values = [2, 3]
    value: Any = numpy_helper.from_array(np.array(values)) if attribute == "value" else values
    return helper.make_node("Constant", [], ["axes"], **{attribute: value})


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("attribute", ["value", "value_ints"])
def test_downgrades_reductions_with_axes_of_a_constant_node(op_type: str, attribute: str) -> None:
    nodes = [_axes_constant(attribute), _node(op_type, ["x", "axes"])]
    convert_and_check(build(nodes, {"x": IMAGE}, ["y"], 18), 12, {"x": IMAGE})


def test_keeps_overridable_axes_as_an_input() -> None:
    """An initializer that is also a graph input is not folded: the axes of the caller take effect."""
    feeds: dict[str, Array] = {"x": IMAGE, "axes": np.array([2])}
    model = build(
        [_node("ReduceMean", ["x", "axes"])], feeds, ["y"], 18, initializers={"axes": np.array([2])}
    )
    result = convert_and_check(model, 17, feeds)
    assert [value.name for value in result.graph.input] == ["x", "axes"]
    other_feeds: dict[str, Array] = {"x": IMAGE, "axes": np.array([3])}
    assert_equal(run(result, other_feeds), run(model, other_feeds))


@pytest.mark.parametrize("op_type", ["Add", "MatMul", "Mul"])
def test_keeps_nodes_that_are_valid_at_the_target(op_type: str) -> None:
    square = RANDOM.standard_normal((3, 3)).astype(np.float32)
    model = build([_node(op_type, ["x", "x"])], {"x": square}, ["y"], 13)
    result = convert_and_check(model, 12, {"x": square})
    assert result.graph == model.graph


@pytest.mark.parametrize("op_type", ["Relu", "Abs", "Identity", "Sigmoid", "Neg", "Exp"])
@pytest.mark.parametrize(("opset", "target"), [(13, 12), (14, 13), (11, 10), (16, 15)])
def test_keeps_unary_operators(op_type: str, opset: int, target: int) -> None:
    model = build([_node(op_type, ["x"])], {"x": IMAGE}, ["y"], opset)
    assert convert_and_check(model, target, {"x": IMAGE}).graph == model.graph


def test_adapts_the_sampling_of_roi_align_before_opset_10() -> None:
    boxes: dict[str, Array] = {"r": np.zeros((1, 4), np.float32), "b": np.zeros(1, np.int64)}
    model = build([_node("RoiAlign", ["x", "r", "b"])], {"x": IMAGE}, ["y"], 10, initializers=boxes)
    convert_and_check(model, 9, {"x": IMAGE})
