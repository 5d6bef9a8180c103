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
    pytest.param((0.3, 5.8, 1.1), np.float32, id="float rounds the difference down"),
    pytest.param((0.3, 2.7, 0.8), np.float32, id="float rounds the difference up"),
    pytest.param((-30_000, 30_000, 20_000), np.int16, id="difference exceeds int16"),
    pytest.param((-(2**31), 2**31 - 1, 2**30), np.int32, id="difference exceeds int32"),
    pytest.param((2**31 - 1, -(2**31), -(2**30)), np.int32, id="negative difference exceeds int32"),
    pytest.param((-(2**63), 2**63 - 1, 2**62), np.int64, id="difference exceeds int64"),
    pytest.param((2**63 - 1, -(2**63), -(2**62)), np.int64, id="negative difference exceeds int64"),
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


def test_subtracts_large_integers_exactly() -> None:
    """Double rounds both numbers to 2**60, as onnxruntime does."""
    model, feeds = _model((2**60, 2**60 + 3, 1), np.int64, constant=False)
    convert_and_check(model, 10, feeds, [2**60 + np.arange(3)])


@pytest.mark.parametrize(
    ("constants", "expected_nodes"),
    [
        pytest.param({"start": 0}, 1, id="from 0"),
        pytest.param({"limit": -1}, 1, id="to -1"),
        pytest.param({"start": 2, "limit": 9}, 1, id="between positive numbers"),
        pytest.param({"start": 2}, 2, id="from another number"),
    ],
)
def test_guards_only_differences_that_may_overflow(constants: dict[str, int], expected_nodes: int) -> None:
    values = {name: np.array(constants.get(name, 7), np.int64) for name in NAMES}
    feeds = {name: value for name, value in values.items() if name not in constants}
    initializers = {name: value for name, value in values.items() if name in constants}
    node = helper.make_node("Range", list(NAMES), ["y"], name="node")
    model = build([node], feeds, {"y": TensorProto.INT64}, 11, initializers=initializers)
    assert op_types(convert_and_check(model, 10, feeds)).count("Sub") == expected_nodes


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
