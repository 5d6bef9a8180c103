"""Shapes of operators that keep all elements and change the shape."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.dims import (
    broadcast,
    exact_quotient,
    normalize_axes,
    normalize_axis,
    plus,
    product,
    unify,
    unknown,
)
from opshift.registry.shapes.node_reading import (
    axis_attribute,
    constant_integers,
    input_shape,
    integer_attribute,
    integers_attribute,
    setting,
)
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule


@rule("transpose", keeps_rank=True)
def transpose(node: ShapeContext) -> Sequence[Shape | None]:
    """Reorder the dimensions by `perm`, or reverse them."""
    data, order = input_shape(node, 0), integers_attribute(node, "perm")
    if order is None:
        return [None if data is None else data[::-1]]
    axes = normalize_axes(order, len(order))
    if axes is None or len(set(axes)) != len(axes) or (data is not None and len(data) != len(axes)):
        return [None]
    return [unknown(len(axes)) if data is None else tuple(data[position] for position in axes)]


@rule("flatten")
def flatten(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer a matrix of the dimensions before the axis and the remaining ones."""
    data, axis = input_shape(node, 0), integer_attribute(node, "axis", 1)
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
    copies = not integer_attribute(node, "allowzero", 0)
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
    indices = normalize_axes(axes.values, len(data))
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
    indices = normalize_axes(axes.values, rank)
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
    return exact_quotient(product(dim for position, dim in enumerate(data) if position not in copied), others)


@rule("concat", keeps_rank=True)
def concat(node: ShapeContext) -> Sequence[Shape | None]:
    """Add up the axis; on other axes the inputs have the same sizes.

    The default axis of version 1 is unspecified.
    """
    shapes = [input_shape(node, index) for index in range(node.input_count)]
    known = [shape for shape in shapes if shape is not None]
    if not known or len({len(shape) for shape in known}) != 1:
        return [None]
    rank = len(known[0])
    position = axis_attribute(node, rank)
    if position is None:
        return [unknown(rank) if rank and integer_attribute(node, "axis") is None else None]
    merged: Shape | None = unknown(rank)
    for shape in known:
        merged = unify(merged, shape)
    assert merged is not None
    total = plus(*(None if shape is None else shape[position] for shape in shapes))
    return [(*merged[:position], total, *merged[position + 1 :])]


@rule("split", keeps_rank=True)
def split(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the given lengths, or equal lengths; with `num_outputs`, the last one may be shorter."""
    data = input_shape(node, 0)
    if data is None:
        return []
    position = axis_attribute(node, len(data))
    if position is None:
        return [unknown(len(data))] * node.output_count if integer_attribute(node, "axis") is None else []
    lengths = _lengths(node, data[position])
    return [(*data[:position], length, *data[position + 1 :]) for length in lengths]


@rule("expand")
def expand(node: ShapeContext) -> Sequence[Shape | None]:
    """Broadcast the input and the given shape."""
    target = setting(node, "shape")
    if target.length is None:
        return [None]
    return [broadcast([input_shape(node, 0), target.values or unknown(target.length)])]


@rule("tile", keeps_rank=True)
def tile(node: ShapeContext) -> Sequence[Shape | None]:
    """Multiply each dimension by its repeats; version 1 repeats a single axis."""
    data = input_shape(node, 0)
    if node.version.input_named("tiles"):
        return [None if data is None else _repeated_axis(node, data)]
    repeats = setting(node, "repeats")
    if data is None:
        return [None if repeats.length is None else unknown(repeats.length)]
    if repeats.values is None or len(repeats.values) != len(data):
        return [unknown(len(data))]
    return [tuple(product(pair) for pair in zip(data, repeats.values, strict=True))]


@rule("pad", keeps_rank=True)
def pad(node: ShapeContext) -> Sequence[Shape | None]:
    """Add the padding at both ends of each axis, or of the given axes."""
    data = input_shape(node, 0)
    pads = setting(node, "paddings" if "paddings" in node.version.attributes else "pads")
    axes = setting(node, "axes")
    if data is None:
        return [unknown(pads.length // 2) if axes.absent and pads.length is not None else None]
    selected = tuple(range(len(data))) if axes.absent else normalize_axes(axes.values, len(data))
    if selected is None or pads.values is None or len(pads.values) != 2 * len(selected):
        return [unknown(len(data))]
    pads_by_axis = dict(
        zip(selected, zip(pads.values, pads.values[len(selected) :], strict=False), strict=True)
    )
    return [tuple(plus(dim, *pads_by_axis.get(position, (0,))) for position, dim in enumerate(data))]


def _lengths(node: ShapeContext, size: int | None) -> Shape:
    declared, count = setting(node, "split"), node.output_count
    if not declared.absent:
        return declared.values if declared.values and len(declared.values) == count else unknown(count)
    parts = integer_attribute(node, "num_outputs", count)
    if size is None or not count or parts != count:
        return unknown(count)
    part = -(-size // count)
    if size % count and "num_outputs" not in node.version.attributes:
        return unknown(count)
    return (*((part,) * (count - 1)), size - part * (count - 1))


def _repeated_axis(node: ShapeContext, data: Shape) -> Shape:
    tiles, axes = constant_integers(node, 1), constant_integers(node, 2)
    position = normalize_axis(axes[0], len(data)) if axes is not None and len(axes) == 1 else None
    if position is None:
        return unknown(len(data))
    times = tiles[0] if tiles is not None and len(tiles) == 1 else None
    return (*data[:position], product((data[position], times)), *data[position + 1 :])
