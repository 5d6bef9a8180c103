"""Bound of the error of GridSample where runtimes differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import refusal_of
from support.execution import Array, build, run

from opshift import convert_version
from opshift.adapters.ops.tensor.grid_sample import CUBIC_COEFFICIENT, ERROR

RANDOM = np.random.default_rng(0)
SIZES = (101, 173)
SHAPE = (1, 250, 250, 2)


def _model(align_corners: int, dtype: type, grid_dtype: type) -> onnx.ModelProto:
    numbers = [helper.np_dtype_to_tensor_dtype(np.dtype(each)) for each in (dtype, grid_dtype)]
    nodes = [
        helper.make_node("Cast", ["x"], ["data"], to=numbers[0]),
        helper.make_node("Cast", ["g"], ["grid"], to=numbers[1]),
        helper.make_node(
            "GridSample", ["data", "grid"], ["sampled"], mode="cubic", padding_mode="border",
            align_corners=align_corners,
        ),
        helper.make_node("Cast", ["sampled"], ["y"], to=TensorProto.DOUBLE),
    ]  # fmt: skip
    feeds = {"x": np.zeros((1, 1, *SIZES)), "g": np.zeros(SHAPE)}
    return build(nodes, feeds, {"y": TensorProto.DOUBLE}, 22)


def _taps(coordinate: Array, size: int) -> Iterator[tuple[Array, Array]]:
    """Yield four pixels for each coordinate, and their weights; pixels beyond the border repeat it."""
    lower, a = np.floor(coordinate), np.longdouble(CUBIC_COEFFICIENT)
    for offset in (-1, 0, 1, 2):
        distance = abs(coordinate - lower - offset)
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        yield (lower + offset).clip(0, size - 1).astype(int), np.where(distance <= 1, near, far)


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("grid_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_interpolation_beyond_the_border_has_a_bounded_error(
    align_corners: int, dtype: type, grid_dtype: type
) -> None:
    model = _model(align_corners, dtype, grid_dtype)
    refusal = refusal_of(model, 15)
    assert refusal.remedy == "pass --allow approximate (allow= in Python) if the model tolerates it"
    assert refusal.reason.endswith(f"the error is {ERROR}")
    data = RANDOM.uniform(-1, 1, (1, 1, *SIZES)).astype(dtype).astype(np.float64)
    grid = RANDOM.uniform(-1.5, 1.5, SHAPE).astype(grid_dtype).astype(np.float64)
    grid[0, 0] = RANDOM.choice([-1e30, -1e5, 1e5, 1e30], SHAPE[2:])
    grid[0, 1, :, 0] = RANDOM.choice([math.inf, -math.inf, math.nan], SHAPE[2])
    result = convert_version(model, 15, allow="approximate")
    found = run(result, {"x": data, "g": grid})[0].reshape(-1).astype(np.longdouble)
    # onnxruntime and the conversion read -1 in place of infinity and NaN.
    points = np.where(np.isfinite(grid), grid, -1).reshape(-1, 2).astype(np.longdouble)
    axes = (
        _taps((each + 1) / 2 * (size - 1) if align_corners else ((each + 1) * size - 1) / 2, size)
        for each, size in zip(points[:, ::-1].T, SIZES, strict=True)
    )
    pairs = product(*axes)
    exact = sum(data[0, 0, row, column] * weight * other for (row, weight), (column, other) in pairs)
    errors = abs(found - exact)
    if dtype in (np.float16, ml_dtypes.bfloat16):
        errors -= abs(exact) * float(ml_dtypes.finfo(dtype).eps)
    assert errors.max() <= sum(SIZES) * 2.0**-22
