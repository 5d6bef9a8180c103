"""Products and sums of small integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.com_microsoft import assert_replaced, case
from support.forms import FORMS

RANDOM = np.random.default_rng(5)


def _integers(shape: tuple[int, ...], dtype: Any) -> Any:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("opset", [9, 21])
def test_product_of_16_bit_matrices_equals_the_kernel(form: str, opset: int) -> None:
    left, right = _integers((2, 3, 4), np.int16), _integers((4, 5), np.int16)
    assert_replaced(case("MatMulInteger16", left, right, outputs=[np.int32]), form, opset)


@pytest.mark.parametrize("left", [np.int16, np.uint16])
@pytest.mark.parametrize("right", [np.int16, np.uint16])
def test_product_of_16_bit_matrices_in_all_types(left: Any, right: Any) -> None:
    """The kernel has only int16."""
    first, second = _integers((3, 4), left), _integers((4, 2), right)
    result = np.uint32 if left is right is np.uint16 else np.int32
    expected = (first.astype(np.int64) @ second.astype(np.int64)).astype(result)
    given = case("MatMulInteger16", first, second, outputs=[result])
    assert_replaced(given, expected=[expected])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("zero_points", ["none", "first", "second", "both"])
def test_product_of_8_bit_integers(zero_points: str, dtype: Any) -> None:
    left, right = _integers((2, 3), dtype), _integers((3,), dtype)
    first = dtype(7) if zero_points in ("first", "both") else None
    second = dtype(3) if zero_points in ("second", "both") else None
    expected = (left.astype(np.int32) - int(first or 0)) * (right.astype(np.int32) - int(second or 0))
    given = case("MulInteger", left, first, right, second, outputs=[np.int32])
    assert_replaced(given, expected=[expected])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("opset", [11, 17])
def test_sum_of_8_bit_integers(dtype: Any, keepdims: int, opset: int) -> None:
    data, wide = _integers((3, 4, 5), dtype), np.uint32 if dtype is np.uint8 else np.int32
    expected = data.astype(wide).sum(axis=(0, 2), keepdims=bool(keepdims), dtype=wide)
    given = case("ReduceSumInteger", data, outputs=[wide], axes=[0, -1], keepdims=keepdims)
    assert_replaced(given, opset=opset, expected=[expected])
