"""Output shapes of operators that crop, pad, resize, sample or decode images, or rearrange blocks."""

import math
from collections.abc import Sequence

from opshift.model.element_types import round_to_float32
from opshift.model.types import Shape
from opshift.registry.shapes.dims import (
    dim_at,
    exact_quotient,
    normalize_axes,
    of_rank,
    product,
    unknown,
    with_dims,
)
from opshift.registry.shapes.rule_table import Shapes, data_rule, rule
from opshift.registry.shapes.shape_context import ShapeContext
from opshift.registry.shapes.sizes import computed_size, floor_quotient, is_symbolic


@rule("depth_to_space", keeps_rank=True)
def depth_to_space(node: ShapeContext) -> Shapes:
    """Move blocks of channels into height and width."""
    block = node.integer("blocksize")
    if block is None or block < 1:
        return [unknown(4)]
    batch, channels, height, width = of_rank(node.shape(0), 4)
    depth = exact_quotient(channels, block * block)
    return [(batch, depth, product((height, block)), product((width, block)))]


@rule("space_to_depth", keeps_rank=True)
def space_to_depth(node: ShapeContext) -> Shapes:
    """Move blocks of height and width into the channels."""
    block = node.integer("blocksize")
    if block is None or block < 1:
        return [unknown(4)]
    batch, channels, height, width = of_rank(node.shape(0), 4)
    depth = product((channels, block * block))
    return [(batch, depth, exact_quotient(height, block), exact_quotient(width, block))]


@rule("column_to_image")
def column_to_image(node: ShapeContext) -> Shapes:
    """Infer an image of the size in input 1; a column of the input has all channels of one block."""
    size, block = node.constant_integers(1), node.constant_integers(2)
    counts = {count for count in (node.input_length(1), node.input_length(2)) if count is not None}
    if len(counts) != 1:
        return [None]
    batch, columns, _ = of_rank(node.shape(0), 3)
    channels = None if block is None else exact_quotient(columns, product(block))
    return [(batch, channels, *(unknown(counts.pop()) if size is None else size))]


@rule("grid_sample")
def grid_sample(node: ShapeContext) -> Shapes:
    """Infer batch and channels of the image, and spatial dimensions of the grid."""
    data, grid = node.shape(0), node.shape(1)
    ranks = {len(shape) for shape in (data, grid) if shape is not None}
    if len(ranks) != 1 or min(ranks) < 3:
        return [None]
    batch = dim_at(grid if data is None else data, 0)
    return [(batch, dim_at(data, 1), *(unknown(ranks.pop() - 2) if grid is None else grid[1:-1]))]


@rule("affine_grid")
def affine_grid(node: ShapeContext) -> Shapes:
    """Infer the size in input 1 without the channels, and append the number of spatial axes."""
    theta, size, rank = node.shape(0), node.constant_integers(1), node.input_length(1)
    rows = of_rank(theta, 3)[1]
    if rank is None and rows is not None:
        rank = rows + 2
    if rank not in (4, 5):
        return [None]
    batch, *spatial_shape = (dim_at(theta, 0), *unknown(rank - 2)) if size is None else (size[0], *size[2:])
    return [(batch, *spatial_shape, rank - 2)]


@rule("decoded_image")
def decoded_image(node: ShapeContext) -> Shapes:
    """Infer an unknown height and width, and the number of channels of the pixel format."""
    return [(None, None, {"RGB": 3, "BGR": 3, "Grayscale": 1}.get(node.string("pixel_format")))]


@data_rule("center_crop_pad", keeps_rank=True)
def center_crop_pad(node: ShapeContext, data: Shape) -> Shapes:
    """Replace the sizes of the attribute `axes`, or of all axes, by input 1."""
    axes = _selected_axes(node, len(data))
    if axes is None:
        return [unknown(len(data))]
    sizes = of_rank(node.constant_integers(1), len(axes))
    return [with_dims(data, dict(zip(axes, sizes, strict=True)))]


@rule("crop", keeps_rank=True)
def crop(node: ShapeContext) -> Shapes:
    """Set height and width to `scale`, or reduce both by `border` (left, top, right, bottom)."""
    border, size = node.integers("border"), node.integers("scale")
    batch, channels, height, width = of_rank(node.shape(0), 4)
    if size is not None:
        return [(batch, channels, *(size if len(size) == 2 and min(size) >= 0 else unknown(2)))]
    if border is None or len(border) != 4:
        return [(batch, channels, None, None)]
    left, top, right, bottom = border
    return [(batch, channels, _cropped_size(height, top + bottom), _cropped_size(width, left + right))]


def _cropped_size(size: int | None, cut: int) -> int | None:
    return None if size is None or not 0 <= cut <= size else size - cut


@data_rule("resize", keeps_rank=True)
def resize(node: ShapeContext, data: Shape) -> Shapes:
    """Set the sizes of `axes`, or all axes, to `sizes`, or multiply the sizes by `scales` and round down.

    Products are rounded to float32, as in onnxruntime and in ONNX's own shape inference.
    """
    axes = _selected_axes(node, len(data))
    if axes is None:
        return [unknown(len(data))]
    dims = [data[axis] for axis in axes]
    sizes = _shape_from_sizes(node, dims) or _shape_from_scales(node, dims)
    return [with_dims(data, dict(zip(axes, of_rank(sizes, len(axes)), strict=True)))]


def _selected_axes(node: ShapeContext, rank: int) -> tuple[int, ...] | None:
    """Return the axes in the attribute `axes`, or by default all axes; `None` if they are invalid."""
    return normalize_axes(range(rank) if node.attribute("axes") is None else node.integers("axes"), rank)


def _shape_from_sizes(node: ShapeContext, dims: Sequence[int | None]) -> Shape | None:
    parameter = node.version.input_named("sizes")
    sizes = node.constant_integers(parameter[0]) if parameter else None
    policy = node.string("keep_aspect_ratio_policy")
    if sizes is None or policy in ("", "stretch"):
        return sizes
    pairs = [(size, dim) for size, dim in zip(sizes, dims, strict=False) if size is not None and dim]
    if not pairs or len(pairs) != len(sizes):
        return unknown(len(sizes))
    if any(is_symbolic(*pair) for pair in pairs):
        # The order of ratios of symbols is unknown, so the sizes become new symbols.
        return tuple(computed_size(policy, axis, *pairs) for axis in range(len(pairs)))
    ratio = (min if policy == "not_larger" else max)(pairs, key=lambda pair: pair[0] / pair[1])
    return tuple(_rounded_product(dim, *ratio) for _, dim in pairs)


def _rounded_product(dim: int, numerator: int, denominator: int) -> int:
    """Return dim * numerator / denominator, rounded half up (Resize 18, `keep_aspect_ratio_policy`)."""
    ratio = round_to_float32(round_to_float32(numerator) / round_to_float32(denominator))
    return math.floor(round_to_float32(ratio * round_to_float32(dim)) + 0.5)


def _shape_from_scales(node: ShapeContext, dims: Sequence[int | None]) -> Shape | None:
    scales = _read_scales(node)
    if scales is None or len(scales) != len(dims):
        return None
    return tuple(_scaled_dim(dim, scale) for dim, scale in zip(dims, scales, strict=True))


def _read_scales(node: ShapeContext) -> Sequence[object] | None:
    if "height_scale" in node.version.attributes:
        return (1.0, 1.0, node.attribute("height_scale"), node.attribute("width_scale"))
    if "scales" in node.version.attributes:
        found = node.attribute("scales")
        return found if isinstance(found, tuple | list) else None
    parameter = node.version.input_named("scales")
    return node.constant(parameter[0]) if parameter else None


def _scaled_dim(dim: int | None, scale: object) -> int | None:
    """Return `dim * scale`, rounded down; `None` if unknown, not positive, or a number from 2**31 on."""
    if dim is None or not isinstance(scale, int | float) or not math.isfinite(scale) or dim * scale <= 0:
        return None
    if is_symbolic(dim):
        numerator, denominator = scale.as_integer_ratio()
        if 1 in (numerator, denominator):
            return floor_quotient(dim * numerator, denominator)
        return computed_size("Resize", dim, scale)  # rounding to float32 may change the quotient
    exact = dim * scale
    return math.floor(round_to_float32(exact)) if exact < 2**31 else None
