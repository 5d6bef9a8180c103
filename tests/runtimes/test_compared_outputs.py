"""Differences between the outputs of two runs, which tools that compare runtimes report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from comparison.differences import difference

INTEGERS, FLOATS = np.array([1, 2]), np.array([1, 2], np.float32)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ([INTEGERS, FLOATS], ""),
        ([INTEGERS, FLOATS + 1e-6], ""),
        ([INTEGERS], "1 values instead of 2"),
        ([INTEGERS + 1, FLOATS], "the values [2, 3] instead of [1, 2]"),
        ([INTEGERS[:, None], FLOATS], "int64[2, 1] instead of int64[2]"),
        ([INTEGERS, FLOATS.astype(np.float64)], "double[2] instead of float[2]"),
        ([INTEGERS, FLOATS + 1], "Not equal to tolerance"),
    ],
)
def test_describes_each_difference(found: list[Any], text: str) -> None:
    problem = difference(found, [INTEGERS, FLOATS], 1e-4)
    assert problem.startswith(text)
    assert bool(problem) == bool(text)
