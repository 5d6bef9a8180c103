"""ConstantOfShape below opset 9."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper
from support.conversion import convert_and_check
from support.execution import Array, build


def _element_type(array: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("shape", [(2, 3), (4,), (), (0, 2)])
@pytest.mark.parametrize("value", [None, np.array([7], np.int32), np.array([True])])
def test_rewrites_constant_of_shape(value: Array | None, shape: tuple[int, ...], target: int) -> None:
    attributes = {} if value is None else {"value": numpy_helper.from_array(value)}
    fill_value = np.zeros(1, np.float32) if value is None else value
    feeds: dict[str, Array] = {"x": np.array(shape, np.int64)}
    node = helper.make_node("ConstantOfShape", ["x"], ["y"], name="node", **attributes)
    model = build([node], feeds, {"y": _element_type(fill_value)}, 9)
    convert_and_check(model, target, feeds, [np.full(shape, fill_value[0])])
