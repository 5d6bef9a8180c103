"""Upgrades that other converters get wrong: the same models, with the right numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.running import Array, build, op_types

Converted = Callable[..., onnx.ModelProto]
RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, 2, 5, 7)).astype(np.float32)


def _node(op: str, inputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, ["y"], name="node", **attributes)


@pytest.mark.parametrize(
    "attributes", [{"axis": 1}, {"axis": 2}, {}], ids=["axis 1", "axis 2", "the default axis"]
)
def test_hardmax_flattens(attributes: Mapping[str, int], converted: Converted) -> None:
    """From 13 on it takes one axis; the others are flattened together before."""
    converted(build([_node("Hardmax", ["x"], **attributes)], {"x": IMAGE}, ["y"], 12), 13, {"x": IMAGE})


@pytest.mark.parametrize("scale", [2.0, 1.3, 0.6])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_resize_keeps_its_coordinates(mode: str, scale: float, converted: Converted) -> None:
    """The default of 11 places pixels elsewhere, and rounds otherwise."""
    scales = {"s": np.array([1, 1, scale, scale], np.float32)}
    model = build([_node("Resize", ["x", "s"], mode=mode)], {"x": IMAGE}, ["y"], 10, initializers=scales)
    converted(model, 11, {"x": IMAGE})


@pytest.mark.parametrize("scale", [2.0, 1.3])
def test_upsample_keeps_its_coordinates(scale: float, converted: Converted) -> None:
    """It becomes Resize on the way."""
    scales = {"s": np.array([1, 1, scale, scale], np.float32)}
    model = build([_node("Upsample", ["x", "s"], mode="linear")], {"x": IMAGE}, ["y"], 9, initializers=scales)
    assert op_types(converted(model, 13, {"x": IMAGE})) == ["Resize"]


def test_resize_to_sizes_has_no_scales_beside_them(converted: Converted) -> None:
    """Version 11 wants an empty list there, and 13 nothing."""
    given = {
        "none": np.zeros(0, np.float32),
        "sizes": np.array([1, 2, 8, 5]),
    }
    node = _node("Resize", ["x", "none", "none", "sizes"])
    result = converted(build([node], {"x": IMAGE}, ["y"], 11, initializers=given), 13, {"x": IMAGE})
    assert result.graph.node[0].input[2] == ""


def test_group_normalization_repeats_scale_and_bias(converted: Converted) -> None:
    """There is one a channel from 21 on, and one a group before."""
    data = RANDOM.standard_normal((2, 6, 4)).astype(np.float32)
    given = {"scale": np.array([0.5, 2, 3], np.float32), "bias": np.array([1, -1, 0], np.float32)}
    node = _node("GroupNormalization", ["x", "scale", "bias"], num_groups=3, epsilon=0.01)
    parts = data.reshape(2, 3, -1)
    normal = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 0.01)
    expected = (normal * given["scale"][:, None] + given["bias"][:, None]).reshape(data.shape)
    converted(build([node], {"x": data}, ["y"], 20, initializers=given), 21, {"x": data}, [expected])


KINDS: dict[str, Any] = {"float16": np.float16, "double": np.float64}


def _typed(node: onnx.NodeProto, data: Array, ir_version: int = 8) -> onnx.ModelProto:
    outputs = {"y": helper.np_dtype_to_tensor_dtype(data.dtype)}
    return build([node], {"x": data}, outputs, 10, ir_version=ir_version)


def _constants(model: onnx.ModelProto) -> list[Array]:
    return [numpy_helper.to_array(each) for each in model.graph.initializer]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_bounds_of_clip_have_the_type_of_the_data(kind: Any, converted: Converted) -> None:
    data = np.array([-3, 0.25, 9], kind)
    model = _typed(_node("Clip", ["x"], min=-1.0, max=6.0), data)
    for target in (12, 13):
        result = converted(model, target, {"x": data}, [np.clip(data, kind(-1), kind(6))])
        assert {each.dtype for each in _constants(result)} == {data.dtype}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_value_of_pad_has_the_type_of_the_data(kind: Any, converted: Converted) -> None:
    data = np.array([-3, 0.25, 9], kind)
    model = _typed(_node("Pad", ["x"], pads=[1, 2], value=0.5), data)
    for target in (11, 13):
        expected = np.pad(data, (1, 2), constant_values=0.5)
        result = converted(model, target, {"x": data}, [expected])
        assert {each.dtype for each in _constants(result)} == {data.dtype, np.dtype(np.int64)}


@pytest.mark.parametrize("ir_version", [3, 4, 8])
def test_constants_are_legal_in_old_files(ir_version: int, converted: Converted) -> None:
    """In files of IR version 3 every initializer is an input of the graph as well."""
    data = np.array([-3, 0.25, 9], np.float32)
    result = converted(_typed(_node("Pad", ["x"], pads=[1, 2], value=0.5), data, ir_version), 11, {"x": data})
    assert [each.name for each in result.graph.input] == ["x"]
    assert result.ir_version >= 4 or not result.graph.initializer


SCANNED = {"s0": (1, 2), "rows": (1, 3, 2)}


def test_scan_keeps_the_ranks_of_the_graph(converted: Converted) -> None:
    """The dimension of the batch goes and comes back within the graph."""
    row = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("s", "r", "t", "o")]
    nodes = [helper.make_node("Add", ["s", "r"], ["t"]), helper.make_node("Neg", ["t"], ["o"])]
    body = helper.make_graph(nodes, "body", row[:2], row[2:])
    feeds = {name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in SCANNED.items()}
    scan = helper.make_node("Scan", ["", "s0", "rows"], ["total", "sums"], body=body, num_scan_inputs=1)
    model = build([scan], feeds, ["total", "sums"], 8)
    for value, shape in zip(model.graph.output, ([1, 2], [1, 3, 2]), strict=True):
        value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, shape))
    result = converted(model, 9, feeds)
    assert result.graph.input == model.graph.input
    assert result.graph.output == model.graph.output


def test_thresholded_relu_is_what_it_was(converted: Converted) -> None:
    """It ceased to be an experiment, and nothing else changed."""
    model = build([_node("ThresholdedRelu", ["x"], alpha=0.5)], {"x": IMAGE}, ["y"], 8)
    result = converted(model, 13, {"x": IMAGE}, [np.where(IMAGE > 0.5, IMAGE, np.float32(0))])
    assert result.graph == model.graph
