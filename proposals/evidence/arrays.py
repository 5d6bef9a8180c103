"""Values of examples as arrays, and their conversion to other element types."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from opshift.converter.verification.arrays import Array, dtype_of
from opshift.proposals.models import Given
from opshift.registry.element_types import BY_NAME
from opshift.registry.errors import OpshiftError

FLOATING = ("float", "double", "float16", "bfloat16")
_SPECIAL_VALUES = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class BadValue(OpshiftError):
    """Example that is not a valid node, or has values that do not match their type or shape."""


def array_of(given: Given) -> Array:
    """Return the values of an example as an array.

    Raises:
        BadValue: the element type is unknown, or the values do not match the type or the shape.
    """
    if given.type not in BY_NAME:
        raise BadValue(f"unknown element type {given.type!r}", remedy="use a name such as float")
    try:
        found = np.asarray(_parse_values(given.values, given.type)).astype(dtype_of(given.type))
        return found if given.shape is None else found.reshape(given.shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadValue(f"invalid values for type {given.type} or for the shape: {error}") from error


def _parse_values(values: Any, element_type: str) -> Any:
    if isinstance(values, list | tuple):
        return [_parse_values(each, element_type) for each in values]
    return (
        _SPECIAL_VALUES.get(values, values)
        if element_type != "string" and isinstance(values, str)
        else values
    )


def retyped(array: Array, element_type: str) -> Array | None:
    """Convert values to another element type.

    Conversions to floating-point types may round.

    Returns:
        `None` if one of the types is not numeric, or if an integer type cannot represent the values exactly.
    """
    if element_type not in BY_NAME or array.dtype.kind in "OSUb" or element_type in ("string", "bool"):
        return None
    # Casts of nan and of values out of range warn; the comparison below detects them.
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        found = np.asarray(array.astype(dtype_of(element_type)))
        # complex128 holds the values of all numeric types, so that both sides can be compared.
        is_equal = found.astype(np.complex128) == array.astype(np.complex128)
    return found if element_type in FLOATING or bool(is_equal.all()) else None
