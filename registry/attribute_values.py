"""Types of attribute values in operator definitions, and of the fields `bridge` and `axes`."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Literal

from opshift.model.element_types import round_to_float32
from opshift.registry.record import Checked, Record

# Strict, because pydantic would otherwise accept the boolean `true` as the number 1.
Number = Annotated[int, Checked(strict=True)] | Annotated[float, Checked(strict=True)]

Scalar = Number | str

Value = Scalar | tuple[Scalar, ...]


Bridge = Literal["order", "extreme", "ring", "real"]
"""Kind of computation of an operator, which decides the wider types that can replace an unsupported type.

The result in a wider type, cast back to the narrow type, must be the same.

`order`    The operator moves, selects or compares values. Allowed: types that represent all values in order.
`extreme`  The operator returns the minimum or maximum, and a limit of the type for an empty input.
           Allowed: types whose limits become the limits of the narrow type when they are cast back.
`ring`     The operator adds and multiplies. Allowed: wider integers, because the cast back wraps around like
           the narrow type, and wider floats, because the cast back rounds the result.
`real`     The operator computes a real function. Allowed: wider floats, as for `ring`.
"""

Axes = Literal["dimension", "boundary", "new"]
"""Allowed range of the attribute or input `axis` or `axes`; r is the rank of input 0, n the number of axes.

`dimension`: a dimension of input 0, from -r to r - 1. `boundary`: a position between dimensions of input 0,
from -r to r. `new`: a dimension of the output, which has rank r + n, from -r - n to r + n - 1.
"""


def stored_value(value: Value, kind: str) -> Value:
    """Return a value as an attribute of type `kind` stores it: rounded to float32 for FLOAT and FLOATS.

    Raises:
        ValueError: a number is out of range for float32.
    """
    if isinstance(value, tuple):
        return tuple(_stored_scalar(item, kind.removesuffix("S")) for item in value)
    return _stored_scalar(value, kind)


def _stored_scalar(value: Scalar, kind: str) -> Scalar:
    if kind == "FLOAT" and isinstance(value, int | float):
        rounded = round_to_float32(value)
        if math.isinf(rounded) and not math.isinf(value):
            raise ValueError(f"{value!r} is out of range for float32")
        return rounded
    return value


def is_same_value(one: object, other: object) -> bool:
    """Return whether two values of definitions are equal: 0.0 differs from -0.0, and NaN equals NaN.

    Lists, mappings and records are compared value by value.
    """
    if isinstance(one, int | float) and isinstance(other, int | float):
        is_equal = one == other and math.copysign(1, one) == math.copysign(1, other)
        return is_equal or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same_value, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same_value(one[key], other[key]) for key in one)
    if isinstance(one, Record) and type(one) is type(other):
        names = (each.name for each in fields(one) if each.compare)
        return all(is_same_value(getattr(one, name), getattr(other, name)) for name in names)
    return one == other
