"""Values in definitions: of attributes, and of the fields `bridge` and `axes`."""

import math
from typing import Annotated, Literal

from opshift.model.element_types import round_to_float32
from opshift.registry.record import Checked

# Strict, because pydantic takes `true` for 1 otherwise.
Number = Annotated[int, Checked(strict=True)] | Annotated[float, Checked(strict=True)]

Scalar = Number | str

Value = Scalar | tuple[Scalar, ...]


Bridge = Literal["order", "extreme", "ring", "real"]
"""The condition under which a wider type can replace a narrow one without changing an operator's result.

`order`    moves, selects or compares values: any type that represents all of them in the same order.
`extreme`  returns the minimum or maximum, and a limit of the type for an empty input: types with limits
           that become those of the narrow type when they are cast back.
`ring`     adds and multiplies: wider integers, because a cast back wraps like the narrow type; and wider
           floats, rounded once at the end.
`real`     computes a real function: wider floats, rounded once at the end.
"""

Axes = Literal["dimension", "boundary", "new"]
"""Range of `axis` and `axes`, for a first input with r dimensions and n axes.

`dimension` for its dimensions, from -r to r - 1; `boundary` for the positions between them, from -r to r;
`new` for dimensions of the result, from -r - n to r + n - 1.
"""


def stored_value(value: Value, kind: str) -> Value:
    """Return a value as a model stores it in an attribute of a type: floating-point numbers are float32.

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
