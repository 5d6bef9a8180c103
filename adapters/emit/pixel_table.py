"""Sample images at computed positions: a table with a row for each pixel, and weighted sums of its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.emit.shapes import computed_dimension, index_range
from opshift.model.element_types import BY_NAME
from opshift.model.errors import CannotConvert
from opshift.model.node import Tensor

OPSET = 9
"""Opset of the emitted nodes, unless stated at the node."""

COMPUTE_TYPES = {"float": "float", "double": "double", "float16": "float", "bfloat16": "float"}
"""Element types to the types in which positions and weights are computed."""


class PixelTable(NamedTuple):
    """A 2-D tensor: a row of zeros, then the channels of each pixel as a row, image by image, row-major."""

    name: str
    first_rows: str
    """First row of each image: int64, shape (batch, 1)."""
    sizes: tuple[int, ...]
    """Spatial dimensions of an image."""


class PixelTap(NamedTuple):
    """One contribution along one axis: pixel index, presence and weight, each of shape (batch, positions)."""

    pixel: str
    is_inside: str
    """Whether the pixel is inside the image; `""` if it always is."""
    weight: str
    """`""` if the weight is 1."""


def require_shape(name: str, out: Rewriter) -> tuple[int, ...]:
    """Return a completely known shape.

    Raises:
        CannotConvert: a dimension is unknown.
    """
    first, dims = require_image_shape(name, out)
    if first is None:
        raise _unknown_shape(name)
    return first, *dims


def require_image_shape(name: str, out: Rewriter) -> tuple[int | None, tuple[int, ...]]:
    """Return the first dimension of a value, `None` if it is unknown, and the remaining dimensions.

    Raises:
        CannotConvert: a remaining dimension is unknown.
    """
    first, *rest = out.shape(name) or (None, None)
    dims = tuple(dim for dim in rest if dim is not None)
    if len(dims) != len(rest):
        raise _unknown_shape(name)
    return first, dims


def _unknown_shape(name: str) -> CannotConvert:
    return CannotConvert(
        f"the shape of {name!r}, which pixel positions depend on, is unknown",
        remedy=f"declare it: add a value_info for {name!r}",
    )


def emit_pixel_table(
    data: str, batch: int | None, channels: int, sizes: tuple[int, ...], element_type: str, out: Rewriter
) -> PixelTable:
    """Emit the pixel table of images.

    Args:
        data: the images, of shape (batch, channels, *sizes).
        batch: the number of images; computed if it is `None`.
        channels: the number of channels.
        sizes: the spatial dimensions.
        element_type: the element type of `data`, in which the sum is computed.
        out: the rewriter.
    """
    rows = math.prod(sizes)
    flat = out.emit("Reshape", [data, out.constant([batch or 0, channels, rows], "int64")], opset=OPSET)
    transposed = out.emit("Transpose", [flat], opset=OPSET, perm=[0, 2, 1])
    pixels = out.emit("Reshape", [transposed, out.constant([-1, channels], "int64")], opset=OPSET)
    zeros = out.tensor(Tensor(element_type, (1, channels), (0,) * channels))
    name = out.emit("Concat", [zeros, pixels], opset=OPSET, axis=0)
    return PixelTable(name, _first_rows(data, batch, rows, out), sizes)


def _first_rows(data: str, batch: int | None, rows: int, out: Rewriter) -> str:
    if batch is not None:
        return out.tensor(Tensor("int64", (batch, 1), tuple(1 + image * rows for image in range(batch))))
    images = index_range(computed_dimension(data, 0, out), out)
    column = out.emit("Reshape", [images, out.constant([-1, 1], "int64")], opset=OPSET)
    offset = out.emit("Mul", [column, out.constant(rows, "int64")], opset=OPSET)
    return out.emit("Add", [offset, out.constant(1, "int64")], opset=OPSET)


def weighted_sum(table: PixelTable, axes: Sequence[Sequence[PixelTap]], out: Rewriter) -> str:
    """Emit the weighted sum over all combinations of taps, of shape (batch, positions, channels)."""
    total = ""
    for taps in product(*axes):
        part = out.emit("Gather", [table.name, _row(table, taps, out)], opset=OPSET, axis=0)
        weight = ""
        for factor in (tap.weight for tap in taps if tap.weight):
            weight = out.emit("Mul", [weight, factor], opset=OPSET) if weight else factor
        if weight:
            column = out.emit("Unsqueeze", [weight], opset=OPSET, axes=[2])
            part = out.emit("Mul", [part, column], opset=OPSET)
        total = out.emit("Add", [total, part], opset=OPSET) if total else part
    return total


def edge_tap(pixel: str, weight: str, size: int, out: Rewriter) -> PixelTap:
    """Return a tap that contributes only if the pixel, an integer stored as float, is inside the image."""
    # A pixel is inside if clipping to the image and clipping to one more pixel on each side agree.
    # Clipping before the cast keeps large and infinite numbers in the range of int64.
    clipped = as_int64(out.emit("Clip", [pixel], opset=6, min=0.0, max=float(size - 1)), out)
    clipped_wider = as_int64(out.emit("Clip", [pixel], opset=6, min=-1.0, max=float(size)), out)
    return PixelTap(clipped, out.emit("Equal", [clipped, clipped_wider], opset=7), weight)


def as_int64(value: str, out: Rewriter) -> str:
    """Emit a cast to int64."""
    return out.emit("Cast", [value], opset=OPSET, to=BY_NAME["int64"].number)


def _row(table: PixelTable, taps: Sequence[PixelTap], out: Rewriter) -> str:
    """Emit the row of each pixel, or row 0, which holds zeros, for a pixel outside the image."""
    row = table.first_rows
    stride = math.prod(table.sizes)
    for tap, size in zip(taps, table.sizes, strict=True):
        stride //= size
        offset = tap.pixel
        if stride != 1:
            offset = out.emit("Mul", [offset, out.constant(stride, "int64")], opset=OPSET)
        row = out.emit("Add", [row, offset], opset=OPSET)
    is_inside = ""
    for condition in (tap.is_inside for tap in taps if tap.is_inside):
        is_inside = out.emit("And", [is_inside, condition], opset=OPSET) if is_inside else condition
    if not is_inside:
        return row
    return out.emit("Where", [is_inside, row, out.constant(0, "int64")], opset=OPSET)
