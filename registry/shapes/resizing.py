"""Shapes of resized images; every version keeps the rank."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import axes_in, unknown
from opshift.registry.shapes.reading import constant_integers, input_shape, integers, text
from opshift.registry.shapes.table import rule


@rule("resize", keeps_rank=True)
def resize(node: ShapeContext) -> Sequence[Shape | None]:
    """Replace the given axes, or all axes, by the sizes, or scale them and round down."""
    data = input_shape(node, 0)
    if data is None:
        return [None]
    has_axes = node.attribute("axes") is not None
    axes = axes_in(integers(node, "axes"), len(data)) if has_axes else tuple(range(len(data)))
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
    if sizes is None or text(node, "keep_aspect_ratio_policy") in ("", "stretch"):
        return sizes
    return unknown(len(sizes))


def _scaled(node: ShapeContext, dims: Sequence[int | None]) -> Shape:
    scales = _scales(node)
    if scales is None or len(scales) != len(dims):
        return ()
    return tuple(_scaled_dim(dim, scale) for dim, scale in zip(dims, scales, strict=True))


def _scales(node: ShapeContext) -> Sequence[Any] | None:
    if "height_scale" in node.version.attributes:
        return (1.0, 1.0, node.attribute("height_scale"), node.attribute("width_scale"))
    if "scales" in node.version.attributes:
        found = node.attribute("scales")
        return found if isinstance(found, tuple | list) else None
    parameter = node.version.input_named("scales")
    return node.constant(parameter[0]) if parameter else None


def _scaled_dim(dim: int | None, scale: Any) -> int | None:
    """Scale and round down; the result is unknown if single and double precision differ."""
    if dim is None or not isinstance(scale, int | float) or not 0 < dim * scale < 2**31:
        return None
    exact = dim * scale
    (rounded,) = struct.unpack("<f", struct.pack("<f", exact))
    return math.floor(exact) if math.floor(exact) == math.floor(rounded) else None
