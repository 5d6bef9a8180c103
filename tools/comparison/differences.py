"""Differences between the outputs of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from measurement.worker import without_objects
from random_graphs.sameness import assert_same


def difference(found: Sequence[Any], expected: Sequence[Any], tolerance: float) -> str:
    """Return the difference of outputs as text; empty if they are equal up to rounding."""
    try:
        assert_same(found, list(map(without_objects, expected)), tolerance)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""
