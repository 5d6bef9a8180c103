"""Resizing by scales or to sizes; all versions keep the rank."""

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
    """The listed axes, or all, get their sizes, or are scaled and rounded down."""
    data = input_shape(node, 0)
    if data is None:
        return [None]
    stated = node.attribute("axes") is not None
    axes = axes_in(integers(node, "axes"), len(data)) if stated else tuple(range(len(data)))
    if axes is None:
        return [unknown(len(data))]
    new = dict(zip(axes, _sizes(node) or _scaled(node, [data[at] for at in axes]), strict=False))
    if len(new) != len(axes):
        new = dict.fromkeys(axes)
    return [tuple(new.get(at, dim) for at, dim in enumerate(data))]


def _sizes(node: ShapeContext) -> Shape | None:
    found = node.version.input_named("sizes")
    sizes = constant_integers(node, found[0]) if found else None
    if sizes is None or text(node, "keep_aspect_ratio_policy") in ("", "stretch"):
        return sizes
    return unknown(len(sizes))


def _scaled(node: ShapeContext, dims: Sequence[int | None]) -> Shape:
    scales = _scales(node)
    if scales is None or len(scales) != len(dims):
        return ()
    return tuple(_times(dim, scale) for dim, scale in zip(dims, scales, strict=True))


def _scales(node: ShapeContext) -> Sequence[Any] | None:
    if "height_scale" in node.version.attributes:
        return (1.0, 1.0, node.attribute("height_scale"), node.attribute("width_scale"))
    if "scales" in node.version.attributes:
        found = node.attribute("scales")
        return found if isinstance(found, tuple | list) else None
    place = node.version.input_named("scales")
    return node.constant(place[0]) if place else None


def _times(dim: int | None, scale: Any) -> int | None:
    """Rounded down, if single and double precision agree on it."""
    if dim is None or not isinstance(scale, int | float) or not 0 < dim * scale < 2**31:
        return None
    exact = dim * scale
    (rounded,) = struct.unpack("<f", struct.pack("<f", exact))
    return math.floor(exact) if math.floor(exact) == math.floor(rounded) else None
