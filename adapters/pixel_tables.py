"""Pixels at computed places: images as a table with a row for each pixel, and sums of weighted rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from opshift.adapters.node import Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.registry.element_types import BY_NAME

OPSET = 9
"""What the nodes are written for, but for Round."""
COMPUTED_IN = {"float": "float", "double": "double", "float16": "float", "bfloat16": "float"}


class Table(NamedTuple):
    """The pixels of `batch` images, image by image in row-major order, and a row of zeros at the end."""

    name: str
    batch: int
    channels: int
    sizes: tuple[int, ...]
    element_type: str

    @property
    def missing(self) -> int:
        """The row of zeros."""
        return self.batch * self.stride

    @property
    def stride(self) -> int:
        """The rows of an image."""
        rows = 1
        for size in self.sizes:
            rows *= size
        return rows


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
    shape = out.shape(name)
    dims = tuple(dim for dim in shape if dim is not None) if shape else ()
    if shape is None or len(dims) != len(shape):
        raise CannotConvert(
            f"the shape of {name!r}, by which pixels are found, is not known",
            remedy=f"state it: add a value_info for {name!r}",
        )
    return dims


def table_of(
    data: str, batch: int, channels: int, sizes: tuple[int, ...], element_type: str, out: Rewriter
) -> Table:
    """The table of images whose type is computed in as it is."""
    rows = Table("", batch, channels, sizes, element_type).stride
    flat = out.emit("Reshape", [data, out.constant([batch, channels, rows], "int64")], opset=OPSET)
    turned = out.emit("Transpose", [flat], opset=OPSET, perm=[0, 2, 1])
    listed = out.emit("Reshape", [turned, out.constant([-1, channels], "int64")], opset=OPSET)
    zeros = out.tensor(Tensor(element_type, (1, channels), (0,) * channels))
    name = out.emit("Concat", [listed, zeros], opset=OPSET, axis=0)
    return Table(name, batch, channels, sizes, element_type)


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
    starts = tuple(image * table.stride for image in range(table.batch))
    row = out.tensor(Tensor("int64", (table.batch, 1), starts))
    stride = table.stride
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
    return out.emit("Where", [there, row, out.constant(table.missing, "int64")], opset=OPSET)
