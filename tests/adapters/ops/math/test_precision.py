"""Bounds of the errors of approximate steps, on a million values of each type."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.execution import Array, Feeds, build, run

from opshift import convert_version
from opshift.adapters.core.adapter_table import StepKey, adapter_table, error_bound
from opshift.adapters.ops.math.hyperbolic import MAX_ULP

COUNT = 1_000_000
BITS: dict[type, type] = {np.float16: np.uint16, np.float32: np.uint32, np.float64: np.uint64}
RANDOM = np.random.default_rng(0)


def _erf(x: Array) -> Array:
    return np.array([math.erf(each) for each in x.astype(np.float64).tolist()])


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Erf": _erf,
}


def _patterns(dtype: type, count: int) -> Array:
    """Return random bit patterns, which cover the whole range of a type evenly by exponent."""
    bits = BITS[dtype]
    return RANDOM.integers(0, np.iinfo(bits).max, count, bits, endpoint=True).view(dtype)


def _values(dtype: type) -> Array:
    """Return all numbers of float16; otherwise bit patterns, numbers of usual size, and limits."""
    if dtype is np.float16:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    limits = np.finfo(dtype)
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, 88.8, 89.41, 710.4, 710.5]
    numbers = [RANDOM.uniform(-3, 3, COUNT // 5), 10 ** RANDOM.uniform(-20, 3, COUNT // 5), special]
    ends = [limits.max, limits.min, limits.tiny, limits.smallest_subnormal]
    return np.concatenate(
        [_patterns(dtype, COUNT * 3 // 5), *(np.array(each, dtype) for each in (*numbers, ends))]
    )


def _run_converted(op_type: str, feeds: Feeds, opset: int, target: int, **attributes: int) -> Array:
    dtype = next(iter(feeds.values())).dtype
    node = helper.make_node(op_type, list(feeds), ["y"], **attributes)
    model = build([node], feeds, {"y": helper.np_dtype_to_tensor_dtype(dtype)}, opset)
    result: Array = run(convert_version(model, target, allow="approximate"), feeds)[0]
    return result


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_functions_are_accurate_over_the_whole_range(op_type: str, dtype: type) -> None:
    data = _values(dtype)
    found = _run_converted(op_type, {"x": data}, 9, 8)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[op_type](data.astype(np.longdouble))
        rounded = exact.astype(dtype)
        # Overflow may differ by a rounding at the limit of the type.
        is_number = np.isfinite(rounded) & np.isfinite(found)
        errors = np.abs(found.astype(np.longdouble) - exact)[is_number]
        limit = MAX_ULP if dtype is np.float64 else 1
        assert np.all(errors <= limit * np.spacing(np.abs(rounded[is_number])).astype(np.longdouble))
    np.testing.assert_array_equal(found[~is_number], rounded[~is_number])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_remainders_are_exact(dtype: type) -> None:
    feeds = {"a": _patterns(dtype, COUNT), "b": _patterns(dtype, COUNT)}
    with np.errstate(all="ignore"):
        expected = np.fmod(feeds["a"], feeds["b"])
    np.testing.assert_array_equal(_run_converted("Mod", feeds, 10, 9, fmod=1), expected)


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("size", [2, 4])
def test_determinants_have_a_bounded_error(size: int, dtype: type) -> None:
    data: Array = RANDOM.standard_normal((COUNT // size**2, size, size)).astype(dtype)
    found = _run_converted("Det", {"x": data}, 11, 10)
    exact = magnitude = np.zeros(len(data), np.longdouble)
    for order in permutations(range(size)):
        product = np.prod(
            [data[:, row, column].astype(np.longdouble) for row, column in enumerate(order)], axis=0
        )
        sign = round(np.linalg.det(np.eye(size)[list(order)]))
        exact, magnitude = exact + sign * product, magnitude + abs(product)
    bound = np.spacing(np.abs(exact.astype(dtype))).astype(np.longdouble) + magnitude * 2.0**-46
    assert np.all(np.abs(found.astype(np.longdouble) - exact) <= bound)


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_determinants_of_special_values_are_not_finite(special: float) -> None:
    data: Array = RANDOM.standard_normal((1000, 3, 3))
    data[np.arange(1000), RANDOM.integers(0, 3, 1000), RANDOM.integers(0, 3, 1000)] = special
    assert not np.isfinite(_run_converted("Det", {"x": data}, 11, 10)).any()


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (("Sinh", 9, 8), "at most 1 unit in the last place, or 8 in double"),
        (("Det", 11, 10), "at most 2^-46 of the sum of the magnitudes of all products"),
        (("Pow", 12, 7), "at most 2^-52 of the power"),
        (("Clip", 12, 11), ""),
    ],
)
def test_table_states_the_bounds(step: tuple[str, int, int], error: str) -> None:
    adapter_table()
    found = error_bound(StepKey("ai.onnx", *step))
    assert found.startswith(error)
    assert bool(found) == bool(error)


def test_powers_of_large_integers_have_the_precision_of_double() -> None:
    base = RANDOM.integers(-(2**31), 2**31, COUNT)
    exponent = np.full(COUNT, 2)
    found = _run_converted("Pow", {"a": base, "b": exponent}, 12, 11)
    exact = base.astype(np.longdouble) ** 2
    assert np.all(np.abs(found.astype(np.longdouble) - exact) <= exact * 2.0**-52)
