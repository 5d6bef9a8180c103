"""Dimensions joined, cut apart, repeated or widened."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import axes_in, axis_in, broadcast, plus, product, refined, unknown
from opshift.registry.shapes.reading import axis, constant_integers, input_shape, integer, setting
from opshift.registry.shapes.table import rule


@rule("concat", keeps_rank=True)
def concat(node: ShapeContext) -> Sequence[Shape | None]:
    """The axis adds up; along the others the inputs agree. Version 1 does not say its default axis."""
    shapes = [input_shape(node, position) for position in range(node.input_count)]
    known = [shape for shape in shapes if shape is not None]
    if not known or len({len(shape) for shape in known}) != 1:
        return [None]
    rank = len(known[0])
    at = axis(node, rank)
    if at is None:
        return [unknown(rank) if rank and integer(node, "axis") is None else None]
    merged: Shape | None = unknown(rank)
    for shape in known:
        merged = refined(merged, shape)
    assert merged is not None
    total = plus(*(None if shape is None else shape[at] for shape in shapes))
    return [(*merged[:at], total, *merged[at + 1 :])]


@rule("split", keeps_rank=True)
def split(node: ShapeContext) -> Sequence[Shape | None]:
    """The lengths are listed, or equal; with `num_outputs` the last may be shorter."""
    data = input_shape(node, 0)
    if data is None:
        return []
    at = axis(node, len(data))
    if at is None:
        return [unknown(len(data))] * node.output_count if integer(node, "axis") is None else []
    lengths = _lengths(node, data[at])
    return [(*data[:at], length, *data[at + 1 :]) for length in lengths]


@rule("expand")
def expand(node: ShapeContext) -> Sequence[Shape | None]:
    """The input and the listed shape broadcast into each other."""
    wanted = setting(node, "shape")
    if wanted.length is None:
        return [None]
    return [broadcast([input_shape(node, 0), wanted.values or unknown(wanted.length)])]


@rule("tile", keeps_rank=True)
def tile(node: ShapeContext) -> Sequence[Shape | None]:
    """Every dimension times its repeats; version 1 repeats one axis."""
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
    """Both ends of every axis, or of the listed ones, grow."""
    data = input_shape(node, 0)
    pads = setting(node, "paddings" if "paddings" in node.version.attributes else "pads")
    axes = setting(node, "axes")
    if data is None:
        return [unknown(pads.length // 2) if axes.absent and pads.length is not None else None]
    chosen = tuple(range(len(data))) if axes.absent else axes_in(axes.values, len(data))
    if chosen is None or pads.values is None or len(pads.values) != 2 * len(chosen):
        return [unknown(len(data))]
    added = dict(zip(chosen, zip(pads.values, pads.values[len(chosen) :], strict=False), strict=True))
    return [tuple(plus(dim, *added.get(at, (0,))) for at, dim in enumerate(data))]


def _lengths(node: ShapeContext, whole: int | None) -> Shape:
    stated, count = setting(node, "split"), node.output_count
    if not stated.absent:
        return stated.values if stated.values and len(stated.values) == count else unknown(count)
    parts = integer(node, "num_outputs", count)
    if whole is None or not count or parts != count:
        return unknown(count)
    each = -(-whole // count)
    if whole % count and "num_outputs" not in node.version.attributes:
        return unknown(count)
    return (*((each,) * (count - 1)), whole - each * (count - 1))


def _repeated_axis(node: ShapeContext, data: Shape) -> Shape:
    tiles, axes = constant_integers(node, 1), constant_integers(node, 2)
    at = axis_in(axes[0], len(data)) if axes is not None and len(axes) == 1 else None
    if at is None:
        return unknown(len(data))
    times = tiles[0] if tiles is not None and len(tiles) == 1 else None
    return (*data[:at], product((data[at], times)), *data[at + 1 :])
