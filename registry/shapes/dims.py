"""Arithmetic on shapes with unknown dimensions."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations, zip_longest

from opshift.model.types import MAX_RANK, Shape, Symbol
from opshift.registry.shapes.sizes import is_limited


def unknown(rank: int) -> Shape:
    """Return a shape with unknown dimensions.

    Raises:
        OverflowError: the rank exceeds `MAX_RANK`; then the decorator `rule` makes all shapes unknown.
    """
    if rank > MAX_RANK:
        raise OverflowError(f"rank {rank}")
    return (None,) * rank


def of_rank(shape: Shape | None, rank: int) -> Shape:
    """Return the shape, or unknown dimensions if its rank is unknown or different."""
    return shape if shape is not None and len(shape) == rank else unknown(rank)


def dim_at(shape: Shape | None, axis: int) -> int | None:
    """Return a dimension, or `None` if the shape is unknown or has too few dimensions."""
    return shape[axis] if shape is not None and axis < len(shape) else None


def with_dims(shape: Shape, dims: Mapping[int, int | None]) -> Shape:
    """Return the shape with replaced dimensions; `dims` maps an axis to the new size."""
    return tuple(dims.get(axis, dim) for axis, dim in enumerate(shape))


def without_axes(shape: Shape, axes: Iterable[int]) -> Shape:
    """Return the shape without the dimensions at `axes`, which are not negative."""
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


def plus(*sizes: int | None) -> int | None:
    """Return the sum, or `None` if a term is unknown."""
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def product(dims: Iterable[int | None]) -> int | None:
    """Return the product: 0 if any factor is 0, otherwise `None` if a factor is unknown."""
    factors = tuple(dims)
    if 0 in factors:
        return 0
    known = [dim for dim in factors if dim is not None]
    return math.prod(known) if len(known) == len(factors) else None


def exact_quotient(size: int | None, by: int | None) -> int | None:
    """Return `size / by`, or `None` if the quotient is unknown or not an integer, or `by` is 0."""
    return None if size is None or not by or size % by else size // by


def normalize_axis(axis: int | None, rank: int | None) -> int | None:
    """Return the axis as a non-negative index, or `None` if it is unknown or out of range."""
    return None if axis is None or rank is None or not -rank <= axis < rank else axis % rank


def normalize_axes(axes: Sequence[int | None] | None, rank: int | None) -> tuple[int, ...] | None:
    """Return the axes as non-negative indices, or `None` if one is unknown or out of range.

    The result is `None`, too, for more axes than dimensions: some axes are repeated.
    """
    if axes is not None and rank is not None and len(axes) > rank:
        return None
    indices = [normalize_axis(axis, rank) for axis in axes or ()]
    known = tuple(axis for axis in indices if axis is not None)
    return known if axes is not None and len(known) == len(indices) else None


def common_shape(first: Shape | None, second: Shape | None) -> Shape | None:
    """Return the dimensions that two shapes agree on, for a value that has either shape."""
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(a if a == b else None for a, b in zip(first, second, strict=True))


def unify(first: Shape | None, second: Shape | None) -> Shape | None:
    """Return the combined knowledge of two shapes of the same value.

    Contradicting dimensions are unknown; for contradicting ranks, return `None`. Two symbols never contradict
    each other: the sizes are equal in every run, for example because a Concat requires equal sizes.
    """
    if first is None or second is None:
        return second if first is None else first
    if len(first) != len(second):
        return None
    return tuple(
        a if type(a) is type(b) is Symbol else unify_dims(a, b) for a, b in zip(first, second, strict=True)
    )


def unify_dims(first: int | None, second: int | None) -> int | None:
    """Return the combined knowledge of two dimensions; `None` if they contradict each other."""
    if first is None or second is None:
        return second if first is None else first
    return first if first == second else None


def broadcast(shapes: Sequence[Shape | None]) -> Shape | None:
    """Return the shape that all shapes broadcast to, as in NumPy; `None` if a shape is unknown."""
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) != len(shapes):
        return None
    # Shortcut for equal shapes, the most common case; the general code has the same result.
    if all(shape == known[0] for shape in known):
        return known[0]
    columns = zip_longest(*(shape[::-1] for shape in known), fillvalue=1)
    return tuple(_broadcast_dim(column) for column in columns)[::-1]


def _broadcast_dim(column: Sequence[int | None]) -> int | None:
    sizes = {dim for dim in column if dim is not None and dim != 1}
    if len(sizes) == 1:
        size = sizes.pop()
        # If a symbol is 1 at run time, the result is the other dimension, which may be unknown.
        return None if type(size) is Symbol and None in column else size
    if len(sizes) == 2 and None not in column:
        # Example: position embeddings that a Slice cuts to the sequence length, which is `size`. The minimum
        # of `size` and a positive number broadcasts to `size` only if it equals `size` or 1.
        for size, other in permutations(sizes):
            if is_limited(other, size):
                return size
    return 1 if all(dim == 1 for dim in column) else None
