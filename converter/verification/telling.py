"""Check whether the outputs of a model are conclusive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opshift.converter.types import shape_of

Outputs = Sequence[Sequence[Any]]
"""Outputs of the model for each sample."""


def fits(outputs: Outputs, declared: Sequence[Any]) -> bool:
    """Return whether the outputs have their declared sizes, which indicates suitable inputs."""
    return all(
        _has_declared_shape(value, one.type)
        for sample in outputs
        for value, one in zip(sample, declared, strict=True)
    )


def has_numbers(outputs: Outputs) -> bool:
    """Return whether any output has an element that is neither infinite nor NaN."""
    return any(_has_finite_values(value) for sample in outputs for value in sample)


def _has_declared_shape(value: Any, kind: Any) -> bool:
    stated = shape_of(kind)
    if stated is None or not isinstance(value, np.ndarray):
        return True
    sizes = zip(stated, value.shape, strict=False)
    return len(stated) == value.ndim and all(declared in (None, actual) for declared, actual in sizes)


def _has_finite_values(value: Any) -> bool:
    if isinstance(value, list | tuple | dict) or value is None:
        return bool(value)
    array = np.asarray(value)
    return bool(np.isfinite(array).any()) if array.dtype.kind in "fc" else array.size > 0
