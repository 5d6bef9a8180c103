"""Comparison of two runs up to rounding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opshift.model.element_types import BY_NUMBER
from opshift.model.graphs import nested_nodes
from random_graphs.values import type_of

if TYPE_CHECKING:
    import onnx

TOLERANCE = {"double": 1e-5, "float": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
"""Tolerances by type, relative to the largest value, since chains of nodes amplify rounding errors."""


def tolerance_of(values: Iterable[Any], model: onnx.ModelProto) -> float:
    """Return the tolerance for the least precise float type among values and intermediate results."""
    types = {type_of(each) for each in values if isinstance(each, np.ndarray)}
    stated = (each for node in nested_nodes(model.graph, *model.functions) for each in node.attribute)
    types |= {BY_NUMBER[each.i].name for each in stated if each.name == "stash_type" and each.i in BY_NUMBER}
    return max((TOLERANCE[each] for each in types if each in TOLERANCE), default=0.0)


def assert_same(found: Sequence[Any], expected: Sequence[Any], tolerance: float) -> None:
    """Assert equal types, shapes and values; floats within a tolerance, NaN equals NaN."""
    assert len(found) == len(expected), f"{len(found)} values instead of {len(expected)}"
    for actual, wanted in zip(found, expected, strict=True):
        if isinstance(wanted, list):
            assert_same(actual, wanted, tolerance)
        else:
            _assert_same_tensor(np.asarray(actual), np.asarray(wanted), tolerance)


def _assert_same_tensor(actual: Any, wanted: Any, tolerance: float) -> None:
    kinds = [f"{type_of(each)}{list(each.shape)}" for each in (actual, wanted)]
    assert kinds[0] == kinds[1], f"{kinds[0]} instead of {kinds[1]}"
    if type_of(wanted) not in TOLERANCE:
        is_equal = actual.tolist() == wanted.tolist() or _as_floats_equal(actual, wanted)
        assert is_equal, f"the values {actual.tolist()} instead of {wanted.tolist()}"
        return
    wide = wanted.astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide)])
    largest = float(finite.max()) if finite.size else 0.0
    np.testing.assert_allclose(
        actual.astype(np.float64), wide, rtol=tolerance, atol=tolerance * min(max(largest, 0.1), 10.0)
    )


def _as_floats_equal(actual: Any, wanted: Any) -> bool:
    return actual.dtype.kind == "V" and np.array_equal(
        actual.astype(float), wanted.astype(float), equal_nan=True
    )
