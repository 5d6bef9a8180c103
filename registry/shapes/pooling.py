"""Pooling: batch and channels of the input, spatial dimensions of the window."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import unknown
from opshift.registry.shapes.reading import constant_integers, input_shape, integer, integers, size_of
from opshift.registry.shapes.table import rule
from opshift.registry.shapes.window import Window, slid, spread, windows


@rule("pool", keeps_rank=True)
def pool(node: ShapeContext) -> Sequence[Shape | None]:
    """Every output, be it of values or of indices, has a place for each position of the window."""
    data, found = _pooled(node)
    if data is None or found is None:
        return [data] * node.output_count
    places = (slid(node, size, window) for size, window in zip(data[2:], found, strict=True))
    return [(*data[:2], *places)] * node.output_count


@rule("global_pool", keeps_rank=True)
def global_pool(node: ShapeContext) -> Sequence[Shape | None]:
    """The spatial dimensions become 1."""
    data = input_shape(node, 0)
    if data is None or len(data) < 2:
        return [None]
    return [(*data[:2], *(1 for _ in data[2:]))]


@rule("max_unpool")
def max_unpool(node: ShapeContext) -> Sequence[Shape | None]:
    """The whole shape is an input, or follows from the window."""
    data, found = _pooled(node)
    if data is None or found is None:
        return [data]
    if node.input_count > 2:
        stated = constant_integers(node, 2)
        return [stated if stated is not None and len(stated) == len(data) else unknown(len(data))]
    places = (spread(node, size, window, 0) for size, window in zip(data[2:], found, strict=True))
    return [(*data[:2], *places)]


@rule("max_roi_pool")
def max_roi_pool(node: ShapeContext) -> Sequence[Shape | None]:
    """One image a region, of the stated size."""
    size = integers(node, "pooled_shape") or ()
    height, width = size if len(size) == 2 else (None, None)
    return [(*_regions(node), height, width)]


@rule("roi_align")
def roi_align(node: ShapeContext) -> Sequence[Shape | None]:
    """One image a region, of the stated size."""
    return [(*_regions(node), integer(node, "output_height"), integer(node, "output_width"))]


def _pooled(node: ShapeContext) -> tuple[Shape | None, list[Window] | None]:
    """The input's shape and its windows; without windows, only the rank and what it keeps."""
    data, kernel = input_shape(node, 0), size_of(node.attribute("kernel_shape"))
    if data is None:
        return (unknown(kernel + 2) if kernel else None), None
    found = windows(node, None)
    if len(data) < 2 or (found is not None and len(data) != len(found) + 2):
        return None, None
    return (data if found is not None else (*data[:2], *unknown(len(data) - 2))), found


def _regions(node: ShapeContext) -> Shape:
    data, regions = input_shape(node, 0), input_shape(node, 1)
    channels = data[1] if data is not None and len(data) == 4 else None
    return (regions[0] if regions else None, channels)
