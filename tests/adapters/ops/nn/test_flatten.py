"""Downgrade of Flatten of non-float data below opset 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types


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
