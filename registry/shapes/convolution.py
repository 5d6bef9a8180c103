"""Shapes of convolutions: batch of the data, channels of the weights, spatial dimensions of the window."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.dims import product, unknown
from opshift.registry.shapes.node_reading import (
    input_shape,
    integer_attribute,
    integers_attribute,
    list_attribute_length,
)
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule
from opshift.registry.shapes.sliding_window import read_windows, transposed_size, window_count


@rule("convolution", keeps_rank=True)
def convolution(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the output of a convolution with the weights as second input."""
    return [_convolved(node, input_shape(node, 0), input_shape(node, 1))]


@rule("quantized_convolution", keeps_rank=True)
def quantized_convolution(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the output with the weights as input 3, because each tensor has a scale and a zero point."""
    return [_convolved(node, input_shape(node, 0), input_shape(node, 3))]


@rule("conv_transpose", keeps_rank=True)
def conv_transpose(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the output of a transposed convolution.

    The weights have the channels of one group. `output_shape` overrides the computed spatial dimensions.
    """
    data, weights = input_shape(node, 0), input_shape(node, 1)
    rank = _rank(node, data, weights)
    if rank is None:
        return [None]
    batch = data[0] if data else None
    channels = product((weights[1] if weights else None, integer_attribute(node, "group", 1)))
    return [
        (batch, channels, *_transposed_spatial_shape(node, data or unknown(rank), weights or unknown(rank)))
    ]


@rule("causal_convolution", keeps_rank=True)
def causal_convolution(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer an output with the input's shape, and a state with one position less than the kernel."""
    data, weights = input_shape(node, 0), input_shape(node, 1)
    batch, channels = data[:2] if data is not None and len(data) == 3 else (None, None)
    kernel = weights[2] if weights is not None and len(weights) == 3 else None
    return [data or unknown(3), (batch, channels, kernel - 1 if kernel else None)]


def _convolved(node: ShapeContext, data: Shape | None, weights: Shape | None) -> Shape | None:
    rank = _rank(node, data, weights)
    if rank is None:
        return None
    batch = data[0] if data else None
    channels = weights[0] if weights else None
    node_windows = read_windows(node, weights[2:] if weights else None)
    if data is None or node_windows is None:
        return (batch, channels, *unknown(rank - 2))
    return (
        batch,
        channels,
        *(window_count(node, size, window) for size, window in zip(data[2:], node_windows, strict=True)),
    )


def _transposed_spatial_shape(node: ShapeContext, data: Shape, weights: Shape) -> Shape:
    spatial = len(data) - 2
    declared = integers_attribute(node, "output_shape")
    if declared:
        return declared if len(declared) == spatial else unknown(spatial)
    extra = integers_attribute(node, "output_padding") or (0,) * spatial
    node_windows = read_windows(node, weights[2:])
    if node_windows is None or len(extra) != spatial:
        return unknown(spatial)
    return tuple(
        transposed_size(node, size, window, padding)
        for size, window, padding in zip(data[2:], node_windows, extra, strict=True)
    )


def _rank(node: ShapeContext, data: Shape | None, weights: Shape | None) -> int | None:
    """Return the rank if the data, the weights and `kernel_shape` do not contradict each other."""
    kernel = list_attribute_length(node.attribute("kernel_shape"))
    ranks = {len(shape) for shape in (data, weights) if shape is not None} | (
        {kernel + 2} if kernel else set()
    )
    rank = ranks.pop() if len(ranks) == 1 else None
    return rank if rank is not None and rank >= 2 else None
