"""Sizes of dimensions: numbers where they are known, computed by nodes where they are not."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.rewriter import Rewriter

Size = int | str
"""A number, or the name of a list of one int64."""
TO_THE_LAST = 2**31 - 1
"""As the end of a slice, one beyond any rank or size."""


def dimension(value: str, axis: int, out: Rewriter) -> Size:
    """The size of one dimension of a value."""
    shape = out.shape(value)
    known = shape[axis] if shape is not None and axis < len(shape) else None
    return computed_dimension(value, axis, out) if known is None else known


def computed_dimension(value: str, axis: int, out: Rewriter) -> str:
    """The size of one dimension of a value of which nothing is known yet, such as one just emitted."""
    return out.emit("Gather", [out.emit("Shape", [value]), out.constant([axis], "int64")], axis=0)


def total(first: Size, second: Size, out: Rewriter) -> Size:
    """The sum of two sizes."""
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    return out.emit("Add", [as_list(first, out), as_list(second, out)])


def as_list(size: Size, out: Rewriter) -> str:
    """The name of a list of one int64."""
    return size if isinstance(size, str) else out.constant([size], "int64")


def listed(sizes: Sequence[Size], out: Rewriter) -> str:
    """The name of a list of sizes: a constant if all are known."""
    numbers = tuple(size for size in sizes if isinstance(size, int))
    if len(numbers) == len(sizes):
        return out.constant(numbers, "int64")
    return out.emit("Concat", [as_list(size, out) for size in sizes], axis=0)


def reshaped(value: str, sizes: Sequence[Size], out: Rewriter) -> str:
    """The value under another shape; 0 keeps a dimension, and one -1 takes what the others leave."""
    return out.emit("Reshape", [value, listed(sizes, out)])
