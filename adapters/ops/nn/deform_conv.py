"""Rewrite DeformConv (introduced in opset 19): gather pixels at computed offsets; multiply by the kernel."""

from math import prod
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.pixel_table import (
    OPSET,
    PixelTaps,
    emit_pixel_table,
    linear_taps,
    pixel_indices,
    replace_infinite,
    require_shape,
    weighted_sum,
)
from opshift.adapters.emit.shapes import reshape

SUPPORTED_TYPES = ("float", "double")
"""Element types of data for which the bilinear weights are computed; other types are refused."""


class DeformConvShapes(NamedTuple):
    """Sizes of the inputs and the output of a DeformConv node, and numbers of groups."""

    images: int
    channels: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    filters: int
    output_sizes: tuple[int, ...]
    """Spatial dimensions of the output."""
    offset_groups: int
    """Number of channel groups with separate offsets (`offset_group`)."""
    group: int

    @property
    def kernel_elements(self) -> int:
        """Number of spatial elements of the kernel."""
        return prod(self.kernel)


OUTSIDE = -(2.0**31)
"""Offset outside of every image, to replace infinite and NaN offsets, for which onnxruntime reads zeros."""


@adapter("DeformConv", 19, 18)
def expand_deform_conv(node: Node, out: Rewriter) -> None:
    """Gather bilinearly interpolated pixels, zero beyond the edge, and multiply by the kernel."""
    out = out.for_opset(OPSET)
    data, weight = node.inputs[:2]
    element_type = out.element_type(data)
    if element_type not in SUPPORTED_TYPES:
        reason = f"the data is {element_type}, but only float and double can be interpolated"
        raise CannotConvert(reason, "type.unsupported", subject=element_type)
    shapes = _shapes_of_node(node, out)
    result = shapes.images, shapes.filters, *shapes.output_sizes
    if 0 in result:  # Reshape infers no size of empty data
        out.emit("Identity", [out.tensor(Tensor(element_type, result, ()))], node.outputs)
        return
    images = shapes.images * shapes.offset_groups
    if shapes.offset_groups > 1:
        data = reshape(data, (images, shapes.channels // shapes.offset_groups, *shapes.sizes), out)
    table = emit_pixel_table(data, images, shapes.sizes, out, border=True)
    rank = len(shapes.sizes)
    offsets = replace_infinite(node.inputs[2], OUTSIDE, element_type, out)
    coordinates = [
        _sample_coordinates(node, offsets, shapes, axis, element_type, out) for axis in range(rank)
    ]
    pairs = zip(coordinates, shapes.sizes, strict=True)
    axes = [_linear_taps_of(coordinate, size, element_type, out) for coordinate, size in pairs]
    rows = weighted_sum(table, axes, out)
    if node.input(4):
        rows = out.emit("Mul", [rows, reshape(node.input(4), (images, -1, 1), out)])
    _convolve_gathered(node, out.emit("Transpose", [rows], perm=[0, 2, 1]), weight, shapes, out)


def _shapes_of_node(node: Node, out: Rewriter) -> DeformConvShapes:
    dims, weight = require_shape(node.inputs[0], out), require_shape(node.inputs[1], out)
    offsets = require_shape(node.inputs[2], out)
    offset_group, group = node.attribute("offset_group", 1), node.attribute("group", 1)
    return DeformConvShapes(
        dims[0], dims[1], dims[2:], weight[2:], weight[0], offsets[2:], offset_group, group
    )


def _sample_coordinates(
    node: Node, offsets: str, shapes: DeformConvShapes, axis: int, element_type: str, out: Rewriter
) -> str:
    """Return the coordinate along an axis at which the data is read for each element of each window.

    The shape is (images * offset groups, kernel elements * windows).
    """
    rank, images = len(shapes.sizes), shapes.images * shapes.offset_groups
    kernel, windows = shapes.kernel, shapes.output_sizes
    grouped = reshape(offsets, (images, shapes.kernel_elements, rank, -1), out)
    along_axis = out.emit("Gather", [grouped, out.int64(axis)], axis=2)
    between = prod(kernel[axis + 1 :]) * prod(windows[:axis])
    parts = images, prod(kernel[:axis]), kernel[axis], between, windows[axis], prod(windows[axis + 1 :])
    regular = _regular_coordinates(node, shapes, axis, out)
    base = out.tensor(Tensor(element_type, (kernel[axis], 1, windows[axis], 1), regular))
    return reshape(out.emit("Add", [reshape(along_axis, parts, out), base]), (images, -1), out)


def _regular_coordinates(node: Node, shapes: DeformConvShapes, axis: int, out: Rewriter) -> tuple[float, ...]:
    """Return the coordinates along an axis before offsets are added, for each kernel element and window."""
    rank, kernel, windows = len(shapes.sizes), shapes.kernel[axis], shapes.output_sizes[axis]
    stride = (node.attribute("strides") or (1,) * rank)[axis]
    dilation = (node.attribute("dilations") or (1,) * rank)[axis]
    before = (node.attribute("pads") or (0,) * (2 * rank))[axis]
    out.require_elements(kernel, windows)
    return tuple(
        float(element * dilation - before + window * stride)
        for element in range(kernel)
        for window in range(windows)
    )


def _linear_taps_of(coordinate: str, size: int, element_type: str, out: Rewriter) -> PixelTaps:
    """Return the pixels before and after a coordinate, with their linear weights."""
    pixels, weights = linear_taps(Expression(coordinate, element_type, out), element_type, out)
    return PixelTaps(pixel_indices(pixels, float(size), out, has_zero_border=True), weights.name, 2)


def _convolve_gathered(
    node: Node, columns: str, weight: str, shapes: DeformConvShapes, out: Rewriter
) -> None:
    """Multiply the kernel by the gathered elements of each window, group by group."""
    terms = shapes.channels // shapes.group * shapes.kernel_elements
    windows = prod(shapes.output_sizes)
    grouped = reshape(columns, (shapes.images, shapes.group, terms, windows), out)
    kernel = reshape(weight, (shapes.group, shapes.filters // shapes.group, terms), out)
    total = out.emit("MatMul", [kernel, grouped])
    final = (shapes.images, shapes.filters, *shapes.output_sizes)
    image = reshape(total, final, out, 1 if node.input(3) else node.outputs)
    if node.input(3):
        bias = reshape(node.input(3), (-1, *[1] * len(shapes.output_sizes)), out)
        out.emit("Add", [image, bias], node.outputs)
