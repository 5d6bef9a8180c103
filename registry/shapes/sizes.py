"""Shapes of operators that concatenate, split, repeat, pad or broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import axes_in, axis_in, broadcast, plus, product, refined, unknown
from opshift.registry.shapes.reading import axis, constant_integers, input_shape, integer, setting
from opshift.registry.shapes.table import rule


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
    position = axis(node, rank)
    if position is None:
        return [unknown(rank) if rank and integer(node, "axis") is None else None]
    merged: Shape | None = unknown(rank)
    for shape in known:
        merged = refined(merged, shape)
    assert merged is not None
    total = plus(*(None if shape is None else shape[position] for shape in shapes))
    return [(*merged[:position], total, *merged[position + 1 :])]


@rule("split", keeps_rank=True)
def split(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the given lengths, or equal lengths; with `num_outputs`, the last one may be shorter."""
    data = input_shape(node, 0)
    if data is None:
        return []
    position = axis(node, len(data))
    if position is None:
        return [unknown(len(data))] * node.output_count if integer(node, "axis") is None else []
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
    selected = tuple(range(len(data))) if axes.absent else axes_in(axes.values, len(data))
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
    parts = integer(node, "num_outputs", count)
    if size is None or not count or parts != count:
        return unknown(count)
    part = -(-size // count)
    if size % count and "num_outputs" not in node.version.attributes:
        return unknown(count)
    return (*((part,) * (count - 1)), size - part * (count - 1))


def _repeated_axis(node: ShapeContext, data: Shape) -> Shape:
    tiles, axes = constant_integers(node, 1), constant_integers(node, 2)
    position = axis_in(axes[0], len(data)) if axes is not None and len(axes) == 1 else None
    if position is None:
        return unknown(len(data))
    times = tiles[0] if tiles is not None and len(tiles) == 1 else None
    return (*data[:position], product((data[position], times)), *data[position + 1 :])
