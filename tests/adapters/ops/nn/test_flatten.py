"""Downgrade of Flatten of non-float data below opset 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types

from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused


@pytest.mark.parametrize("shapes", [True, False], ids=["known shape", "unknown dimensions"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.bool_, np.float32])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((2, 3, 4), 0), ((2, 3, 4), 1), ((2, 3, 4), 2), ((2, 3), 2), ((0, 3), 1), ((3,), -1)]
    + [((3, 0, 2), axis) for axis in range(4)]
    + [((0, 3), 0), ((2, 3, 0), 2), ((0, 0), 1)],
)
def test_flattens_every_type(shape: tuple[int, ...], axis: int, dtype: Any, shapes: bool) -> None:
    """Flatten remains except for int64, which no float type represents exactly."""
    data: Array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    node = helper.make_node("Flatten", ["x"], ["y"], name="node", axis=axis)
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    model = build([node], {"x": data}, {"y": element_type}, 13)
    if not shapes:
        for dim in model.graph.input[0].type.tensor_type.shape.dim:
            dim.Clear()
    result = convert_and_check(model, 7, {"x": data})
    assert ("Flatten" in op_types(result)) == (dtype is not np.int64)


@pytest.mark.parametrize("axis", [-(1 << 31), -3, 3, (1 << 31) - 1])
def test_refuses_an_axis_out_of_range(axis: int) -> None:
    """The number of dimensions to merge does not follow from the axis alone, which may be huge."""
    node = helper.make_node("Flatten", ["x"], ["y"], axis=axis)
    model = build([node], {"x": np.ones((2, 3), np.int64)}, {"y": onnx.TensorProto.INT64}, 9)
    with pytest.raises(ConversionRefused, match="is out of range for 'x', which has 2 dimensions"):
        convert_version(model, 7)
