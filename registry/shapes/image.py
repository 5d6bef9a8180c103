"""Shapes of operators that crop or sample images, or rearrange them into blocks."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from opshift.registry.shapes.dims import exact_quotient, normalize_axes, product, unknown
from opshift.registry.shapes.node_reading import (
    constant_integers,
    input_length,
    input_shape,
    integer_attribute,
    integers_attribute,
    string_attribute,
)
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule


@rule("depth_to_space", keeps_rank=True)
def depth_to_space(node: ShapeContext) -> Sequence[Shape | None]:
    """Move blocks of channels into height and width."""
    data, block = _image(node), integer_attribute(node, "blocksize")
    if data is None or block is None or block < 1:
        return [unknown(4)]
    batch, channels, height, width = data
    return [
        (batch, exact_quotient(channels, block * block), product((height, block)), product((width, block)))
    ]


@rule("space_to_depth", keeps_rank=True)
def space_to_depth(node: ShapeContext) -> Sequence[Shape | None]:
    """Move blocks of height and width into the channels."""
    data, block = _image(node), integer_attribute(node, "blocksize")
    if data is None or block is None or block < 1:
        return [unknown(4)]
    batch, channels, height, width = data
    return [
        (
            batch,
            product((channels, block * block)),
            exact_quotient(height, block),
            exact_quotient(width, block),
        )
    ]


@rule("column_to_image")
def column_to_image(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer an image of the given size; each column contains the channels of one block."""
    data, size, block = input_shape(node, 0), constant_integers(node, 1), constant_integers(node, 2)
    counts = {count for count in (input_length(node, 1), input_length(node, 2)) if count is not None}
    if len(counts) != 1:
        return [None]
    batch, columns = data[:2] if data is not None and len(data) == 3 else (None, None)
    channels = None if block is None else exact_quotient(columns, product(block))
    return [(batch, channels, *(unknown(counts.pop()) if size is None else size))]


@rule("grid_sample")
def grid_sample(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer batch and channels of the image, and spatial dimensions of the grid."""
    data, grid = input_shape(node, 0), input_shape(node, 1)
    ranks = {len(shape) for shape in (data, grid) if shape is not None}
    if len(ranks) != 1 or min(ranks) < 3:
        return [None]
    rank = ranks.pop()
    batch, channels = data[:2] if data is not None else (grid[0] if grid else None, None)
    return [(batch, channels, *(unknown(rank - 2) if grid is None else grid[1:-1]))]


@rule("affine_grid")
def affine_grid(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the given size without its channels, and one coordinate per spatial axis as last dimension."""
    theta, size, rank = input_shape(node, 0), constant_integers(node, 1), input_length(node, 1)
    if rank is None and theta is not None and len(theta) == 3 and theta[1] is not None:
        rank = theta[1] + 2
    if rank not in (4, 5):
        return [None]
    batch = theta[0] if theta else None
    return [(batch, *unknown(rank - 2), rank - 2) if size is None else (size[0], *size[2:], rank - 2)]


@rule("decoded_image")
def decoded_image(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer an unknown height and width, and the number of channels of the pixel format."""
    return [(None, None, {"RGB": 3, "BGR": 3, "Grayscale": 1}.get(string_attribute(node, "pixel_format")))]


@rule("center_crop_pad", keeps_rank=True)
def center_crop_pad(node: ShapeContext) -> Sequence[Shape | None]:
    """Replace the sizes of the given axes, or of all axes."""
    data, sizes, axes = input_shape(node, 0), constant_integers(node, 1), node.attribute("axes")
    if data is None:
        return [None]
    selected = (
        tuple(range(len(data)))
        if axes is None
        else normalize_axes(integers_attribute(node, "axes"), len(data))
    )
    if selected is None:
        return [unknown(len(data))]
    new_sizes = sizes if sizes is not None and len(sizes) == len(selected) else unknown(len(selected))
    size_by_axis = dict(zip(selected, new_sizes, strict=True))
    return [tuple(size_by_axis.get(position, dim) for position, dim in enumerate(data))]


@rule("crop", keeps_rank=True)
def crop(node: ShapeContext) -> Sequence[Shape | None]:
    """Set height and width to `scale`, or subtract `border` (left, top, right, bottom) from them."""
    data, border, size = _image(node), integers_attribute(node, "border"), integers_attribute(node, "scale")
    batch, channels, height, width = data if data is not None else unknown(4)
    if size is not None:
        return [(batch, channels, *(size if len(size) == 2 and min(size) >= 0 else unknown(2)))]
    if border is None or len(border) != 4:
        return [(batch, channels, None, None)]
    left, top, right, bottom = border
    return [(batch, channels, _cropped_size(height, top + bottom), _cropped_size(width, left + right))]


def _cropped_size(size: int | None, cut: int) -> int | None:
    return None if size is None or not 0 <= cut <= size else size - cut


def _image(node: ShapeContext) -> Shape | None:
    data = input_shape(node, 0)
    return data if data is not None and len(data) == 4 else None


@rule("resize", keeps_rank=True)
def resize(node: ShapeContext) -> Sequence[Shape | None]:
    """Replace the given axes, or all axes, by the sizes, or scale them and round down."""
    data = input_shape(node, 0)
    if data is None:
        return [None]
    has_axes = node.attribute("axes") is not None
    axes = (
        normalize_axes(integers_attribute(node, "axes"), len(data)) if has_axes else tuple(range(len(data)))
    )
    if axes is None:
        return [unknown(len(data))]
    size_by_axis = dict(
        zip(axes, _sizes(node) or _scaled(node, [data[position] for position in axes]), strict=False)
    )
    if len(size_by_axis) != len(axes):
        size_by_axis = dict.fromkeys(axes)
    return [tuple(size_by_axis.get(position, dim) for position, dim in enumerate(data))]


def _sizes(node: ShapeContext) -> Shape | None:
    parameter = node.version.input_named("sizes")
    sizes = constant_integers(node, parameter[0]) if parameter else None
    if sizes is None or string_attribute(node, "keep_aspect_ratio_policy") in ("", "stretch"):
        return sizes
    return unknown(len(sizes))


def _scaled(node: ShapeContext, dims: Sequence[int | None]) -> Shape:
    scales = _scales(node)
    if scales is None or len(scales) != len(dims):
        return ()
    return tuple(_scaled_dim(dim, scale) for dim, scale in zip(dims, scales, strict=True))


def _scales(node: ShapeContext) -> Sequence[object] | None:
    if "height_scale" in node.version.attributes:
        return (1.0, 1.0, node.attribute("height_scale"), node.attribute("width_scale"))
    if "scales" in node.version.attributes:
        found = node.attribute("scales")
        return found if isinstance(found, tuple | list) else None
    parameter = node.version.input_named("scales")
    return node.constant(parameter[0]) if parameter else None


def _scaled_dim(dim: int | None, scale: object) -> int | None:
    """Scale and round down; the result is unknown if single and double precision differ."""
    if dim is None or not isinstance(scale, int | float) or not 0 < dim * scale < 2**31:
        return None
    exact = dim * scale
    (rounded,) = struct.unpack("<f", struct.pack("<f", exact))
    return math.floor(exact) if math.floor(exact) == math.floor(rounded) else None
