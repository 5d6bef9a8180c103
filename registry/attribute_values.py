"""Types of values in definitions: attribute values, and the fields `bridge` and `axes`."""

import math
from typing import Annotated, Literal

from opshift.model.element_types import round_to_float32
from opshift.registry.record import Checked

# Strict: otherwise pydantic accepts the boolean `true` as the number 1.
Number = Annotated[int, Checked(strict=True)] | Annotated[float, Checked(strict=True)]

Scalar = Number | str

Value = Scalar | tuple[Scalar, ...]


Bridge = Literal["order", "extreme", "ring", "real"]
"""Kind of an operator, which determines the wider types that can replace a narrow type with the same result.

`order`    The operator moves, selects or compares values. Types: any that represent all values in order.
`extreme`  The operator returns the minimum or maximum, and a limit of the type for an empty input.
           Types: those with limits that a cast back turns into the limits of the narrow type.
`ring`     The operator adds and multiplies. Types: wider integers, because a cast back wraps like the narrow
           type, and wider floats, whose results are rounded once, by the cast back.
`real`     The operator computes a real function. Types: wider floats, whose results are rounded once.
"""

Axes = Literal["dimension", "boundary", "new"]
"""Range of the attribute or input `axis` or `axes`, for a first input of rank r and n axes.

`dimension`: a dimension of the first input, from -r to r - 1. `boundary`: a position between dimensions, from
-r to r. `new`: a dimension of the result, which has rank r + n, from -r - n to r + n - 1.
"""


def stored_value(value: Value, kind: str) -> Value:
    """Return a value as an attribute of type `kind` stores it: numbers of FLOAT and FLOATS become float32.

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
