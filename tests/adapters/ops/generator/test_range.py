"""Downgrades of Range below opset 11, and of float16 ranges below opset 27."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types

Bounds = tuple[float, float, float]
NAMES = ("start", "limit", "delta")
CASES = [
    pytest.param((0, 5, 1), np.int64, id="ascending"),
    pytest.param((10, 4, -2), np.int32, id="descending"),
    pytest.param((10, 3, -2), np.int16, id="limit not reached"),
    pytest.param((5, 0, 1), np.int64, id="empty"),
    pytest.param((0.1, 0.7, 0.1), np.float32, id="limit almost reached"),
    pytest.param((-1.5, 2.0, 0.25), np.float64, id="double"),
]


def _model(
    bounds: Bounds, dtype: type[np.generic], *, constant: bool
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    values = {name: np.array(value, dtype) for name, value in zip(NAMES, bounds, strict=True)}
    feeds = {} if constant else values
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("Range", list(NAMES), ["y"], name="node")
    return build([node], feeds, {"y": element_type}, 11, initializers=values if constant else None), feeds


@pytest.mark.parametrize(("bounds", "dtype"), CASES)
def test_folds_constant_ranges(bounds: Bounds, dtype: type[np.generic]) -> None:
    model, feeds = _model(bounds, dtype, constant=True)
    for target in (7, 10):
        operators = op_types(convert_and_check(model, target, feeds))
        assert operators == ["Constant"] or target < 9


@pytest.mark.parametrize(("bounds", "dtype"), CASES)
def test_expands_computed_ranges(bounds: Bounds, dtype: type[np.generic]) -> None:
    model, feeds = _model(bounds, dtype, constant=False)
    for target in (7, 8, 9, 10):
        convert_and_check(model, target, feeds)


@pytest.mark.parametrize("limit", [4, 0, -3])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.float32])
def test_counts_from_zero_up_to_a_computed_limit(dtype: type[np.generic], limit: int) -> None:
    feeds = {"limit": np.array(limit, dtype)}
    bounds = {"start": np.array(0, dtype), "delta": np.array(1, dtype)}
    node = helper.make_node("Range", list(NAMES), ["y"], name="node")
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = build([node], feeds, {"y": element_type}, 11, initializers=bounds)
    for target in (7, 10):
        result = convert_and_check(model, target, feeds)
        assert len(result.graph.node) < (9 if dtype != np.float32 else 20)


def test_does_not_fold_long_ranges() -> None:
    model, feeds = _model((0, 100_000, 1), np.int64, constant=True)
    assert "NonZero" in op_types(convert_and_check(model, 10, feeds))


def test_computes_float16_ranges_in_float() -> None:
    feeds = {name: np.array(value, np.float16) for name, value in zip(NAMES, (0, 3, 0.1), strict=True)}
    model = build([helper.make_node("Range", list(NAMES), ["y"])], feeds, {"y": TensorProto.FLOAT16}, 27)
    model.ir_version = 10
    for target in (10, 26):
        convert_and_check(model, target, feeds, tolerance=1e-3)
