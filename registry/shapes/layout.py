"""The same elements under another shape."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import axes_in, product, quotient, unknown
from opshift.registry.shapes.reading import input_shape, integer, integers, setting
from opshift.registry.shapes.table import rule


@rule("transpose", keeps_rank=True)
def transpose(node: ShapeContext) -> Sequence[Shape | None]:
    """`perm` orders the dimensions; without it they are reversed."""
    data, order = input_shape(node, 0), integers(node, "perm")
    if order is None:
        return [None if data is None else data[::-1]]
    axes = axes_in(order, len(order))
    if axes is None or len(set(axes)) != len(axes) or (data is not None and len(data) != len(axes)):
        return [None]
    return [unknown(len(axes)) if data is None else tuple(data[at] for at in axes)]


@rule("flatten")
def flatten(node: ShapeContext) -> Sequence[Shape | None]:
    """A matrix: the dimensions before the axis, and those from it on."""
    data, axis = input_shape(node, 0), integer(node, "axis", 1)
    if data is None or axis is None or not -len(data) <= axis <= len(data):
        return [(None, None)]
    first = axis if axis >= 0 else axis + len(data)
    return [(product(data[:first]), product(data[first:]))]


@rule("reshape")
def reshape(node: ShapeContext) -> Sequence[Shape | None]:
    """As listed: 0 copies a dimension unless `allowzero`, and -1 takes what the others leave."""
    data, stated = input_shape(node, 0), setting(node, "shape")
    if stated.values is None:
        return [None if stated.length is None else unknown(stated.length)]
    copies = not integer(node, "allowzero", 0)
    copied = {at for at, dim in enumerate(stated.values) if dim == 0 and copies}
    known = data if data is not None else unknown(len(stated.values))
    if any(at >= len(known) for at in copied):
        return [unknown(len(stated.values))]
    target = tuple(known[at] if at in copied else dim for at, dim in enumerate(stated.values))
    return [tuple(_rest(data, target, copied) if dim == -1 else dim for dim in target)]


@rule("squeeze")
def squeeze(node: ShapeContext) -> Sequence[Shape | None]:
    """The axes disappear; without axes every dimension of 1 does."""
    data, axes = input_shape(node, 0), setting(node, "axes")
    if data is None:
        return [None]
    if axes.absent:
        return [None if None in data else tuple(dim for dim in data if dim != 1)]
    found = axes_in(axes.values, len(data))
    if found and all(data[at] in (1, None) for at in found):
        return [tuple(dim for at, dim in enumerate(data) if at not in found)]
    return [unknown(len(data) - 1) if axes.values is None and axes.length == 1 and data else None]


@rule("unsqueeze")
def unsqueeze(node: ShapeContext) -> Sequence[Shape | None]:
    """The axes, counted in the output, become 1."""
    data, axes = input_shape(node, 0), setting(node, "axes")
    if data is None or axes.length is None:
        return [None]
    rank = len(data) + axes.length
    found = axes_in(axes.values, rank)
    if found is None or len(set(found)) != len(found):
        return [unknown(rank) if axes.values is None or None in axes.values else None]
    rest = iter(data)
    return [tuple(1 if at in found else next(rest) for at in range(rank))]


def _rest(data: Shape | None, target: Shape, copied: set[int]) -> int | None:
    """What -1 stands for; copied dimensions cancel out, known or not."""
    if data is None or target.count(-1) != 1:
        return None
    others = product(dim for at, dim in enumerate(target) if dim != -1 and at not in copied)
    if 0 in (data[at] for at in copied):
        return None
    return quotient(product(dim for at, dim in enumerate(data) if at not in copied), others)
