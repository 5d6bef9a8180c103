"""Shapes of operators that keep all elements and change the shape."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import axes_in, product, quotient, unknown
from opshift.registry.shapes.reading import input_shape, integer, integers, setting
from opshift.registry.shapes.table import rule


@rule("transpose", keeps_rank=True)
def transpose(node: ShapeContext) -> Sequence[Shape | None]:
    """Reorder the dimensions by `perm`, or reverse them."""
    data, order = input_shape(node, 0), integers(node, "perm")
    if order is None:
        return [None if data is None else data[::-1]]
    axes = axes_in(order, len(order))
    if axes is None or len(set(axes)) != len(axes) or (data is not None and len(data) != len(axes)):
        return [None]
    return [unknown(len(axes)) if data is None else tuple(data[position] for position in axes)]


@rule("flatten")
def flatten(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer a matrix of the dimensions before the axis and the remaining ones."""
    data, axis = input_shape(node, 0), integer(node, "axis", 1)
    if data is None or axis is None or not -len(data) <= axis <= len(data):
        return [(None, None)]
    split = axis if axis >= 0 else axis + len(data)
    return [(product(data[:split]), product(data[split:]))]


@rule("reshape")
def reshape(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the given shape; 0 copies a dimension unless `allowzero` is set, and -1 is computed."""
    data, target_shape = input_shape(node, 0), setting(node, "shape")
    if target_shape.values is None:
        return [None if target_shape.length is None else unknown(target_shape.length)]
    copies = not integer(node, "allowzero", 0)
    copied = {position for position, dim in enumerate(target_shape.values) if dim == 0 and copies}
    known = data if data is not None else unknown(len(target_shape.values))
    if any(position >= len(known) for position in copied):
        return [unknown(len(target_shape.values))]
    target = tuple(
        known[position] if position in copied else dim for position, dim in enumerate(target_shape.values)
    )
    return [tuple(_inferred_dim(data, target, copied) if dim == -1 else dim for dim in target)]


@rule("squeeze")
def squeeze(node: ShapeContext) -> Sequence[Shape | None]:
    """Remove the axes, or every dimension of 1 if there are no axes."""
    data, axes = input_shape(node, 0), setting(node, "axes")
    if data is None:
        return [None]
    if axes.absent:
        return [None if None in data else tuple(dim for dim in data if dim != 1)]
    indices = axes_in(axes.values, len(data))
    if indices and all(data[position] in (1, None) for position in indices):
        return [tuple(dim for position, dim in enumerate(data) if position not in indices)]
    return [unknown(len(data) - 1) if axes.values is None and axes.length == 1 and data else None]


@rule("unsqueeze")
def unsqueeze(node: ShapeContext) -> Sequence[Shape | None]:
    """Insert dimensions of 1 at the axes, which refer to the output."""
    data, axes = input_shape(node, 0), setting(node, "axes")
    if data is None or axes.length is None:
        return [None]
    rank = len(data) + axes.length
    indices = axes_in(axes.values, rank)
    if indices is None or len(set(indices)) != len(indices):
        return [unknown(rank) if axes.values is None or None in axes.values else None]
    remaining = iter(data)
    return [tuple(1 if position in indices else next(remaining) for position in range(rank))]


def _inferred_dim(data: Shape | None, target: Shape, copied: set[int]) -> int | None:
    """Return the dimension for -1; copied dimensions cancel out, even if they are unknown."""
    if data is None or target.count(-1) != 1:
        return None
    others = product(dim for position, dim in enumerate(target) if dim != -1 and position not in copied)
    if 0 in (data[position] for position in copied):
        return None
    return quotient(product(dim for position, dim in enumerate(data) if position not in copied), others)
