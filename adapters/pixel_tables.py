"""Pixels at computed places: images as a table with a row for each pixel, and sums of weighted rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from opshift.adapters.node import Tensor
from opshift.adapters.ranges import positions_below
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import computed_dimension
from opshift.registry.element_types import BY_NAME

OPSET = 9
"""What the nodes are written for, but for Round."""
COMPUTED_IN = {"float": "float", "double": "double", "float16": "float", "bfloat16": "float"}


class Table(NamedTuple):
    """A row of zeros, and after it the pixels of images, image by image in row-major order."""

    name: str
    starts: str
    """Where the rows of each image begin: (batch, 1)."""
    sizes: tuple[int, ...]


class Tap(NamedTuple):
    """Along one axis, for places of shape (batch, places): a pixel, whether it is there, and its weight."""

    pixel: str
    there: str
    """A boolean value; `""` if it always is."""
    weight: str
    """`""` if it is all."""


def known_dims(name: str, out: Rewriter) -> tuple[int, ...]:
    """A shape of which all is known.

    Raises:
        CannotConvert: it is not.
    """
    first, dims = image_dims(name, out)
    if first is None:
        raise _unknown(name)
    return first, *dims


def image_dims(name: str, out: Rewriter) -> tuple[int | None, tuple[int, ...]]:
    """The first dimension of a value, if it is known, and the others.

    Raises:
        CannotConvert: one of the others is not known.
    """
    first, *rest = out.shape(name) or (None, None)
    dims = tuple(dim for dim in rest if dim is not None)
    if len(dims) != len(rest):
        raise _unknown(name)
    return first, dims


def _unknown(name: str) -> CannotConvert:
    return CannotConvert(
        f"the shape of {name!r}, by which pixels are found, is not known",
        remedy=f"state it: add a value_info for {name!r}",
    )


def table_of(
    data: str, batch: int | None, channels: int, sizes: tuple[int, ...], element_type: str, out: Rewriter
) -> Table:
    """The table of images whose type is computed in as it is; their number is read if it is not known."""
    rows = math.prod(sizes)
    flat = out.emit("Reshape", [data, out.constant([batch or 0, channels, rows], "int64")], opset=OPSET)
    turned = out.emit("Transpose", [flat], opset=OPSET, perm=[0, 2, 1])
    listed = out.emit("Reshape", [turned, out.constant([-1, channels], "int64")], opset=OPSET)
    zeros = out.tensor(Tensor(element_type, (1, channels), (0,) * channels))
    name = out.emit("Concat", [zeros, listed], opset=OPSET, axis=0)
    return Table(name, _starts(data, batch, rows, out), sizes)


def _starts(data: str, batch: int | None, rows: int, out: Rewriter) -> str:
    if batch is not None:
        return out.tensor(Tensor("int64", (batch, 1), tuple(1 + image * rows for image in range(batch))))
    images = positions_below(computed_dimension(data, 0, out), out)
    column = out.emit("Reshape", [images, out.constant([-1, 1], "int64")], opset=OPSET)
    offset = out.emit("Mul", [column, out.constant(rows, "int64")], opset=OPSET)
    return out.emit("Add", [offset, out.constant(1, "int64")], opset=OPSET)


def rows_at(table: Table, axes: Sequence[Sequence[Tap]], out: Rewriter) -> str:
    """The weighted sum over all combinations of taps: (batch, places, channels)."""
    total = ""
    for taps in product(*axes):
        part = out.emit("Gather", [table.name, _row(table, taps, out)], opset=OPSET, axis=0)
        weight = ""
        for each in (tap.weight for tap in taps if tap.weight):
            weight = out.emit("Mul", [weight, each], opset=OPSET) if weight else each
        if weight:
            column = out.emit("Unsqueeze", [weight], opset=OPSET, axes=[2])
            part = out.emit("Mul", [part, column], opset=OPSET)
        total = out.emit("Add", [total, part], opset=OPSET) if total else part
    return total


def edge_tap(pixel: str, weight: str, size: int, out: Rewriter) -> Tap:
    """A tap that is there only if the pixel (a whole number in float) is on the image."""
    inner = whole(out.emit("Clip", [pixel], opset=6, min=0.0, max=float(size - 1)), out)
    around = whole(out.emit("Clip", [pixel], opset=6, min=-1.0, max=float(size)), out)
    return Tap(inner, out.emit("Equal", [inner, around], opset=7), weight)


def whole(value: str, out: Rewriter) -> str:
    """A float as int64."""
    return out.emit("Cast", [value], opset=OPSET, to=BY_NAME["int64"].number)


def _row(table: Table, taps: Sequence[Tap], out: Rewriter) -> str:
    """The row of a pixel, or that of zeros if it is not there."""
    row = table.starts
    stride = math.prod(table.sizes)
    for tap, size in zip(taps, table.sizes, strict=True):
        stride //= size
        step = tap.pixel
        if stride != 1:
            step = out.emit("Mul", [step, out.constant(stride, "int64")], opset=OPSET)
        row = out.emit("Add", [row, step], opset=OPSET)
    there = ""
    for each in (tap.there for tap in taps if tap.there):
        there = out.emit("And", [there, each], opset=OPSET) if there else each
    if not there:
        return row
    return out.emit("Where", [there, row, out.constant(0, "int64")], opset=OPSET)
