"""The values of examples as arrays, and the same values in another element type."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from opshift.converter.verification.arrays import Array, dtype_of
from opshift.proposals.models import Given
from opshift.registry.element_types import BY_NAME
from opshift.registry.errors import OpshiftError

FLOATING = ("float", "double", "float16", "bfloat16")
_WORDS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class BadValue(OpshiftError):
    """Values of an example that are none of their type, or do not fill their shape."""


def array_of(given: Given) -> Array:
    """The array that an example states.

    Raises:
        BadValue: the values are not of the type, or do not fill the shape.
    """
    if given.type not in BY_NAME:
        raise BadValue(f"{given.type!r} is no element type", remedy="name one as float")
    try:
        found = np.asarray(_numbers(given.values, given.type)).astype(dtype_of(given.type))
        return found if given.shape is None else found.reshape(given.shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadValue(f"the values are no {given.type}: {error}") from error


def _numbers(values: Any, element_type: str) -> Any:
    if isinstance(values, list | tuple):
        return [_numbers(each, element_type) for each in values]
    return _WORDS.get(values, values) if element_type != "string" and isinstance(values, str) else values


def retyped(array: Array, element_type: str) -> Array | None:
    """The same values in another type; `None` where it does not have them.

    Between floats they are rounded; what is no whole number, or out of range, no integer has.
    """
    if element_type not in BY_NAME or array.dtype.kind in "OSUb" or element_type in ("string", "bool"):
        return None
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        found = np.asarray(array.astype(dtype_of(element_type)))
        same = found.astype(np.complex128) == array.astype(np.complex128)
    return found if element_type in FLOATING or bool(same.all()) else None
