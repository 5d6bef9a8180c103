"""Shapes of operators that select elements by position."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opshift.registry.shapes.dims import normalize_axes, product, unknown, with_dim
from opshift.registry.shapes.node_reading import (
    axis_attribute,
    constant_scalar,
    input_shape,
    integer_attribute,
    setting,
)
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule


@rule("gather")
def gather(node: ShapeContext) -> Sequence[Shape | None]:
    """Replace the axis by the dimensions of the indices."""
    data, indices = input_shape(node, 0), input_shape(node, 1)
    if not data or indices is None:
        return [None]
    position = axis_attribute(node, len(data), 0)
    return [None if position is None else (*data[:position], *indices, *data[position + 1 :])]


@rule("gather_nd")
def gather_nd(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the output of GatherND.

    The last dimension of the indices is the number of data dimensions, after the batch dimensions, that one
    index selects.
    """
    data, indices, batch = (
        input_shape(node, 0),
        input_shape(node, 1),
        integer_attribute(node, "batch_dims", 0),
    )
    if data is None or not indices or indices[-1] is None or batch is None:
        return [None]
    first_kept = batch + indices[-1]
    if not 0 <= batch < len(indices) or first_kept > len(data):
        return [None]
    return [(*indices[:-1], *data[first_kept:])]


@rule("slice", keeps_rank=True)
def slice_(node: ShapeContext) -> Sequence[Shape | None]:
    """Shorten the given axes, or the first axes if none are given."""
    data = input_shape(node, 0)
    if data is None:
        return [None]
    starts, ends, axes, steps = (setting(node, name) for name in ("starts", "ends", "axes", "steps"))
    count = starts.length
    if count is None:
        return [unknown(len(data))]
    selected = normalize_axes(tuple(range(count)) if axes.absent else axes.values, len(data))
    strides = (1,) * count if steps.absent else steps.values or unknown(count)
    bounds = (starts.values or unknown(count), ends.values or unknown(count), strides)
    if selected is None or any(len(each) != len(selected) for each in bounds):
        return [unknown(len(data))]
    bounds_by_axis = dict(zip(selected, zip(*bounds, strict=True), strict=True))
    return [
        tuple(
            _sliced_dim(dim, *bounds_by_axis[position]) if position in bounds_by_axis else dim
            for position, dim in enumerate(data)
        )
    ]


@rule("top_k", keeps_rank=True)
def top_k(node: ShapeContext) -> Sequence[Shape | None]:
    """Replace the axis by k, for values and indices."""
    data = input_shape(node, 0)
    if data is None:
        return []
    position = axis_attribute(node, len(data), -1)
    count = integer_attribute(node, "k") if "k" in node.version.attributes else constant_scalar(node, 1)
    return [] if position is None else [with_dim(data, position, count)] * 2


@rule("one_hot")
def one_hot(node: ShapeContext) -> Sequence[Shape | None]:
    """Insert an axis with the depth, which is the second input."""
    indices = input_shape(node, 0)
    if indices is None:
        return [None]
    position = axis_attribute(node, len(indices) + 1, -1)
    return [None if position is None else (*indices[:position], _depth(node), *indices[position:])]


def _depth(node: ShapeContext) -> int | None:
    """Return the depth as an integer; its tensor may have any numeric type."""
    values = node.constant(1)
    depth = values[0] if values is not None and len(values) == 1 else None
    return int(depth) if isinstance(depth, int | float) and math.isfinite(depth) else None


def _sliced_dim(dim: int | None, start: int | None, end: int | None, step: int | None) -> int | None:
    """Return the length of a slice; negative bounds count from the end, and bounds are clamped."""
    if dim is None or start is None or end is None or not step:
        return None
    low, high = (0, dim) if step > 0 else (-1, dim - 1)
    first = min(max(start + dim if start < 0 else start, 0), high)
    last = min(max(end + dim if end < 0 else end, low), high)
    return len(range(first, last, step))


@rule("compress")
def compress(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer an unknown size for the axis, or a list if there is no axis, because the input is flattened."""
    if node.attribute("axis") is None:
        return [(None,)]
    data = input_shape(node, 0)
    if data is None:
        return [None]
    position = axis_attribute(node, len(data))
    return [None if position is None else with_dim(data, position, None)]


@rule("unique")
def unique(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer unknown counts of unique values; the inverse has one index per element or slice."""
    data = input_shape(node, 0)
    if node.attribute("axis") is None:
        return [(None,), (None,), (None if data is None else product(data),), (None,)]
    position = axis_attribute(node, None if data is None else len(data))
    if data is None or position is None:
        return [None, (None,), (None,), (None,)]
    return [with_dim(data, position, None), (None,), (data[position],), (None,)]


@rule("non_zero")
def non_zero(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer one row per dimension and one column per non-zero element."""
    data = input_shape(node, 0)
    return [(len(data) if data else None, None)]


@rule("non_max_suppression")
def non_max_suppression(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer batch, class and box index of each selected box."""
    return [(None, 3)]
