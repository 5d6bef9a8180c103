"""Whether what a model gave for some inputs tells anything about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opshift.converter.types import shape_of

Outputs = Sequence[Sequence[Any]]
"""For each sample all outputs."""


def fits(outputs: Outputs, declared: Sequence[Any]) -> bool:
    """Whether the outputs have the sizes that the graph states, as with the inputs that it is made for."""
    return all(
        _fits(value, one.type) for sample in outputs for value, one in zip(sample, declared, strict=True)
    )


def has_numbers(outputs: Outputs) -> bool:
    """Whether any output has an element that is not infinite and not NaN."""
    return any(_has_numbers(value) for sample in outputs for value in sample)


def _fits(value: Any, kind: Any) -> bool:
    stated = shape_of(kind)
    if stated is None or not isinstance(value, np.ndarray):
        return True
    sizes = zip(stated, value.shape, strict=False)
    return len(stated) == value.ndim and all(size in (None, there) for size, there in sizes)


def _has_numbers(value: Any) -> bool:
    if isinstance(value, list | tuple | dict) or value is None:
        return bool(value)
    array = np.asarray(value)
    return bool(np.isfinite(array).any()) if array.dtype.kind in "fc" else array.size > 0
