"""Adapters of GridSample (introduced in opset 16), and of AffineGrid (opset 20), which computes grids.

GridSample becomes Gather from a table of pixels, and a weighted sum. Before version 20, GridSample supports
only 2-D images. AffineGrid becomes a multiplication of evenly spaced points by one matrix per sample.
"""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, UnknownShape, adapter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.pixel_table import (
    COMPUTE_TYPES,
    OPSET,
    Length,
    PixelTaps,
    emit_pixel_table,
    linear_taps,
    per_tap,
    pixel_indices,
    replace_infinite,
    weighted_sum,
)
from opshift.adapters.emit.shapes import MAX_CONSTANT_ELEMENTS, Dimension, dimension, index_range, reshape

OLD_MODES = {"linear": b"bilinear", "cubic": b"bicubic", "nearest": b"nearest"}

NEW_MODES = {"bilinear": "linear", "bicubic": "cubic"}

IMAGE_RANK = 4
"""Rank of a batch of 2-D images with channels, the only rank that GridSample supports before version 20."""

CUBIC_COEFFICIENT = -0.75
"""Coefficient `a` of Keys' cubic convolution kernel, as in ONNX's definition of GridSample."""


ERROR = (
    "at most N 2^-22 of the largest pixel, for N pixels along all axes, and 1 unit in the last place of a "
    "type narrower than float"
)
"""Bound of the rounding error of a rewritten GridSample, caused by coordinates in float32."""


class Interpolation(NamedTuple):
    """Attributes of GridSample, with modes named as in version 20; `rank` counts spatial dimensions."""

    mode: str
    padding: str
    align_corners: bool
    rank: int


@adapter("GridSample", 20, 16, error=ERROR)
def rename_modes(node: Node, out: Rewriter) -> None:
    """Rename the mode for 2-D images; rewrite other ranks as weighted sums of pixels."""
    rank = out.rank(node.inputs[0])
    if rank != IMAGE_RANK:
        _expand_to_weighted_sum(node, rank - 2, out)
        return
    mode = node.attribute("mode", b"linear").decode()
    out.replace(node, attributes={**node.attributes, "mode": OLD_MODES.get(mode, mode.encode())})


@adapter("GridSample", 16, 15, error=ERROR)
def expand_grid_sample(node: Node, out: Rewriter) -> None:
    """Rewrite each output pixel as a weighted sum of the pixels that the grid points to."""
    if (rank := out.known_rank(node.inputs[0])) not in (None, IMAGE_RANK):
        raise CannotConvert(
            f"the data has rank {rank}, and version 16 samples images of rank {IMAGE_RANK}",
            "node.invalid",
        )
    _expand_to_weighted_sum(node, IMAGE_RANK - 2, out)


def _expand_to_weighted_sum(node: Node, rank: int, out: Rewriter) -> None:
    """Expand the node to a weighted sum of pixels; `rank` is the number of spatial dimensions."""
    out = out.for_opset(OPSET)
    data, grid = node.inputs
    mode: str = node.attribute("mode", b"linear").decode()
    padding = node.attribute("padding_mode", b"zeros").decode()
    is_aligned = bool(node.attribute("align_corners", 0))
    sizes = [dimension(data, 2 + axis, out) for axis in range(rank)]
    interpolation = Interpolation(NEW_MODES.get(mode, mode), padding, is_aligned, rank)
    if (interpolation.mode, padding) == ("cubic", "border"):
        out.allow(
            "approximate",
            "for cubic interpolation, onnxruntime clamps pixels to the border, others the coordinate",
        )
    batch = out.known_dimension(data, 0)
    element_type = out.element_type(data)
    compute_type = element_type if interpolation.mode == "nearest" else COMPUTE_TYPES.get(element_type)
    if compute_type is None:
        reason = f"the node interpolates {element_type}, but the rounding of the result is undefined"
        raise CannotConvert(reason, "result.undefined")
    data = _cast_if_needed(data, element_type, compute_type, out)
    table = emit_pixel_table(data, batch, sizes, out, border=padding == "zeros", position_rank=rank)
    grid = _cast_if_needed(grid, out.element_type(grid), "float", out)
    # -1 replaces infinite coordinates and NaN, as in onnxruntime.
    grid = replace_infinite(grid, -1.0, "float", out)
    lengths = [_float_length(size, out) for size in sizes]
    axes = [
        _taps_along_axis(
            _pixel_coordinates(grid, axis, lengths, interpolation, out),
            length,
            interpolation,
            compute_type,
            out,
        )
        for axis, length in enumerate(lengths)
    ]
    perm = [0, 1 + rank, *range(1, 1 + rank)]
    sampled = out.emit("Transpose", [weighted_sum(table, axes, out)], perm=perm)
    rename_output(_cast_if_needed(sampled, compute_type, element_type, out), node, out)


def _float_length(size: Dimension, out: Rewriter) -> Length:
    return float(size) if isinstance(size, int) else Expression(out.cast(size, "float"), "float", out)


def _cast_if_needed(value: str, source: str, target: str, out: Rewriter) -> str:
    if source == target:
        return value
    return out.cast(value, target, opset=13 if "bfloat16" in (source, target) else OPSET)


def _taps_along_axis(
    coordinate: Expression, size: Length, interpolation: Interpolation, element_type: str, out: Rewriter
) -> PixelTaps:
    """Return pixels along an axis, clamped to the image or its border of zeros, and their weights."""
    mode, border = interpolation.mode, interpolation.padding == "zeros"
    if mode == "nearest":
        coordinate = coordinate.apply("Round", opset=11)
    # With padding mode `border`, clamp the pixel indices, not the coordinate: a clamped coordinate would read
    # a second pixel with weight 0, and infinity times 0 is NaN.
    is_reflected = interpolation.padding == "reflection"
    position = _reflect_coordinate(coordinate, size, interpolation) if is_reflected else coordinate
    if mode == "nearest":
        return PixelTaps(pixel_indices(position, size, out, has_zero_border=border), "", 1)
    find_taps = linear_taps if mode == "linear" else _cubic_taps
    pixels, weights = find_taps(position, "float", out, interpolation.rank)
    if interpolation.padding == "reflection":
        pixels = _reflect_coordinate(pixels, size, interpolation)
    names = (
        pixel_indices(pixels, size, out, has_zero_border=border),
        _cast_if_needed(weights.name, "float", element_type, out),
    )
    return PixelTaps(*names, 2 if mode == "linear" else 4)


def _reflect_coordinate(coordinate: Expression, size: Length, interpolation: Interpolation) -> Expression:
    """Reflect a coordinate at the image edges, repeatedly if necessary, into the image."""
    low, extent = (0.0, size - 1) if interpolation.align_corners else (-0.5, size)
    # With align_corners, an axis of one pixel has extent 0: avoid a division by 0. Indices are clamped later.
    if isinstance(extent, Expression):
        extent = extent.apply("Max", 1.0)
    elif not extent:
        return coordinate * 0.0
    distance = abs(coordinate - low)
    reflections = (distance / extent).apply("Floor")
    remainder = distance - reflections * extent
    is_odd = reflections - (reflections / 2.0).apply("Floor") * 2.0
    return remainder + is_odd * (extent - remainder * 2.0) + low


def _pixel_coordinates(
    grid: str, axis: int, sizes: Sequence[Length], interpolation: Interpolation, out: Rewriter
) -> Expression:
    """Return the pixel coordinates of all grid points along an axis, in the shape (batch, *points)."""
    size = sizes[axis]
    # The grid lists the coordinate of the last axis (the width) first.
    normalized = out.emit("Gather", [grid, out.int64(len(sizes) - 1 - axis)], axis=len(sizes) + 1)
    shifted = Expression(normalized, "float", out) + 1.0
    return shifted / 2.0 * (size - 1) if interpolation.align_corners else (shifted * size - 1.0) / 2.0


def _cubic_taps(
    position: Expression, element_type: str, out: Rewriter, rank: int
) -> tuple[Expression, Expression]:
    """Return two pixels before and two pixels after each position, and the weights of all four."""
    lower = position.apply("Floor")
    offsets, a = per_tap((-1, 0, 1, 2), element_type, out, rank), CUBIC_COEFFICIENT
    distance = abs(position - lower - offsets)
    inner, outer = (a + 2, -(a + 3), 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a)
    first, second, third, last = (
        per_tap((far, near, near, far), element_type, out, rank)
        for near, far in zip(inner, outer, strict=True)
    )
    return lower + offsets, ((distance * first + second) * distance + third) * distance + last


@adapter("AffineGrid", 20, 19)
def expand_affine_grid(node: Node, out: Rewriter) -> None:
    """Emit the sum over all axes of a matrix column times the positions, plus the last matrix column.

    The first column of each matrix belongs to the last spatial axis, the width.
    """
    theta = node.inputs[0]
    axes = _axis_count(node, out)
    grid = _matrix_column(theta, axes, axes, out)
    for axis in range(axes):
        shape = [1] * (1 + axis) + [-1] + [1] * (axes - axis)
        positions = reshape(_point_positions(node, axis, out), shape, out)
        product = out.emit("Mul", [positions, _matrix_column(theta, axes - 1 - axis, axes, out)])
        grid = out.emit("Add", [product, grid], node.outputs if axis == axes - 1 else 1)


def _axis_count(node: Node, out: Rewriter) -> int:
    """Return the number of spatial dimensions: 2 for images and 3 for volumes."""
    sizes, rows = out.known_dimension(node.inputs[1], 0), out.known_dimension(node.inputs[0], 1)
    if sizes is not None:
        return out.require_rank(sizes) - 2
    if rows is not None:
        return out.require_rank(rows)
    reason = "the number of spatial dimensions of the grid, 2 or 3, is unknown"
    raise UnknownShape(reason, *node.inputs[:2])


def _matrix_column(theta: str, index: int, axes: int, out: Rewriter) -> str:
    """Return column `index` of every matrix, in a shape that broadcasts over all grid points."""
    column = out.emit("Gather", [theta, out.int64(index)], axis=2)
    return reshape(column, (-1, *[1] * axes, axes), out)


def _point_positions(node: Node, axis: int, out: Rewriter) -> str:
    """Return point positions: -1 to 1 with `align_corners`, else the centers of equal parts of [-1, 1]."""
    element_type = out.element_type(node.inputs[0])
    corners = bool(node.attribute("align_corners", 0))
    known = out.constant_value(node.inputs[1])
    # The input `size` starts with the number of samples and the number of channels.
    index = 2 + axis
    size: int | None = None if known is None else int(known.values[index])
    if size == 1 and corners:
        reason = "align_corners is 1, but one point between two corners has no defined position"
        raise CannotConvert(reason, "result.undefined", remedy="set align_corners to 0")
    if size is None:
        count = out.emit("Gather", [node.inputs[1], out.int64([index])], axis=0)
    elif size > MAX_CONSTANT_ELEMENTS:
        count = out.int64([size])
    else:
        step, first = (2 / (size - 1), -1.0) if corners else (2 / max(size, 1), 1 / max(size, 1) - 1)
        return out.constant(tuple(first + step * index for index in range(size)), element_type)
    return _computed_positions(count, corners, element_type, out)


def _computed_positions(count: str, corners: bool, element_type: str, out: Rewriter) -> str:
    """Return the positions of `count` points along an axis; the count is known only at run time.

    Point i is at `1 - 2 * (count - 1 - i) / (count - 1)` with `corners`, else at `(2 * i + 1) / count - 1`.
    With `corners`, a single point has no defined position; onnxruntime uses 1, the last corner.
    """
    two, one = (Expression(out.constant(number, "double"), "double", out) for number in (2.0, 1.0))
    names = index_range(count, out), count
    indices, points = (Expression(out.cast(name, "double"), "double", out) for name in names)
    doubled = indices * two
    if corners:
        intervals = points - one
        # The maximum is computed in float, because older runtimes lack Max for double.
        remaining = intervals * two - doubled
        position = one - remaining / intervals.cast("float").apply("Max", 1, opset=8).cast("double")
    else:
        position = (doubled + one) / points - one
    return position.cast(element_type).name
