"""Arithmetic on shapes in which dimensions may be unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from opshift.registry.shapes.context import Shape


def unknown(rank: int) -> Shape:
    """A shape of which only the rank is known."""
    return (None,) * rank


def plus(*sizes: int | None) -> int | None:
    """The sum, if all terms are known."""
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def product(dims: Iterable[int | None]) -> int | None:
    """The number of elements; one empty dimension settles it."""
    found = tuple(dims)
    if 0 in found:
        return 0
    known = [dim for dim in found if dim is not None]
    return math.prod(known) if len(known) == len(found) else None


def quotient(size: int | None, by: int | None) -> int | None:
    """The exact quotient, if there is one."""
    if size is None or not by or size % by:
        return None
    return size // by


def replaced(shape: Shape, axis: int, dim: int | None) -> Shape:
    """The shape with one dimension changed."""
    return (*shape[:axis], dim, *shape[axis + 1 :])


def axis_in(axis: int | None, rank: int | None) -> int | None:
    """The axis counted from the front, or `None` if the rank has no such axis."""
    if axis is None or rank is None or not -rank <= axis < rank:
        return None
    return axis % rank


def axes_in(axes: Sequence[int | None] | None, rank: int | None) -> tuple[int, ...] | None:
    """The axes counted from the front; `None` if one is unknown or wrong."""
    found = [axis_in(axis, rank) for axis in axes or ()]
    known = tuple(axis for axis in found if axis is not None)
    return known if axes is not None and len(known) == len(found) else None


def common(first: Shape | None, second: Shape | None) -> Shape | None:
    """What two shapes agree on, for a value that may have either."""
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(a if a == b else None for a, b in zip(first, second, strict=True))


def refined(first: Shape | None, second: Shape | None) -> Shape | None:
    """What two shapes say together, for a value that has both."""
    if first is None or second is None:
        return second if first is None else first
    if len(first) != len(second):
        return None
    return tuple(_either(a, b) for a, b in zip(first, second, strict=True))


def broadcast(shapes: Sequence[Shape | None]) -> Shape | None:
    """The shape that all broadcast to, as numpy does it."""
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) != len(shapes):
        return None
    if all(shape == known[0] for shape in known):
        return known[0]
    columns = zip_longest(*(shape[::-1] for shape in known), fillvalue=1)
    return tuple(_broadcast_dim(column) for column in columns)[::-1]


def _broadcast_dim(column: Sequence[int | None]) -> int | None:
    wide = {dim for dim in column if dim is not None and dim != 1}
    if len(wide) == 1:
        return wide.pop()
    return 1 if all(dim == 1 for dim in column) else None


def _either(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return first if first == second else None
