"""Sample images at computed positions: a table with a row for each pixel, and weighted sums of its rows."""

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from opshift.adapters import CannotConvert, Rewriter, Tensor
from opshift.adapters.emit.expression import Expression, fold
from opshift.adapters.emit.shapes import (
    MAX_CONSTANT_ELEMENTS,
    Dimension,
    dimension,
    dimension_tensor,
    index_range,
    reshape,
    shape_tensor,
)

OPSET = 9
"""Opset of the emitted nodes, unless stated at the node."""

COMPUTE_TYPES = {"float": "float", "double": "double", "float16": "float", "bfloat16": "float"}
"""Element types to the types in which positions and weights are computed."""


Length = float | Expression
"""Number of pixels along an axis, as float."""


class PixelTable(NamedTuple):
    """A 2-D tensor: a row of zeros, then the channels of each pixel as a row, image by image, row-major."""

    name: str
    first_rows: str
    """First row of each image: int64, shape (batch, 1)."""
    sizes: tuple[Dimension, ...]
    """Spatial dimensions of an image."""


class PixelTap(NamedTuple):
    """One contribution along one axis: pixel index, presence and weight, each of shape (batch, positions)."""

    pixel: str
    is_inside: str
    """Boolean: the pixel is inside the image; `""` if it always is."""
    weight: str
    """`""` if the weight is 1."""


def require_shape(name: str, out: Rewriter) -> tuple[int, ...]:
    """Return a completely known shape; refuse if a dimension is unknown."""
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
    data: str,
    batch: int | None,
    channels: Dimension,
    sizes: tuple[Dimension, ...],
    element_type: str,
    out: Rewriter,
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
    out = out.for_opset(OPSET)
    rows = _product(sizes, out)
    # 0 copies a dimension of the data.
    known_channels = channels if isinstance(channels, int) else 0
    flat = reshape(data, (batch or 0, known_channels, rows if isinstance(rows, int) else -1), out)
    transposed = out.emit("Transpose", [flat], perm=[0, 2, 1])
    pixels = reshape(transposed, (-1, channels), out)
    if isinstance(channels, int):
        zeros = out.tensor(Tensor(element_type, (1, out.require_elements(channels)), (0,) * channels))
    else:
        zero = Tensor(element_type, (1,), (0,))
        zeros = out.emit("ConstantOfShape", [shape_tensor((1, channels), out)], value=zero)
    name = out.emit("Concat", [zeros, pixels], axis=0)
    return PixelTable(name, _first_rows(data, batch, rows, out), sizes)


def _product(sizes: Sequence[Dimension], out: Rewriter) -> Dimension:
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) == len(sizes):
        return math.prod(numbers)
    return fold("Mul", (dimension_tensor(size, out) for size in sizes), out)


def _first_rows(data: str, batch: int | None, rows: Dimension, out: Rewriter) -> str:
    if batch is not None and batch <= MAX_CONSTANT_ELEMENTS and isinstance(rows, int):
        return out.tensor(Tensor("int64", (batch, 1), tuple(1 + image * rows for image in range(batch))))
    images = index_range(dimension_tensor(dimension(data, 0, out.for_opset(None)), out), out)
    column = reshape(images, (-1, 1), out)
    size = out.int64(rows) if isinstance(rows, int) else rows
    return out.emit("Add", [out.emit("Mul", [column, size]), out.int64(1)])


def weighted_sum(table: PixelTable, axes: Sequence[Sequence[PixelTap]], out: Rewriter) -> str:
    """Emit the weighted sum over all combinations of taps, of shape (batch, positions, channels)."""
    out = out.for_opset(OPSET)
    return fold("Add", (_weighted_row(table, taps, out) for taps in product(*axes)), out)


def _weighted_row(table: PixelTable, taps: Sequence[PixelTap], out: Rewriter) -> str:
    pixels = out.emit("Gather", [table.name, _row(table, taps, out)], axis=0)
    weight = fold("Mul", (tap.weight for tap in taps if tap.weight), out)
    return out.emit("Mul", [pixels, out.emit("Unsqueeze", [weight], axes=[2])]) if weight else pixels


def _row(table: PixelTable, taps: Sequence[PixelTap], out: Rewriter) -> str:
    """Emit the row of each pixel, or row 0, which holds zeros, for a pixel outside the image."""
    row = table.first_rows
    for axis, tap in enumerate(taps):
        stride = _product(table.sizes[axis + 1 :], out)
        offset = tap.pixel
        if stride != 1:
            factor = out.int64(stride) if isinstance(stride, int) else stride
            offset = out.emit("Mul", [offset, factor])
        row = out.emit("Add", [row, offset])
    is_inside = fold("And", (tap.is_inside for tap in taps if tap.is_inside), out)
    return out.emit("Where", [is_inside, row, out.int64(0)]) if is_inside else row


def clip(value: str, low: float, high: Length, out: Rewriter) -> str:
    """Emit a Clip of floating-point numbers to constant bounds, which are attributes in opset 6.

    An upper bound that is computed is applied by Min.
    """
    if not isinstance(high, Expression):
        return out.emit("Clip", [value], opset=6, min=low, max=high)
    above = out.emit("Max", [value, high.constant(low).name], opset=OPSET)
    return out.emit("Min", [above, high.name], opset=OPSET)


def edge_tap(pixel: str, weight: str, size: Length, out: Rewriter) -> PixelTap:
    """Return a tap that contributes only if the pixel, an integer stored as float, is inside the image."""
    # A pixel is inside if clipping to the image and clipping to one more pixel on each side agree.
    # Clipping before the cast keeps large and infinite numbers in the range of int64.
    clipped = out.cast(clip(pixel, 0.0, size - 1, out), "int64", opset=OPSET)
    clipped_wider = out.cast(clip(pixel, -1.0, size, out), "int64", opset=OPSET)
    return PixelTap(clipped, out.emit("Equal", [clipped, clipped_wider], opset=7), weight)
