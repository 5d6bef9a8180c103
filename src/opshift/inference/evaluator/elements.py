"""Elements of values: numbers, symbols for sizes known only at run time, or `None` if unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from math import prod
from operator import mul
from typing import TypeAlias

from opshift.inference.symbols import is_symbol
from opshift.model.node import Tensor

Element: TypeAlias = "int | float | bytes | None"
"""Number, bool, string, `Symbol`, or `None` if the element is unknown."""

Elements: TypeAlias = Tensor
"""Tensor whose values are of type `Element`."""

Dims = tuple[int, ...]


def is_constant(elements: Elements) -> bool:
    """Return whether all elements are known and the same in every run."""
    values = elements.values
    return None not in values and not any(map(is_symbol, values))


def take(elements: Elements, axis: int, positions: Sequence[int], dims: Dims | None = None) -> Elements:
    """Select positions along an axis, whose dimension becomes `dims`, by default `(len(positions),)`."""
    inner, size = prod(elements.dims[axis + 1 :]), elements.dims[axis]
    values = elements.values
    starts = range(0, len(values) if positions else 0, (size * inner) or 1)
    shape = (
        *elements.dims[:axis],
        *((len(positions),) if dims is None else dims),
        *elements.dims[axis + 1 :],
    )
    if inner == 1:
        picked: Iterable[Element] = [values[start + each] for start in starts for each in positions]
    else:
        rows = ((start + each * inner for each in positions) for start in starts)
        picked = chain.from_iterable(values[row : row + inner] for row in chain.from_iterable(rows))
    return Tensor(elements.element_type, shape, tuple(picked))


def join(parts: Sequence[Elements], axis: int) -> Elements:
    """Concatenate along an axis; the other dimensions must be equal."""
    first = parts[0]
    dims = (*first.dims[:axis], sum(each.dims[axis] for each in parts), *first.dims[axis + 1 :])
    widths = [prod(each.dims[axis:]) for each in parts]
    values = tuple(
        chain.from_iterable(
            each.values[row * width : (row + 1) * width]
            for row in range(prod(first.dims[:axis]))
            for each, width in zip(parts, widths, strict=True)
        )
    )
    return Tensor(first.element_type, dims, values)


def expand(elements: Elements, dims: Dims) -> Elements:
    """Broadcast the elements to `dims`: repeat them along dimensions of 1."""
    if elements.dims == dims:
        return elements
    if 0 in dims:
        return Tensor(elements.element_type, dims, ())
    values, block = elements.values, 1
    sizes = (1,) * (len(dims) - len(elements.dims)) + elements.dims
    for size, target in zip(reversed(sizes), reversed(dims), strict=True):
        if size != target:
            blocks = (values[start : start + block] * target for start in range(0, len(values), block))
            values = tuple(chain.from_iterable(blocks))
        block *= target
    return Tensor(elements.element_type, dims, values)


def broadcast_dims(shapes: Sequence[Dims]) -> Dims | None:
    """Return the dimensions to which shapes broadcast as in NumPy; `None` if they do not broadcast."""
    rank = max(map(len, shapes), default=0)
    result = []
    for column in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        sizes = {size for size in column if size != 1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def transpose(elements: Elements, axes: Sequence[int]) -> Elements:
    """Reorder the dimensions as `numpy.transpose` does: `axes[i]` becomes axis `i`."""
    strides = strides_of(elements.dims)
    dims = tuple(elements.dims[axis] for axis in axes)
    order = positions(dims, [strides[axis] for axis in axes])
    return Tensor(elements.element_type, dims, tuple([elements.values[each] for each in order]))


def strides_of(dims: Dims) -> list[int]:
    """Return the row-major stride of each axis, in elements."""
    return [prod(dims[axis + 1 :]) for axis in range(len(dims))]


def positions(dims: Dims, strides: Sequence[int]) -> Iterator[int]:
    """Yield the position of each element of a tensor in row-major order, from one stride per axis."""
    # `product` would store every range in memory, even if one of them is empty.
    indices = () if 0 in dims else product(*map(range, dims))
    return (sum(map(mul, index, strides)) for index in indices)
