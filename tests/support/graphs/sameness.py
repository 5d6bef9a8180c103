"""Whether two runs gave the same, but for rounding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from support.graphs.values import type_of

TOLERANCE = {"double": 1e-5, "float": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
"""Of a value, relative to the largest: chains of nodes make rounding errors grow."""


def tolerance_of(values: Iterable[Any]) -> float:
    """What the narrowest type of float that values have makes of rounding."""
    types = {type_of(each) for each in values if isinstance(each, np.ndarray)}
    return max((TOLERANCE[each] for each in types if each in TOLERANCE), default=0.0)


def assert_same(found: Sequence[Any], expected: Sequence[Any], tolerance: float) -> None:
    """Same types, shapes and values (NaN equals NaN), floats within a tolerance."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, list):
            assert_same(one, other, tolerance)
        else:
            _assert_same_tensor(np.asarray(one), np.asarray(other), tolerance)


def _assert_same_tensor(one: Any, other: Any, tolerance: float) -> None:
    assert (type_of(one), one.shape) == (type_of(other), other.shape)
    if type_of(other) not in TOLERANCE:
        assert one.tolist() == other.tolist() or _as_floats_equal(one, other)
        return
    wide = other.astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide)])
    largest = float(finite.max()) if finite.size else 0.0
    np.testing.assert_allclose(
        one.astype(np.float64), wide, rtol=tolerance, atol=tolerance * min(max(largest, 0.1), 10.0)
    )


def _as_floats_equal(one: Any, other: Any) -> bool:
    return one.dtype.kind == "V" and np.array_equal(one.astype(float), other.astype(float), equal_nan=True)
