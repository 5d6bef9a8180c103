"""Flatten of other types than floats on its way below 9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build, op_types

Converted = Callable[..., onnx.ModelProto]


@pytest.mark.parametrize("shapes", [True, False], ids=["of known shape", "of unknown dimensions"])
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.bool_, np.float32])
@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 3, 4), 0), ((2, 3, 4), 1), ((2, 3, 4), 2), ((2, 3), 2), ((0, 3), 1), ((3,), -1)]
)
def test_types(shape: tuple[int, ...], axis: int, kind: Any, shapes: bool, converted: Converted) -> None:
    """Integers of 64 bits are the ones that no float holds."""
    data: Array = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    node = helper.make_node("Flatten", ["x"], ["y"], name="node", axis=axis)
    element = helper.np_dtype_to_tensor_dtype(data.dtype)
    model = build([node], {"x": data}, {"y": element}, 13)
    if not shapes:
        for dim in model.graph.input[0].type.tensor_type.shape.dim:
            dim.Clear()
    result = converted(model, 7, {"x": data})
    assert ("Flatten" in op_types(result)) == (kind is not np.int64)
