"""Expansion of BitShift, BitCast and the bitwise operators below the opset that introduced them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build

UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)


def _boundary_values(dtype: type) -> Array:
    """Return the smallest and largest values of an integer type and some in between."""
    limits = np.iinfo(dtype)
    values = [limits.min, limits.min + 1, limits.max // 3, 0, 1, 5, limits.max - 1, limits.max]
    return np.array(values, dtype)


def _shift_counts(dtype: type, include_overflow: bool) -> Array:
    bits = np.iinfo(dtype).bits
    return np.array([0, 1, bits // 2, bits - 1] + [bits, 100] * include_overflow, dtype).reshape(-1, 1)


def _model(op: str, opset: int, dtype: type, *arrays: Array, **attributes: str) -> onnx.ModelProto:
    feeds: dict[str, Array] = {f"x{index}": array for index, array in enumerate(arrays)}
    node = helper.make_node(op, list(feeds), ["y"], name="node", **attributes)
    return build([node], feeds, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}, opset)


def _expected_shift(values: Array, counts: Array, direction: str) -> Array:
    """Compute BitShift-28 with Python integers."""
    bits = np.iinfo(values.dtype).bits

    def shift(value: int, count: int) -> int:
        in_range = 0 <= count < bits
        if direction == "RIGHT":
            return value >> (count if in_range else bits)
        return value << count if in_range else 0

    operands = np.broadcast_arrays(values.astype(object), counts.astype(object))
    shifted = np.frompyfunc(shift, 2, 1)(*operands)
    wrapped = np.frompyfunc(lambda number: number % (1 << bits), 1, 1)(shifted).astype(np.uint64)
    return np.asarray(wrapped.astype(values.dtype))


@pytest.mark.parametrize("target", [7, 8, 9, 10])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", UNSIGNED)
def test_shifts_unsigned_integers(dtype: type, direction: str, target: int) -> None:
    values, counts = _boundary_values(dtype), _shift_counts(dtype, include_overflow=False)
    model = _model("BitShift", 11, dtype, values, counts, direction=direction)
    expected = [_expected_shift(values, counts, direction)]
    convert_and_check(model, target, {"x0": values, "x1": counts}, expected, 0)


@pytest.mark.parametrize("target", [7, 10, 13])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", [*UNSIGNED, *SIGNED])
def test_accepts_shift_counts_beyond_the_bit_width(dtype: type, direction: str, target: int) -> None:
    values, counts = _boundary_values(dtype), _shift_counts(dtype, include_overflow=True)
    if dtype in SIGNED:
        counts = np.concatenate([counts, np.array([[-1], [np.iinfo(dtype).min]], dtype)])
    model = _model("BitShift", 28, dtype, values, counts, direction=direction)
    expected = [_expected_shift(values, counts, direction)]
    convert_and_check(model, target, {"x0": values, "x1": counts}, expected, 0)


@pytest.mark.parametrize("target", [7, 9, 13, 17])
@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@pytest.mark.parametrize("dtype", [*UNSIGNED, *SIGNED])
def test_expands_bitwise_logic(dtype: type, op: str, target: int) -> None:
    first = _boundary_values(dtype)
    second: Array = (
        np.random.default_rng(0).permutation(np.concatenate([first, first // 7])).reshape(2, -1, 1)
    )
    operation = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}[op]
    model = _model(op, 18, dtype, first, second)
    convert_and_check(model, target, {"x0": first, "x1": second}, [operation(first, second)], 0)


@pytest.mark.parametrize("target", [7, 17])
@pytest.mark.parametrize("dtype", [*UNSIGNED, *SIGNED])
def test_expands_bitwise_not(dtype: type, target: int) -> None:
    values = _boundary_values(dtype)
    convert_and_check(_model("BitwiseNot", 18, dtype, values), target, {"x0": values}, [~values], 0)


@pytest.mark.parametrize(
    ("source", "to"),
    [
        pytest.param(np.int8, np.uint8, id="sign bit to value bit"),
        pytest.param(np.uint16, np.int16, id="highest bit to sign bit"),
        pytest.param(np.uint64, np.int64, id="64 bits"),
        pytest.param(np.int32, np.int32, id="same type"),
    ],
)
def test_preserves_bits_of_integers(source: type, to: type) -> None:
    values = _boundary_values(source)
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    node = helper.make_node("BitCast", ["x0"], ["y"], name="node", to=element_type)
    model = build([node], {"x0": values}, {"y": element_type}, 26)
    convert_and_check(model, 7, {"x0": values}, [values.view(to)], 0)


def test_refuses_bits_of_floats() -> None:
    node = helper.make_node("BitCast", ["x"], ["y"], to=onnx.TensorProto.INT32)
    model = build([node], {"x": np.ones(2, np.float32)}, {"y": onnx.TensorProto.INT32}, 26)
    refused = refusal_of(model, 25)
    assert refused.reason == "no operator of opset 25 reinterprets the bits of float as int32"
    assert (
        refused.remedy
        == "use Cast if the value is to be converted, or reinterpret the bits outside the model"
    )
