"""Comparison of two outputs: measured differences and the tolerance."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opshift.analysis.verification.compare import TOLERANCES, agreeing_elements, compare_output
from opshift.analysis.verification.result import OutputCompared

NAN, INF = math.nan, math.inf


def compare_lists(
    original: Any, converted: Any, dtype: Any = np.float32, tolerance: float | None = None
) -> OutputCompared:
    """Compare two lists as arrays."""
    return compare_output("y", [np.array(original, dtype)], [np.array(converted, dtype)], tolerance)


EQUAL = {
    "same values": ([1.0, 2.0], [1.0, 2.0], np.float32),
    "NaN and NaN": ([NAN, 1.0], [NAN, 1.0], np.float32),
    "equal infinities": ([INF, -INF], [INF, -INF], np.float32),
    "positive and negative zero": ([0.0], [-0.0], np.float32),
    "float rounding": ([1.0, 1000.0], [1.00001, 1000.05], np.float32),
    "rounding relative to large elements": ([0.0, 1e4, 1e4, 1e4], [0.05, 1e4, 1e4, 1e4], np.float32),
    "float16 rounding": ([1.0], [1.001], np.float16),
    "bfloat16 rounding": ([1.0], [1.0078125], ml_dtypes.bfloat16),
    "complex": ([1 + 1j], [1.00001 + 1j], np.complex64),
    "no elements": ([], [], np.float32),
    "scalar": (1.0, 1.0, np.float32),
    "rounding of the largest doubles": ([1.7e308] * 4, [1.7e308 * (1 - 1e-15)] * 4, np.float64),
    "strings": (["a", ""], ["a", ""], object),
    "booleans": ([True, False], [True, False], bool),
}
DIFFERENT = {
    "one element": ([1.0, 2.0], [1.0, 2.5], np.float32, "1 of 2 elements; 2.0 at [1] became 2.5", 0.5),
    "scalar": (1.0, 2.0, np.float32, "1 of 1 elements; 1.0 at [] became 2.0", 1.0),
    "NaN and a number": ([NAN], [1.0], np.float32, "nan at [0] became 1.0", INF),
    "a number and NaN": ([1.0], [NAN], np.float32, "1.0 at [0] became nan", INF),
    "a number and infinity": ([1.0], [INF], np.float32, "1.0 at [0] became inf", INF),
    "infinity and a number": ([INF], [1e38], np.float32, "inf at [0] became", INF),
    "infinities of opposite sign": ([INF], [-INF], np.float32, "inf at [0] became -inf", INF),
    "float rounding in double": ([1.0], [1.0000001], np.float64, "1.0 at [0] became 1.0000001", 1e-7),
    "small elements": ([1e-3] * 9, [1.2e-3] * 9, np.float32, "9 of 9 elements", 2e-4),
    "integers that differ by one": ([7], [8], np.int64, "7 at [0] became 8", 1.0),
    "large doubles, whose sum overflows": (
        [1.7e308] * 4,
        [1.7e308] * 3 + [1e308],
        np.float64,
        "1 of 4",
        7e307,
    ),
    "large doubles and infinity": ([1.7e308] * 4, [1.7e308] * 3 + [INF], np.float64, "1 of 4", INF),
    "large doubles of opposite sign": ([1.7e308] * 4, [-1.7e308] * 4, np.float64, "4 of 4", INF),
    "largest double and NaN": ([np.finfo(float).max] * 3, [NAN] * 3, np.float64, "3 of 3", INF),
    "large integers that differ by one": ([2**62], [2**62 + 1], np.int64, "1 of 1 elements", 1.0),
    "integers of opposite sign": ([-(2**63)], [2**63 - 1], np.int64, "1 of 1 elements", 2.0**64),
    "unsigned integers": ([0], [2**64 - 1], np.uint64, "1 of 1 elements", 2.0**64),
    "booleans": ([True], [False], bool, "True at [0] became False", 1.0),
    "strings": (["a", "b"], ["a", "c"], object, "1 of 2 elements; b at [1] became c", 0.0),
    "8-bit floats that differ by one step": (
        [1.0],
        [1.125],
        ml_dtypes.float8_e4m3fn,
        "1.0 at [0] became 1.125",
        0.125,
    ),
}


@pytest.mark.parametrize(("original", "converted", "dtype"), EQUAL.values(), ids=EQUAL)
def test_accepts_equal_outputs(original: Any, converted: Any, dtype: Any) -> None:
    comparison = compare_lists(original, converted, dtype)
    assert (comparison.equal, comparison.differing, comparison.reason) == (True, 0, "")
    assert comparison.count == np.size(original)


@pytest.mark.parametrize(
    ("original", "converted", "dtype", "reason", "absolute"), DIFFERENT.values(), ids=DIFFERENT
)
def test_reports_different_outputs(
    original: Any, converted: Any, dtype: Any, reason: str, absolute: float
) -> None:
    comparison = compare_lists(original, converted, dtype)
    assert not comparison.equal
    assert comparison.differing >= 1
    assert reason in comparison.reason
    assert comparison.absolute == pytest.approx(absolute, rel=0.2)


def test_reports_worst_element() -> None:
    comparison = compare_lists([[1.0, 2.0], [3.0, 4.0]], [[1.5, 2.0], [3.0, 9.0]])
    assert comparison.reason == "2 of 4 elements; 4.0 at [1, 1] became 9.0"
    assert (comparison.absolute, comparison.relative) == (5.0, 1.25)


def test_aggregates_all_samples() -> None:
    first, second = np.ones((2, 3), np.float32), np.full((2, 3), NAN, np.float32)
    comparison = compare_output("y", [first, second], [first + 0.5, second], None)
    assert (comparison.count, comparison.finite, comparison.differing, comparison.shape) == (12, 6, 6, (2, 3))
    assert not comparison.equal
    assert compare_output("y", [second, first], [second, first], None).equal


@pytest.mark.parametrize(
    ("original", "converted", "reason"),
    [
        pytest.param(
            np.ones(2, np.float32),
            np.ones(3, np.float32),
            "the shape of the output changed from [2] to [3]",
            id="size",
        ),
        pytest.param(
            np.ones(2), np.ones((1, 2)), "the shape of the output changed from [2] to [1, 2]", id="rank"
        ),
        pytest.param(
            np.ones(2, np.int32),
            np.ones(2, np.int64),
            "the type of the output changed from int32 to int64",
            id="type",
        ),
        pytest.param(
            [np.ones(2)], [np.ones(2)] * 2, "the structure differs (1 and 2 tensors)", id="longer sequence"
        ),
        pytest.param([np.ones(2)], [np.zeros(2)], "1.0 at [0][0] became 0.0", id="element of a sequence"),
        pytest.param(
            [{"a": 1.0}], [{"b": 1.0}], "the structure differs (1 and 1 tensors)", id="different key"
        ),
        pytest.param([{"a": 1.0}], [{"a": 2.0}], "1.0 at [0]['a'] became 2.0", id="value of a map"),
        pytest.param(None, np.ones(2), "the output is absent in one of the models", id="absent"),
    ],
)
def test_reports_different_structure(original: Any, converted: Any, reason: str) -> None:
    assert reason in compare_output("y", [original], [converted], None).reason


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([], id="empty sequence"),
        pytest.param([np.ones(2), np.zeros(3)], id="sequence"),
        pytest.param([{1: 0.5, 2: 0.25}], id="maps"),
        pytest.param(None, id="absent value"),
    ],
)
def test_accepts_equal_structure(value: Any) -> None:
    comparison = compare_output("y", [value], [value], None)
    assert comparison.equal
    assert comparison.shape is None


@pytest.mark.parametrize(
    "first", [pytest.param([], id="empty sequence"), pytest.param(None, id="absent value")]
)
def test_takes_the_tolerance_from_the_first_tensor_of_all_samples(first: Any) -> None:
    tensor = np.ones(3, np.float32)
    comparison = compare_output("y", [first, [tensor]], [first, [tensor * np.float32(1 + 1e-6)]], None)
    assert (comparison.equal, comparison.type, comparison.tolerance) == (True, "float", TOLERANCES["float"])
    assert not compare_output("y", [first, [tensor]], [first, [tensor * 2]], None).equal


@pytest.mark.parametrize("other", [-1.7e308, NAN, INF])
@pytest.mark.parametrize("tolerance", [None, 2.0])
def test_runtimes_that_differ_by_infinity_disagree(other: float, tolerance: float | None) -> None:
    assert not agreeing_elements(np.full(4, 1.7e308), np.full(4, other), tolerance).any()


def test_compares_values_of_maps_as_floats() -> None:
    assert compare_output("y", [[{"a": 0.1}]], [[{"a": 0.1000001}]], None).equal


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64])
def test_applies_given_tolerance(dtype: Any) -> None:
    assert compare_lists([1.0], [1.5], dtype, tolerance=0.5).equal
    assert not compare_lists([1.0], [3.0], dtype, tolerance=0.5).equal


@pytest.mark.parametrize("dtype", [np.int32, bool, ml_dtypes.float8_e5m2])
def test_ignores_tolerance_for_exact_types(dtype: Any) -> None:
    assert not compare_lists([1.0], [0.0], dtype, tolerance=9.0).equal


def test_defines_tolerances_of_float_types() -> None:
    assert set(TOLERANCES) == {"double", "float", "float16", "bfloat16", "complex64", "complex128"}
