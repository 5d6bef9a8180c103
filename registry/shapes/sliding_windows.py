"""Output shapes of convolutions and pooling, which slide a window over the spatial dimensions."""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.model.types import Shape
from opshift.registry.shapes.dims import dim_at, of_rank, plus, product, unknown
from opshift.registry.shapes.rule_table import Shapes, data_rule, rule
from opshift.registry.shapes.shape_context import ShapeContext
from opshift.registry.shapes.sizes import ceil_quotient, computed_size, floor_quotient, is_symbolic


@rule("convolution", keeps_rank=True)
def convolution(node: ShapeContext) -> Shapes:
    """Infer the output of a convolution with the weights as second input."""
    return [_convolved_shape(node, node.shape(0), node.shape(1))]


@rule("quantized_convolution", keeps_rank=True)
def quantized_convolution(node: ShapeContext) -> Shapes:
    """Infer the output with the weights as input 3: input 0 has a scale and a zero point, inputs 1 and 2."""
    return [_convolved_shape(node, node.shape(0), node.shape(3))]


@rule("convolution_in_layout", keeps_rank=True)
def convolution_in_layout(node: ShapeContext) -> Shapes:
    """Infer the output with channels last, except for quantized convolutions with `channels_last=0`."""
    is_quantized = "channels_last" in node.version.attributes
    data, weights = node.shape(0), node.shape(3 if is_quantized else 1)
    if is_quantized and not node.integer("channels_last", 0):
        return [_convolved_shape(node, data, weights)]
    moved = _convolved_shape(node, data and (data[0], data[-1], *data[1:-1]), weights)
    return [moved and (moved[0], *moved[2:], moved[1])]


@rule("conv_transpose", keeps_rank=True)
def conv_transpose(node: ShapeContext) -> Shapes:
    """Infer the output of a transposed convolution.

    Dimension 1 of the weights has the channels of one group. `output_shape` overrides the computed sizes.
    """
    data, weights = node.shape(0), node.shape(1)
    rank = _rank(node, data, weights)
    if rank is None:
        return [None]
    channels = product((dim_at(weights, 1), node.integer("group", 1)))
    spatial_shape = _transposed_spatial_shape(node, data or unknown(rank), weights or unknown(rank))
    return [(dim_at(data, 0), channels, *spatial_shape)]


@rule("causal_convolution", keeps_rank=True)
def causal_convolution(node: ShapeContext) -> Shapes:
    """Infer the input's shape, and a state with the positions before the input that the kernel reads.

    With several spatial dimensions or `state_window`, the state has more dimensions and is not inferred.
    """
    data = node.shape(0)
    if node.integer("ndim", 1) != 1 or node.integer("state_window", 0):
        return [data, None]
    batch, *sizes = of_rank(data, 3)
    kernel, dilation = of_rank(node.shape(1), 3)[2], node.integer("dilation", 1)
    reach = (kernel - 1) * dilation if kernel and dilation else None
    state = (reach, sizes[1]) if node.integer("channels_last", 0) else (sizes[0], reach)
    return [data or unknown(3), (batch, *state)]


@rule("pool", keeps_rank=True)
def pool(node: ShapeContext) -> Shapes:
    """Infer one element per position of the window; all outputs have the same shape."""
    data, windows = _pooled(node)
    if data is not None and windows is not None:
        data = (*data[:2], *_window_counts(node, data[2:], windows))
    return [data] * node.output_count


@data_rule("global_pool", keeps_rank=True)
def global_pool(node: ShapeContext, data: Shape) -> Shapes:
    """Replace the spatial dimensions by 1."""
    return [(*data[:2], *(1 for _ in data[2:])) if len(data) >= 2 else None]


@rule("max_unpool")
def max_unpool(node: ShapeContext) -> Shapes:
    """Infer the shape in the third input, `output_shape`, or compute it from the window."""
    data, windows = _pooled(node)
    if data is None or windows is None:
        return [data]
    if node.has_input(2):
        return [of_rank(node.constant_integers(2), len(data))]
    return [(*data[:2], *_transposed_sizes(node, data[2:], windows, (0,) * len(windows)))]


@rule("max_roi_pool")
def max_roi_pool(node: ShapeContext) -> Shapes:
    """Infer one image per region, of the size `pooled_shape`."""
    return [(*_region_batch_and_channels(node), *of_rank(node.integers("pooled_shape"), 2))]


@rule("roi_align")
def roi_align(node: ShapeContext) -> Shapes:
    """Infer one image per region, of the size `output_height` by `output_width`."""
    return [(*_region_batch_and_channels(node), node.integer("output_height"), node.integer("output_width"))]


class _Window(NamedTuple):
    """A node's window along one spatial dimension; an unknown or invalid field is `None`."""

    kernel: int | None
    """Extent of the kernel, including dilation."""
    stride: int | None
    pads: int | None
    """Sum of the padding at both ends."""
    after: int | None
    """Padding at the end."""


def _read_windows(node: ShapeContext, kernel: Shape | None) -> list[_Window] | None:
    """Return one window per spatial dimension, or `None`; `kernel_shape` overrides the sizes in `kernel`."""
    sizes = node.integers("kernel_shape") or kernel
    if sizes is None:
        return None
    rank = len(sizes)
    strides = _list_attribute(node, "strides", rank, 1)
    dilations = _list_attribute(node, "dilations", rank, 1)
    pads = _list_attribute(node, "pads", 2 * rank, 0)
    extents = (
        None if size is None or dilation is None else (size - 1) * dilation + 1
        for size, dilation in zip(sizes, dilations, strict=True)
    )
    both = map(plus, pads[:rank], pads[rank:])
    return [_Window(*each) for each in zip(extents, strides, both, pads[rank:], strict=True)]


def _list_attribute(node: ShapeContext, name: str, count: int, default: int) -> Shape:
    return (default,) * count if node.attribute(name) is None else of_rank(node.integers(name), count)


def _window_counts(node: ShapeContext, sizes: Shape, windows: Sequence[_Window]) -> Shape:
    """Return the number of positions of the window along each dimension."""
    return tuple(_window_count(node, size, window) for size, window in zip(sizes, windows, strict=True))


def _window_count(node: ShapeContext, size: int | None, window: _Window) -> int | None:
    """Return the number of positions of the window.

    With `ceil_mode`, a last window that starts in the padding at the end makes the result unknown, because
    operator versions differ on whether this window counts.
    """
    if size is None or window.stride is None or window.stride < 1:
        return None
    padding = node.string("auto_pad") or "NOTSET"
    if padding in ("SAME_UPPER", "SAME_LOWER"):
        return ceil_quotient(size, window.stride)
    pads, after = (0, 0) if padding == "VALID" else (window.pads, window.after)
    if window.kernel is None or pads is None or after is None or padding not in ("VALID", "NOTSET"):
        return None
    span = size + pads - window.kernel
    floor_count = floor_quotient(span, window.stride) + 1
    ceil_count = ceil_quotient(span, window.stride) + 1
    if floor_count == ceil_count or not node.integer("ceil_mode", 0):
        return floor_count
    if after + window.stride <= window.kernel:
        return ceil_count  # for every size, the last window starts before the padding at the end
    if is_symbolic(span):
        return computed_size(f"{node.version.id} with ceil_mode", size, pads, *window)
    begins_in_data = (ceil_count - 1) * window.stride < size + pads - after
    return ceil_count if begins_in_data else None


def _transposed_sizes(node: ShapeContext, sizes: Shape, windows: Sequence[_Window], extra: Shape) -> Shape:
    """Return the sizes on which the windows have `sizes` positions, plus `extra` (`output_padding`)."""
    rows = zip(sizes, windows, extra, strict=True)
    return tuple(_transposed_size(node, size, window, added) for size, window, added in rows)


def _transposed_size(node: ShapeContext, size: int | None, window: _Window, extra: int | None) -> int | None:
    padding = node.string("auto_pad") or "NOTSET"
    pads = 0 if padding == "VALID" else window.pads
    if padding not in ("VALID", "NOTSET") or size is None or window.stride is None or pads is None:
        return None
    return plus((size - 1) * window.stride, window.kernel, extra, -pads)


def _convolved_shape(node: ShapeContext, data: Shape | None, weights: Shape | None) -> Shape | None:
    rank = _rank(node, data, weights)
    if rank is None:
        return None
    windows = _read_windows(node, weights[2:] if weights else None)
    if data is None or windows is None:
        return (dim_at(data, 0), dim_at(weights, 0), *unknown(rank - 2))
    return (data[0], dim_at(weights, 0), *_window_counts(node, data[2:], windows))


def _transposed_spatial_shape(node: ShapeContext, data: Shape, weights: Shape) -> Shape:
    rank = len(data) - 2
    declared = node.integers("output_shape")
    if declared:
        return of_rank(declared, rank)
    extra = node.integers("output_padding") or (0,) * rank
    windows = _read_windows(node, weights[2:])
    if windows is None or len(extra) != rank:
        return unknown(rank)
    return _transposed_sizes(node, data[2:], windows, extra)


def _rank(node: ShapeContext, data: Shape | None, weights: Shape | None) -> int | None:
    """Return the rank of data, weights and `kernel_shape`; `None` if unknown, below 2 or contradictory."""
    kernel = node.list_length("kernel_shape")
    ranks = {len(shape) for shape in (data, weights) if shape is not None}
    if kernel:
        ranks.add(kernel + 2)
    return ranks.pop() if len(ranks) == 1 and min(ranks) >= 2 else None


def _pooled(node: ShapeContext) -> tuple[Shape | None, list[_Window] | None]:
    """Return the input's shape and windows; `None` if unknown, or if their ranks contradict each other.

    Without windows, the spatial dimensions are unknown.
    """
    data, kernel = node.shape(0), node.list_length("kernel_shape")
    if data is None:
        return (unknown(kernel + 2) if kernel else None), None
    windows = _read_windows(node, None)
    if len(data) < 2 or (windows is not None and len(data) != len(windows) + 2):
        return None, None
    return (data if windows is not None else (*data[:2], *unknown(len(data) - 2))), windows


def _region_batch_and_channels(node: ShapeContext) -> Shape:
    return (dim_at(node.shape(1), 0), of_rank(node.shape(0), 4)[1])
