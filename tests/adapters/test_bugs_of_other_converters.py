"""Upgrades that other converters get wrong; results are compared with the original model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, 2, 5, 7)).astype(np.float32)


def _node(op_type: str, inputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, ["y"], name="node", **attributes)


@pytest.mark.parametrize(
    "attributes", [{"axis": 1}, {"axis": 2}, {}], ids=["axis 1", "axis 2", "default axis"]
)
def test_upgrades_hardmax_that_flattens_its_input(attributes: Mapping[str, int]) -> None:
    """Hardmax flattens its input to 2-D before opset 13; since then it uses a single axis."""
    convert_and_check(
        build([_node("Hardmax", ["x"], **attributes)], {"x": IMAGE}, ["y"], 12), 13, {"x": IMAGE}
    )


@pytest.mark.parametrize("scale", [2.0, 1.3, 0.6])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_keeps_the_coordinates_of_resize(mode: str, scale: float) -> None:
    """The defaults of opset 11 select another coordinate transformation and another rounding."""
    scales = {"s": np.array([1, 1, scale, scale], np.float32)}
    model = build([_node("Resize", ["x", "s"], mode=mode)], {"x": IMAGE}, ["y"], 10, initializers=scales)
    convert_and_check(model, 11, {"x": IMAGE})


@pytest.mark.parametrize("scale", [2.0, 1.3])
def test_keeps_the_coordinates_of_upsample(scale: float) -> None:
    """Upsample becomes Resize at opset 10."""
    scales = {"s": np.array([1, 1, scale, scale], np.float32)}
    model = build([_node("Upsample", ["x", "s"], mode="linear")], {"x": IMAGE}, ["y"], 9, initializers=scales)
    assert op_types(convert_and_check(model, 13, {"x": IMAGE})) == ["Resize"]


def test_omits_the_scales_of_resize_with_sizes() -> None:
    """If sizes are given, Resize-11 requires an empty scales tensor and Resize-13 an omitted input."""
    initializers = {
        "none": np.zeros(0, np.float32),
        "sizes": np.array([1, 2, 8, 5]),
    }
    node = _node("Resize", ["x", "none", "none", "sizes"])
    result = convert_and_check(
        build([node], {"x": IMAGE}, ["y"], 11, initializers=initializers), 13, {"x": IMAGE}
    )
    assert result.graph.node[0].input[2] == ""


def test_repeats_scale_and_bias_of_group_normalization() -> None:
    """Scale and bias have one element per channel since opset 21 and one per group before."""
    data = RANDOM.standard_normal((2, 6, 4)).astype(np.float32)
    initializers = {"scale": np.array([0.5, 2, 3], np.float32), "bias": np.array([1, -1, 0], np.float32)}
    node = _node("GroupNormalization", ["x", "scale", "bias"], num_groups=3, epsilon=0.01)
    groups = data.reshape(2, 3, -1)
    normalized = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 0.01)
    expected = (normalized * initializers["scale"][:, None] + initializers["bias"][:, None]).reshape(
        data.shape
    )
    convert_and_check(
        build([node], {"x": data}, ["y"], 20, initializers=initializers), 21, {"x": data}, [expected]
    )


DTYPES: dict[str, Any] = {"float16": np.float16, "double": np.float64}


def _typed_model(node: onnx.NodeProto, data: Array, ir_version: int = 8) -> onnx.ModelProto:
    outputs = {"y": helper.np_dtype_to_tensor_dtype(data.dtype)}
    return build([node], {"x": data}, outputs, 10, ir_version=ir_version)


def _constants(model: onnx.ModelProto) -> list[Array]:
    return [numpy_helper.to_array(each) for each in model.graph.initializer]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_clip_bounds_have_the_type_of_the_data(dtype: Any) -> None:
    data = np.array([-3, 0.25, 9], dtype)
    model = _typed_model(_node("Clip", ["x"], min=-1.0, max=6.0), data)
    for target in (12, 13):
        result = convert_and_check(model, target, {"x": data}, [np.clip(data, dtype(-1), dtype(6))])
        assert {each.dtype for each in _constants(result)} == {data.dtype}


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_pad_value_has_the_type_of_the_data(dtype: Any) -> None:
    data = np.array([-3, 0.25, 9], dtype)
    model = _typed_model(_node("Pad", ["x"], pads=[1, 2], value=0.5), data)
    for target in (11, 13):
        expected = np.pad(data, (1, 2), constant_values=0.5)
        result = convert_and_check(model, target, {"x": data}, [expected])
        assert {each.dtype for each in _constants(result)} == {data.dtype, np.dtype(np.int64)}


@pytest.mark.parametrize("ir_version", [3, 4, 8])
def test_emits_valid_constants_for_old_ir_versions(ir_version: int) -> None:
    """Before IR version 4 every initializer must also be a graph input."""
    data = np.array([-3, 0.25, 9], np.float32)
    result = convert_and_check(
        _typed_model(_node("Pad", ["x"], pads=[1, 2], value=0.5), data, ir_version), 11, {"x": data}
    )
    assert [each.name for each in result.graph.input] == ["x"]
    assert result.ir_version >= 4 or not result.graph.initializer


SCAN_SHAPES = {"s0": (1, 2), "rows": (1, 3, 2)}


def test_keeps_the_types_of_graph_inputs_and_outputs_of_scan() -> None:
    """Nodes in the graph remove the batch dimension and restore it."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("s", "r", "t", "o")]
    nodes = [helper.make_node("Add", ["s", "r"], ["t"]), helper.make_node("Neg", ["t"], ["o"])]
    body = helper.make_graph(nodes, "body", values[:2], values[2:])
    feeds = {name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in SCAN_SHAPES.items()}
    scan = helper.make_node("Scan", ["", "s0", "rows"], ["total", "sums"], body=body, num_scan_inputs=1)
    model = build([scan], feeds, ["total", "sums"], 8)
    for value, shape in zip(model.graph.output, ([1, 2], [1, 3, 2]), strict=True):
        value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, shape))
    result = convert_and_check(model, 9, feeds)
    assert result.graph.input == model.graph.input
    assert result.graph.output == model.graph.output


def test_keeps_thresholded_relu() -> None:
    """ThresholdedRelu is experimental before opset 10; nothing else changed."""
    model = build([_node("ThresholdedRelu", ["x"], alpha=0.5)], {"x": IMAGE}, ["y"], 8)
    result = convert_and_check(model, 13, {"x": IMAGE}, [np.where(IMAGE > 0.5, IMAGE, np.float32(0))])
    assert result.graph == model.graph
