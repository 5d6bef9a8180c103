"""Expand below opset 8: multiplication broadcasts the data."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build

RANDOM = np.random.default_rng(0)
DTYPES = (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, np.bool_)


def _element_type(array: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


@pytest.mark.parametrize("dtype", [*DTYPES, np.float64])
@pytest.mark.parametrize(
    ("shape", "target_shape"),
    [
        pytest.param((3, 1), (3, 4), id="one dimension"),
        pytest.param((3, 1), (2, 1, 6), id="more dimensions"),
        pytest.param((2, 3, 1), (4,), id="shape of lower rank"),
        pytest.param((), (2, 2), id="scalar"),
        pytest.param((2, 3), (1, 1), id="unchanged shape"),
        pytest.param((2, 1), (2, 0), id="empty result"),
    ],
)
@pytest.mark.parametrize(
    ("known", "shapes"),
    [
        pytest.param(True, True, id="known"),
        pytest.param(False, True, id="computed"),
        pytest.param(False, False, id="unknown shapes"),
    ],
)
def test_rewrites_expand(
    shape: tuple[int, ...], target_shape: tuple[int, ...], dtype: type, known: bool, shapes: bool
) -> None:
    data: Array = np.asarray(RANDOM.integers(0, 2, shape)).astype(dtype)
    shape_input: dict[str, Array] = {"s": np.array(target_shape, np.int64)}
    feeds: dict[str, Array] = {"x": data} if known else {"x": data, **shape_input}
    node = helper.make_node("Expand", ["x", "s"], ["y"], name="node")
    outputs = {"y": _element_type(data)}
    model = build([node], feeds, outputs, 8, initializers=shape_input if known else None, shapes=shapes)
    convert_and_check(model, 7, feeds, [data * np.ones(target_shape, dtype)])
