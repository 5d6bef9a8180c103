"""Sample images at computed positions: emit weighted sums of rows of a table with one row for each pixel."""

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from opshift.adapters import Rewriter, Tensor, UnknownShape
from opshift.adapters.emit.expression import Expression, fold
from opshift.adapters.emit.shapes import (
    MAX_CONSTANT_ELEMENTS,
    Dimension,
    add_dimensions,
    dimension,
    dimension_tensor,
    index_range,
    reshape,
)

OPSET = 9
"""Opset of the emitted nodes, unless a call of `emit` passes an opset."""

COMPUTE_TYPES = {"float": "float", "double": "double", "float16": "float", "bfloat16": "float"}
"""Element types of images to the types in which their pixels are weighted and summed."""


Length = float | Expression
"""Number of pixels along an axis, as float."""


class PixelTable(NamedTuple):
    """A 2-D tensor with a row of channels for each pixel; pixels are in row-major order, image by image."""

    name: str
    first_rows: str
    """First row of each image: int64, shape (batch, 1, ...) with `position_rank` ones."""
    strides: tuple[Dimension, ...]
    """Number of rows from one pixel to the next along each axis."""
    position_rank: int
    """Number of dimensions of the tensors of positions, without the batch dimension."""


class PixelTaps(NamedTuple):
    """Pixels along one axis that contribute to each position (taps), and their weights.

    `pixels` and `weights` have the shape (taps, batch, *positions).
    """

    pixels: str
    weights: str
    """`""` for a single pixel of weight 1; `pixels` then has the shape (batch, *positions)."""
    tap_count: int


def require_shape(name: str, out: Rewriter) -> tuple[int, ...]:
    """Return the shape of a value; refuse an unknown dimension."""
    first, dims = require_image_shape(name, out)
    if first is None:
        raise _unknown_shape(name)
    return first, *dims


def require_image_shape(name: str, out: Rewriter) -> tuple[int | None, tuple[int, ...]]:
    """Return the first dimension of a value, `None` if it is unknown, and the remaining dimensions.

    Raises:
        UnknownShape: a remaining dimension is unknown.
    """
    first, *rest = out.shape(name) or (None, None)
    dims = tuple(dim for dim in rest if dim is not None)
    if len(dims) != len(rest):
        raise _unknown_shape(name)
    return first, dims


def _unknown_shape(name: str) -> UnknownShape:
    return UnknownShape(f"the shape of {name!r}, which pixel positions depend on, is unknown", name)


def emit_pixel_table(
    data: str,
    batch: int | None,
    sizes: Sequence[Dimension],
    out: Rewriter,
    *,
    border: bool,
    position_rank: int = 1,
) -> PixelTable:
    """Emit the pixel table of images.

    Args:
        data: the images, of shape (batch, channels, *sizes).
        batch: the number of images; computed if it is `None`.
        sizes: the spatial dimensions.
        out: the rewriter.
        border: whether to add one pixel of zeros at both ends of each axis.
        position_rank: the number of dimensions of the positions in each image.
    """
    out = out.for_opset(OPSET)
    images = data
    if border:
        pads = [0, 0, *[1] * len(sizes)]
        data = out.emit("Pad", [data, out.int64(pads * 2)], opset=13)
        sizes = [add_dimensions(size, 2, out) for size in sizes]
    *strides, rows = _strides(sizes, out)
    # Flatten, unlike Reshape with -1, accepts images without pixels.
    rank = 2 + len(sizes)
    channels_last = out.emit("Transpose", [data], perm=[0, *range(2, rank), 1])
    table = out.emit("Flatten", [channels_last], axis=rank - 1)
    first_rows = _first_rows(images, batch, rows, position_rank, out)
    return PixelTable(table, first_rows, tuple(reversed(strides)), position_rank)


def _strides(sizes: Sequence[Dimension], out: Rewriter) -> list[Dimension]:
    """Return the number of rows from pixel to pixel along each axis, last axis first, and of an image."""
    strides: list[Dimension] = [1]
    for size in reversed(sizes):
        last = strides[-1]
        if isinstance(size, int) and isinstance(last, int):
            strides.append(size * last)
        else:
            strides.append(out.emit("Mul", [dimension_tensor(each, out) for each in (last, size)]))
    return strides


def _first_rows(data: str, batch: int | None, rows: Dimension, position_rank: int, out: Rewriter) -> str:
    ones = (1,) * position_rank
    if batch is not None and batch <= MAX_CONSTANT_ELEMENTS and isinstance(rows, int):
        return out.tensor(Tensor("int64", (batch, *ones), tuple(image * rows for image in range(batch))))
    images = index_range(dimension_tensor(dimension(data, 0, out.for_opset(None)), out), out)
    return out.emit("Mul", [reshape(images, (-1, *ones), out), dimension_tensor(rows, out)])


def per_tap(numbers: Sequence[float], element_type: str, out: Rewriter, position_rank: int = 1) -> Expression:
    """Return a constant with one number for each tap of an axis, of shape (taps, 1, *ones)."""
    shape = (len(numbers), 1, *(1,) * position_rank)
    tensor = Tensor(element_type, shape, tuple(map(float, numbers)))
    return Expression(out.tensor(tensor), element_type, out)


def linear_taps(
    position: Expression, element_type: str, out: Rewriter, position_rank: int = 1
) -> tuple[Expression, Expression]:
    """Return the pixels before and after each position, and their weights for linear interpolation."""
    lower = position.apply("Floor")
    weights = abs(per_tap((1, 0), element_type, out, position_rank) - (position - lower))
    return lower + per_tap((0, 1), element_type, out, position_rank), weights


def replace_infinite(value: str, number: float, element_type: str, out: Rewriter) -> str:
    """Replace infinity and NaN by `number`, because no integer index represents them."""
    is_finite = abs(Expression(value, element_type, out)).apply("Less", math.inf)
    return out.emit("Where", [is_finite.name, value, out.constant(number, element_type)], opset=OPSET)


def pixel_indices(pixels: Expression, size: Length, out: Rewriter, *, has_zero_border: bool) -> str:
    """Emit int64 indices of pixels, clamped to the image, or to its border with `has_zero_border`."""
    if has_zero_border:
        pixels, size = pixels + 1.0, size + 2
    # Clip before the cast, to keep large and infinite numbers in the range of int64.
    return out.cast(clip(pixels.name, 0.0, size - 1, out), "int64", opset=OPSET)


def weighted_sum(table: PixelTable, axes: Sequence[PixelTaps], out: Rewriter) -> str:
    """Emit the weighted sum over all combinations of taps, of shape (batch, *positions, channels)."""
    out = out.for_opset(OPSET)
    rows = [
        taps.pixels if stride == 1 else out.emit("Mul", [taps.pixels, dimension_tensor(stride, out)])
        for taps, stride in zip(axes, table.strides, strict=True)
    ]
    if not axes[0].weights:
        return out.emit("Gather", [table.name, fold("Add", (table.first_rows, *rows), out)])
    rows[-1] = out.emit("Add", [rows[-1], table.first_rows])
    weights = [out.emit("Unsqueeze", [taps.weights], axes=[2 + table.position_rank]) for taps in axes]
    # For each combination of taps of the first axes, one Gather reads all taps of the last axis.
    pairs = [
        zip(*(out.emit_all("Split", [each], taps.tap_count, axis=0) for each in pair), strict=True)
        for taps, *pair in zip(axes[:-1], rows, weights, strict=False)
    ]
    terms = (_weighted_rows(table, rows[-1], weights[-1], outer, out) for outer in product(*pairs))
    return out.emit("Squeeze", [fold("Add", terms, out)], axes=[0])


def _weighted_rows(
    table: PixelTable, rows: str, weights: str, outer: Sequence[tuple[str, str]], out: Rewriter
) -> str:
    """Emit the sum over the taps of the last axis; `outer` has (row offset, weight) for each other axis."""
    pixels = out.emit("Gather", [table.name, fold("Add", (rows, *(row for row, _ in outer)), out)])
    total = out.emit("ReduceSum", [out.emit("Mul", [pixels, weights])], axes=[0], keepdims=1)
    return fold("Mul", (total, *(weight for _, weight in outer)), out)


def clip(value: str, low: float, high: Length, out: Rewriter) -> str:
    """Clip floating-point numbers: emit Clip-6 with attributes, or Max and Min if `high` is computed."""
    if not isinstance(high, Expression):
        return out.emit("Clip", [value], opset=6, min=low, max=high)
    above = out.emit("Max", [value, high.constant(low).name], opset=OPSET)
    return out.emit("Min", [above, high.name], opset=OPSET)
