"""Values of the fields `bridge` and `axes` of operator versions."""

from typing import Literal

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
