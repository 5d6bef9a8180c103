"""Shapes of pooling: batch and channels of the input, spatial dimensions of the window."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.dims import unknown
from opshift.registry.shapes.node_reading import (
    constant_integers,
    input_shape,
    integer_attribute,
    integers_attribute,
    list_attribute_length,
)
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule
from opshift.registry.shapes.sliding_window import Window, read_windows, transposed_size, window_count


@rule("pool", keeps_rank=True)
def pool(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the same shape for values and indices: one element per position of the window."""
    data, node_windows = _pooled(node)
    if data is None or node_windows is None:
        return [data] * node.output_count
    sizes = (window_count(node, size, window) for size, window in zip(data[2:], node_windows, strict=True))
    return [(*data[:2], *sizes)] * node.output_count


@rule("global_pool", keeps_rank=True)
def global_pool(node: ShapeContext) -> Sequence[Shape | None]:
    """Replace the spatial dimensions by 1."""
    data = input_shape(node, 0)
    if data is None or len(data) < 2:
        return [None]
    return [(*data[:2], *(1 for _ in data[2:]))]


@rule("max_unpool")
def max_unpool(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the shape from the third input, or from the window."""
    data, node_windows = _pooled(node)
    if data is None or node_windows is None:
        return [data]
    if node.input_count > 2:
        declared = constant_integers(node, 2)
        return [declared if declared is not None and len(declared) == len(data) else unknown(len(data))]
    sizes = (
        transposed_size(node, size, window, 0) for size, window in zip(data[2:], node_windows, strict=True)
    )
    return [(*data[:2], *sizes)]


@rule("max_roi_pool")
def max_roi_pool(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer one image per region, with the size in `pooled_shape`."""
    size = integers_attribute(node, "pooled_shape") or ()
    height, width = size if len(size) == 2 else (None, None)
    return [(*_regions(node), height, width)]


@rule("roi_align")
def roi_align(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer one image per region, with the size in the attributes."""
    return [
        (*_regions(node), integer_attribute(node, "output_height"), integer_attribute(node, "output_width"))
    ]


def _pooled(node: ShapeContext) -> tuple[Shape | None, list[Window] | None]:
    """Return the input's shape and windows; without windows, spatial dimensions are unknown."""
    data, kernel = input_shape(node, 0), list_attribute_length(node.attribute("kernel_shape"))
    if data is None:
        return (unknown(kernel + 2) if kernel else None), None
    node_windows = read_windows(node, None)
    if len(data) < 2 or (node_windows is not None and len(data) != len(node_windows) + 2):
        return None, None
    return (data if node_windows is not None else (*data[:2], *unknown(len(data) - 2))), node_windows


def _regions(node: ShapeContext) -> Shape:
    data, regions = input_shape(node, 0), input_shape(node, 1)
    channels = data[1] if data is not None and len(data) == 4 else None
    return (regions[0] if regions else None, channels)
