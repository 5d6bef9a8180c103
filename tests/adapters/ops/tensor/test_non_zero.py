"""Expansion of NonZero into a loop below opset 9."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types


@pytest.mark.parametrize("target", [8, 7])
@pytest.mark.parametrize(
    "dtype", [np.float32, np.int64, np.uint8, np.bool_], ids=lambda dtype: dtype.__name__
)
@pytest.mark.parametrize(
    "data",
    [
        pytest.param([0, 3, 0, -1], id="one dimension"),
        pytest.param([[0, 1, 2], [3, 0, 0]], id="two dimensions"),
        pytest.param([[[0, 1], [0, 0]], [[0, 0], [5, 6]]], id="three dimensions"),
        pytest.param([[0, 0]], id="only zeros"),
        pytest.param([[], []], id="no elements"),
    ],
)
@pytest.mark.parametrize("sizes_known", [True, False], ids=["known sizes", "unknown sizes"])
def test_collects_positions(
    sizes_known: bool, data: list[object], dtype: type[np.generic], target: int
) -> None:
    feeds: dict[str, Array] = {"x": np.abs(np.array(data, np.int64)).astype(dtype)}
    node = helper.make_node("NonZero", ["x"], ["y"], name="node")
    model = build([node], feeds, {"y": TensorProto.INT64}, 9)
    if not sizes_known:
        for axis, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
            dim.dim_param = f"d{axis}"
    result = convert_and_check(model, target, feeds, [np.array(np.nonzero(feeds["x"]))])
    assert op_types(result).count("Loop") == 1


def test_refuses_scalar() -> None:
    node = helper.make_node("NonZero", ["x"], ["y"])
    refused = refusal_of(build([node], {"x": np.array(1, np.float32)}, {"y": TensorProto.INT64}, 9), 8)
    assert refused.reason == "'x' is a scalar; NonZero can be rewritten only for rank 1 or higher"


def test_refuses_strings() -> None:
    node = helper.make_node("NonZero", ["x"], ["y"])
    refused = refusal_of(build([node], {"x": np.array(["a"], object)}, {"y": TensorProto.INT64}, 9), 8)
    assert refused.reason == "'x' has strings; ONNX does not define which strings are zero"


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("shape", [(5,), (0,), (2, 3), (2, 0, 3), (3, 1, 2)])
@pytest.mark.parametrize("number", [1.0, 0.0, -math.inf])
def test_lists_positions_of_a_filled_tensor(number: float, shape: tuple[int, ...], target: int) -> None:
    """Without a Loop over the elements, unless the number is 0."""
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [number])
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["x"], value=value),
        helper.make_node("NonZero", ["x"], ["y"], name="node"),
    ]
    feeds: dict[str, Array] = {"s": np.array(shape)}
    model = build(nodes, feeds, {"y": TensorProto.INT64}, 9)
    expected = np.array(np.nonzero(np.full(shape, number)))
    converted = convert_and_check(model, target, feeds, [expected])
    assert ("Loop" in op_types(converted)) == (not number)
