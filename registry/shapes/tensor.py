"""Output shapes of operators that reshape, join, split, repeat or pad tensors."""

from functools import reduce

from opshift.model.types import MAX_RANK, Shape, Symbol
from opshift.registry.shapes.dims import (
    broadcast,
    exact_quotient,
    normalize_axes,
    normalize_axis,
    plus,
    product,
    unify,
    unknown,
    with_dims,
    without_axes,
)
from opshift.registry.shapes.rule_table import Shapes, data_rule, rule
from opshift.registry.shapes.shape_context import ShapeContext
from opshift.registry.shapes.sizes import ceil_quotient, floor_quotient


@rule("transpose", keeps_rank=True)
def transpose(node: ShapeContext) -> Shapes:
    """Reorder the dimensions by `perm`; by default, reverse them."""
    data, order = node.shape(0), node.integers("perm")
    if order is None:
        return [None if data is None else data[::-1]]
    rank = min(len(order), MAX_RANK) if data is None else len(data)
    axes = normalize_axes(order, rank)
    if axes is None or len(set(axes)) != len(axes) or (data is not None and len(data) != len(axes)):
        return [None]
    return [unknown(len(axes)) if data is None else tuple(data[position] for position in axes)]


@rule("flatten", rank=2)
def flatten(node: ShapeContext) -> Shapes:
    """Infer the product of the dimensions before the axis, and the product of the remaining dimensions."""
    data, axis = node.shape(0), node.integer("axis", 1)
    if data is None or axis is None or not -len(data) <= axis <= len(data):
        return [(None, None)]
    split = axis if axis >= 0 else axis + len(data)
    return [(product(data[:split]), product(data[split:]))]


@rule("reshape", ranking_list="shape", rank_inputs=())
def reshape(node: ShapeContext) -> Shapes:
    """Infer the given shape; 0 copies a dimension unless `allowzero` is set, and -1 is computed."""
    data, target_shape = node.shape(0), node.setting("shape")
    dims = target_shape.values
    if dims is None:
        return [None if target_shape.length is None else unknown(target_shape.length)]
    copies = not node.integer("allowzero", 0)
    copied = {position for position, dim in enumerate(dims) if dim == 0 and copies}
    known = unknown(len(dims)) if data is None else data
    if any(position >= len(known) for position in copied):
        return [unknown(len(dims))]
    target = with_dims(dims, {position: known[position] for position in copied})
    if copies and not node.assumes_positive_sizes:
        # A symbol that is 0 at run time copies a dimension of the input, so the result is unknown unless this
        # dimension is the symbol or a multiple of the symbol. Beyond the input's rank, 0 is an error.
        target = tuple(
            None if position < len(known) and _may_differ_at_0(size, known[position]) else size
            for position, size in enumerate(target)
        )
    return [tuple(_inferred_dim(data, target, copied) if dim == -1 else dim for dim in target)]


@data_rule("squeeze")
def squeeze(node: ShapeContext, data: Shape) -> Shapes:
    """Remove the axes, or every dimension of 1 if there are no axes."""
    axes = node.setting("axes")
    if axes.absent:
        return [None if None in data else tuple(dim for dim in data if dim != 1)]
    indices = normalize_axes(axes.values, len(data))
    if indices and all(data[axis] in (1, None) for axis in indices):
        return [without_axes(data, indices)]
    return [unknown(len(data) - 1) if axes.values is None and axes.length == 1 and data else None]


@data_rule("unsqueeze", rank_inputs=(0,))
def unsqueeze(node: ShapeContext, data: Shape) -> Shapes:
    """Insert dimensions of 1 at the axes, which refer to the output."""
    axes = node.setting("axes")
    if axes.length is None:
        return [None]
    rank = len(data) + axes.length
    if rank > MAX_RANK:
        return [None]
    indices = normalize_axes(axes.values, rank)
    if indices is None or len(set(indices)) != len(indices):
        return [unknown(rank) if axes.values is None or None in axes.values else None]
    remaining = iter(data)
    return [tuple(1 if position in indices else next(remaining) for position in range(rank))]


def _may_differ_at_0(size: int | None, dim: int | None) -> bool:
    """Return whether `size` is a symbol that may be 0 at run time while `dim` is not 0."""
    if type(size) is not Symbol or size == dim:
        return False
    return type(dim) is not Symbol or dim % size != 0


def _inferred_dim(data: Shape | None, target: Shape, copied: set[int]) -> int | None:
    """Return the dimension for -1, or `None`; dimensions copied by a 0 cancel out, even unknown ones."""
    if data is None or target.count(-1) != 1:
        return None
    if 0 in (data[position] for position in copied):
        return None
    others = product(dim for dim in without_axes(target, copied) if dim != -1)
    return exact_quotient(product(without_axes(data, copied)), others)


@rule("concat", keeps_rank=True)
def concat(node: ShapeContext) -> Shapes:
    """Add up the sizes along the axis; the inputs agree in all other dimensions.

    In version 1, `axis` has no default value; without it, all sizes are unknown.
    """
    known = [shape for shape in node.inputs if shape is not None]
    if not known or len({len(shape) for shape in known}) != 1:
        return [None]
    rank, declared = len(known[0]), node.integer("axis")
    axis = normalize_axis(declared, rank)
    if axis is None:
        return [unknown(rank) if rank and declared is None else None]
    merged = reduce(unify, known, None)
    assert merged is not None
    total = plus(*(None if shape is None else shape[axis] for shape in node.inputs))
    return [with_dims(merged, {axis: total})]


@data_rule("split", keeps_rank=True)
def split(node: ShapeContext, data: Shape) -> Shapes:
    """Infer the lengths in `split`, or else equal lengths; with `num_outputs`, the last may be shorter."""
    declared = node.integer("axis")
    axis = normalize_axis(declared, len(data))
    if axis is None:
        return [unknown(len(data))] * node.output_count if declared is None else []
    return [with_dims(data, {axis: length}) for length in _split_lengths(node, data[axis])]


@rule("expand", rank_inputs=(0,))
def expand(node: ShapeContext) -> Shapes:
    """Broadcast the shape of the input and the given shape."""
    target = node.setting("shape")
    if target.length is None:
        return [None]
    return [broadcast([node.shape(0), target.values or unknown(target.length)])]


@rule("tile", keeps_rank=True)
def tile(node: ShapeContext) -> Shapes:
    """Multiply each dimension by its number of repeats; version 1 repeats a single axis."""
    data = node.shape(0)
    if node.version.input_named("tiles"):
        return [None if data is None else _repeated_axis(node, data)]
    repeats = node.setting("repeats")
    if data is None:
        return [None if repeats.length is None else unknown(repeats.length)]
    if repeats.values is None or len(repeats.values) != len(data):
        return [unknown(len(data))]
    return [tuple(product(pair) for pair in zip(data, repeats.values, strict=True))]


@rule("pad", keeps_rank=True)
def pad(node: ShapeContext) -> Shapes:
    """Add the padding at both ends of the axes in `axes`, or by default of all axes."""
    data, axes = node.shape(0), node.setting("axes")
    pads = node.setting("paddings" if "paddings" in node.version.attributes else "pads")
    if data is None:
        return [unknown(pads.length // 2) if axes.absent and pads.length is not None else None]
    selected = normalize_axes(range(len(data)) if axes.absent else axes.values, len(data))
    if selected is None or pads.values is None or len(pads.values) != 2 * len(selected):
        return [unknown(len(data))]
    begins, ends = pads.values[: len(selected)], pads.values[len(selected) :]
    rows = zip(selected, begins, ends, strict=True)
    return [with_dims(data, {axis: plus(data[axis], begin, end) for axis, begin, end in rows})]


def _split_lengths(node: ShapeContext, size: int | None) -> Shape:
    declared, count = node.setting("split"), node.output_count
    if not declared.absent:
        return declared.values if declared.values and len(declared.values) == count else unknown(count)
    parts = node.integer("num_outputs", count)
    if size is None or not count or parts != count:
        return unknown(count)
    if "num_outputs" not in node.version.attributes:
        return (exact_quotient(size, count),) * count
    part = ceil_quotient(size, count)
    # For two parts, avoid the subtraction, which could give a negative number for symbols.
    last = floor_quotient(size, 2) if count == 2 else size - part * (count - 1)
    return (*((part,) * (count - 1)), last)


def _repeated_axis(node: ShapeContext, data: Shape) -> Shape:
    axis = normalize_axis(node.constant_integer(2), len(data))
    if axis is None:
        return unknown(len(data))
    return with_dims(data, {axis: product((data[axis], node.constant_integer(1)))})
