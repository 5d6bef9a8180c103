"""Downgrades of Mod and Round."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, one_node_model, run, run_reference
from support.forms import FORMS, in_form

from opshift import convert_version

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, np.float32, np.float64)
SPECIAL_VALUES = [math.inf, -math.inf, math.nan, 0.0, -0.0, 1.5, -2.5, 6e4, -6e4, 6e-8]
LARGE_VALUES: dict[type, list[float]] = {
    np.float16: [65504.0],
    np.float32: [8388609.0, 2**24 + 2, 1e30],
    np.float64: [2**52 + 1.0, 1e300],
}


def _assert_same_signs(found: Array, expected: Array) -> None:
    """Assert equal signs of all numbers, also of zeros."""
    is_number = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found[is_number]), np.signbit(expected[is_number]))


@pytest.mark.parametrize("target", [7, 9])
@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_expands_mod_of_integers(dtype: type, fmod: int, target: int) -> None:
    low = -7 if np.iinfo(dtype).min else 1
    values: Array = np.array([*range(low, 8), np.iinfo(dtype).max], dtype)
    divisors: Array = np.array([d for d in range(low, 8) if d], dtype).reshape(-1, 1)
    model = one_node_model("Mod", 10, dtype, values, divisors, fmod=fmod)
    expected = np.fmod(values, divisors) if fmod else np.mod(values, divisors)
    convert_and_check(model, target, {"x0": values, "x1": divisors}, [expected])


@pytest.mark.parametrize("target", [10, 13, 27])
@pytest.mark.parametrize("dtype", FLOATS)
def test_expands_float_mod_with_the_sign_of_the_divisor(dtype: type, target: int) -> None:
    values: Array = np.array([*SPECIAL_VALUES, 5.25, -5.25, 7.0], dtype)
    divisors: Array = np.array([2.0, -2.0, 0.0, 0.75, math.inf, -math.inf, math.nan], dtype).reshape(-1, 1)
    model = one_node_model("Mod", 28, dtype, values, divisors)
    with np.errstate(invalid="ignore"):
        expected = np.mod(values, divisors)
    feeds = {"x0": values, "x1": divisors}
    _assert_same_signs(run(convert_and_check(model, target, feeds, [expected]), feeds)[0], expected)


@pytest.mark.parametrize("opset", [10, 28])
@pytest.mark.parametrize("target", [7, 9])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_expands_float_mod_with_the_sign_of_the_divisor_below_opset_10(
    dtype: type, target: int, opset: int
) -> None:
    tiny = float(np.finfo(dtype).smallest_subnormal)
    values: Array = np.array([*SPECIAL_VALUES, 5.25, -5.25, 7.0, tiny, -tiny], dtype)
    divisors: Array = np.array([2.0, -2.0, 0.0, 0.75, -0.75, math.inf, -math.inf, math.nan], dtype)
    pairs: Array = np.array(list(product(values, divisors)), dtype)
    feeds = {"x0": pairs[:, 0].copy(), "x1": pairs[:, 1].copy()}
    result = convert_version(one_node_model("Mod", opset, dtype, *feeds.values()), target)
    with np.errstate(invalid="ignore"):
        expected = np.mod(feeds["x0"], feeds["x1"])
    for runtime in (run, run_reference):
        np.testing.assert_array_equal(runtime(result, feeds)[0], expected)
        _assert_same_signs(runtime(result, feeds)[0], expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_expands_fmod_exactly(dtype: type, target: int, form: str) -> None:
    limits = np.finfo(dtype)
    values = [*SPECIAL_VALUES, -math.inf, 1e-3, 3.0, float(limits.max), float(limits.smallest_subnormal)]
    pairs: Array = np.array(list(product(values, values)), dtype)
    feeds = {"x0": pairs[:, 0].copy(), "x1": pairs[:, 1].copy()}
    node = helper.make_node("Mod", list(feeds), ["y"], fmod=1)
    model, fed = in_form(form, [node], feeds, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}, 10)
    with np.errstate(all="ignore"):
        expected = np.fmod(feeds["x0"], feeds["x1"])
    result = convert_version(model, target)
    for runtime in (run, run_reference):
        np.testing.assert_array_equal(runtime(result, fed)[0], expected)
        _assert_same_signs(runtime(result, fed)[0], expected)


def test_refuses_fmod_of_double() -> None:
    data: Array = np.array([5.5, -5.5, 3.0, 1e-3])
    refused = refusal_of(one_node_model("Mod", 10, np.float64, data, data, fmod=1), 9)
    assert refused.reason == "the remainder of double needs more precision than double"


@pytest.mark.parametrize("target", [7, 10])
@pytest.mark.parametrize("dtype", FLOATS)
def test_expands_round(dtype: type, target: int) -> None:
    """Cover halves that round up and down on both sides of zero, and integral values."""
    halves = np.arange(-6, 6.5, 0.5)
    data: Array = np.array(
        [*SPECIAL_VALUES, *halves, 0.49999997, -0.49999997, 2049, *LARGE_VALUES[dtype]], dtype
    )
    model = one_node_model("Round", 11, dtype, data)
    result = convert_and_check(model, target, {"x0": data}, [np.rint(data)])
    _assert_same_signs(run(result, {"x0": data})[0], np.rint(data))
