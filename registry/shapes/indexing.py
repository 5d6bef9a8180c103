"""Outputs that pick elements by position."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import axes_in, replaced, unknown
from opshift.registry.shapes.reading import axis, input_shape, integer, scalar, setting
from opshift.registry.shapes.table import rule


@rule("gather")
def gather(node: ShapeContext) -> Sequence[Shape | None]:
    """The indices' dimensions stand where the axis was."""
    data, indices = input_shape(node, 0), input_shape(node, 1)
    if not data or indices is None:
        return [None]
    at = axis(node, len(data), 0)
    return [None if at is None else (*data[:at], *indices, *data[at + 1 :])]


@rule("gather_nd")
def gather_nd(node: ShapeContext) -> Sequence[Shape | None]:
    """The indices' last dimension says how many of the data's, behind the batch, one index fixes."""
    data, indices, batch = input_shape(node, 0), input_shape(node, 1), integer(node, "batch_dims", 0)
    if data is None or not indices or indices[-1] is None or batch is None:
        return [None]
    fixed = batch + indices[-1]
    if not 0 <= batch < len(indices) or fixed > len(data):
        return [None]
    return [(*indices[:-1], *data[fixed:])]


@rule("slice", keeps_rank=True)
def slice_(node: ShapeContext) -> Sequence[Shape | None]:
    """The listed axes, or the first ones, get shorter."""
    data = input_shape(node, 0)
    if data is None:
        return [None]
    starts, ends, axes, steps = (setting(node, name) for name in ("starts", "ends", "axes", "steps"))
    count = starts.length
    if count is None:
        return [unknown(len(data))]
    chosen = axes_in(tuple(range(count)) if axes.absent else axes.values, len(data))
    strides = (1,) * count if steps.absent else steps.values or unknown(count)
    bounds = (starts.values or unknown(count), ends.values or unknown(count), strides)
    if chosen is None or any(len(each) != len(chosen) for each in bounds):
        return [unknown(len(data))]
    cut = dict(zip(chosen, zip(*bounds, strict=True), strict=True))
    return [tuple(_cut(dim, *cut[at]) if at in cut else dim for at, dim in enumerate(data))]


@rule("top_k", keeps_rank=True)
def top_k(node: ShapeContext) -> Sequence[Shape | None]:
    """The axis holds k values; so do the indices."""
    data = input_shape(node, 0)
    if data is None:
        return []
    at = axis(node, len(data), -1)
    wanted = integer(node, "k") if "k" in node.version.attributes else scalar(node, 1)
    return [] if at is None else [replaced(data, at, wanted)] * 2


@rule("one_hot")
def one_hot(node: ShapeContext) -> Sequence[Shape | None]:
    """A new axis as deep as the second input says."""
    indices = input_shape(node, 0)
    if indices is None:
        return [None]
    at = axis(node, len(indices) + 1, -1)
    return [None if at is None else (*indices[:at], _depth(node), *indices[at:])]


def _depth(node: ShapeContext) -> int | None:
    """Of any numeric type."""
    values = node.constant(1) or ()
    whole = len(values) == 1 and isinstance(values[0], int | float) and math.isfinite(values[0])
    return int(values[0]) if whole else None


def _cut(dim: int | None, start: int | None, end: int | None, step: int | None) -> int | None:
    """Bounds count from the back below zero, and stop at the ends."""
    if dim is None or start is None or end is None or not step:
        return None
    low, high = (0, dim) if step > 0 else (-1, dim - 1)
    first = min(max(start + dim if start < 0 else start, 0), high)
    last = min(max(end + dim if end < 0 else end, low), high)
    return len(range(first, last, step))
