"""Rewrite Col2Im (introduced in opset 18): gather and add the column elements that fall on each pixel."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.emit.expression import Expression, fold
from opshift.adapters.emit.shapes import computed_dimension, index_range, reshape
from opshift.adapters.emit.subgraphs import LoopBuilder

OPSET = 13
"""Opset of the nodes emitted for computed sizes, unless `emit` gets another opset."""

ZERO = Tensor("int64", (1,), (0,))


class Col2ImAxis(NamedTuple):
    """Geometry along one axis; `elements` of a block and `blocks` are counts of shape (1,)."""

    stride: int
    dilation: int
    pad: int
    elements: Expression
    blocks: Expression
    pixels: str
    """Positions of all pixels along the axis, a 1-D int64 tensor."""


@adapter("Col2Im", 18, 17)
def expand_col2im(node: Node, out: Rewriter) -> None:
    """Gather the elements of each pixel by constant indices, and add them; use a Loop for unknown sizes."""
    columns = node.inputs[0]
    if out.element_type(columns) in ("bool", "string"):
        reason = "the columns are bool or string, which no operator can add"
        raise CannotConvert(reason, "operator.no-equivalent", remedy="cast the columns to uint8 first")
    image, block_shape = _image_shape(node, out), out.constant_value(node.inputs[2])
    if image is None or block_shape is None:
        _add_elements_in_loop(node, out)
        return
    block = block_shape.values
    block_counts = [_block_count(axis, image, block, node) for axis in range(len(image))]
    # Refuse large sizes: the lists of indices have an entry for each element of each block, and each pixel.
    out.require_elements(*block, *block_counts)
    out.require_elements(*image)
    lists, padding_index = _index_lists(image, block, block_counts, node)
    out.require_elements(len(lists), len(lists[0]))
    channels = out.known_dimension(columns, 1)
    if channels is not None:
        flattened = reshape(columns, (0, channels // prod(block), padding_index), out)
    else:
        # Compute two sizes of the new shape: onnxruntime replaces a single computed size by -1, which Reshape
        # cannot infer for an empty tensor.
        sizes = out.emit("Gather", [out.emit("Shape", [columns]), out.int64([0, 1])], axis=0)
        flattened = reshape(
            columns, (out.emit("Div", [sizes, out.int64([1, prod(block)])]), padding_index), out
        )
    # Every list has an index for each pixel; a pixel with fewer elements gets the index of an appended zero.
    if any(padding_index in indices for indices in lists):
        flattened = out.emit("Pad", [flattened, out.int64([0, 0, 0, 0, 0, 1])])
    terms = (out.emit("Gather", [flattened, out.int64(indices)], axis=2) for indices in lists)
    reshape(fold("Add", terms, out), (0, 0, *image), out, node.outputs)


def _image_shape(node: Node, out: Rewriter) -> tuple[int, ...] | None:
    known = out.constant_value(node.inputs[1])
    if known is not None:
        return tuple(known.values)
    shape = out.shape(node.output(0))
    declared = tuple(dim for dim in shape[2:] if dim is not None) if shape else ()
    return declared if shape is not None and len(declared) == len(shape) - 2 else None


def _add_elements_in_loop(node: Node, out: Rewriter) -> None:
    """Emit a Loop over the elements of a block: an iteration adds an element of every block to the pixels."""
    columns, image = node.inputs[:2]
    enclosing, out = out, out.for_opset(OPSET)
    axes = _col2im_axes(node, out)
    elements = _product_of_sizes([axis.elements.name for axis in axes], out)
    blocks = _product_of_sizes([axis.blocks.name for axis in axes], out)
    padding_index = elements * blocks
    flattened = _separate_channels(columns, elements.name, padding_index.name, out)
    # Append a zero, which is gathered for pixels on which the current element does not fall.
    flattened = out.emit("Pad", [flattened, out.int64([0, 0, 0, 0, 0, 1])])
    zero_indices = out.emit("ConstantOfShape", [image], opset=9, value=ZERO)
    padding_indices = out.emit("Add", [zero_indices, padding_index.name])
    body = LoopBuilder(enclosing)
    element_type = out.element_type(columns)
    total = body.input(element_type)
    indices = _element_indices(axes, blocks, padding_index, body)
    term = body.emit("Gather", [flattened, indices], opset=OPSET, axis=2)
    # Opset 14 is the first in which Add supports integers of 8 and 16 bits.
    body.output(body.emit("Add", [total, term], opset=14), element_type)
    zeros = out.emit("Gather", [flattened, padding_indices], axis=2)
    body.emit_loop(elements.name, [zeros], out, node.outputs)


def _separate_channels(columns: str, elements: str, positions: str, out: Rewriter) -> str:
    """Reshape columns to (batch, channels, elements of all blocks).

    `elements` is the number of elements of a block, `positions` the number of elements of all blocks. The
    number of channels is computed: Reshape cannot infer a size for an empty batch.
    """
    rows = computed_dimension(columns, 1, out)
    channels = out.emit("Div", [rows, elements])
    return out.emit("Reshape", [columns, out.emit("Concat", [out.int64([0]), channels, positions], axis=0)])


def _col2im_axes(node: Node, out: Rewriter) -> list[Col2ImAxis]:
    axes, rank = [], _spatial_rank(node, out)
    pads = node.attribute("pads") or (0,) * (2 * rank)
    for axis in range(rank):
        stride, dilation = ((node.attribute(name) or (1,) * rank)[axis] for name in ("strides", "dilations"))
        size, elements = (
            _index_vector(out.emit("Gather", [sizes, out.int64([axis])], axis=0), out)
            for sizes in node.inputs[1:]
        )
        extent = (elements - 1) * dilation
        padded_size = size + (pads[axis] + pads[rank + axis] - 1)
        blocks = (padded_size - extent) / stride + 1
        axes.append(Col2ImAxis(stride, dilation, pads[axis], elements, blocks, index_range(size.name, out)))
    return axes


def _index_vector(name: str, out: Rewriter) -> Expression:
    return Expression(name, "int64", out, rank=1)


def _product_of_sizes(sizes: list[str], out: Rewriter) -> Expression:
    return _index_vector(fold("Mul", [out.int64([1]), *sizes], out), out)


def _spatial_rank(node: Node, out: Rewriter) -> int:
    """Return the number of spatial dimensions, from the lengths of the image and block shapes."""
    for name in node.inputs[1:]:
        length = out.known_dimension(name, 0)
        if length is not None:
            return out.require_rank(length)
    reason = "the number of dimensions of the image is unknown"
    raise UnknownShape(reason, *node.inputs[1:3])


def _element_indices(
    axes: list[Col2ImAxis], blocks: Expression, padding_index: Expression, body: LoopBuilder
) -> str:
    """Return, for each pixel, the flat index of the current element, or the index of the appended zero."""
    out = body.for_opset(OPSET)
    remaining = _index_vector(reshape(body.iteration, (1,), body), out)
    index, is_present = remaining * blocks, ""
    trailing_axes = [axes[dimension + 1 :] for dimension in range(len(axes))]
    weights = [_product_of_sizes([each.blocks.name for each in trailing], out) for trailing in trailing_axes]
    for axis, trailing, weight in reversed(list(zip(axes, trailing_axes, weights, strict=True))):
        quotient = remaining / axis.elements
        element = remaining - quotient * axis.elements
        remaining = quotient
        block, is_hit = _block_on_pixels(axis, element, out)
        shape = (-1, *[1] * len(trailing))
        index = index + _index_vector(reshape((block * weight).name, shape, body), out)
        hit = reshape(is_hit.name, shape, body)
        is_present = out.emit("And", [is_present, hit]) if is_present else hit
    return out.emit("Where", [is_present, index.name, padding_index.name])


def _block_on_pixels(axis: Col2ImAxis, element: Expression, out: Rewriter) -> tuple[Expression, Expression]:
    """Return for each pixel of an axis the block whose `element` is on the pixel, and whether it exists."""
    distance = _index_vector(axis.pixels, out) + (element * -axis.dilation + axis.pad)
    block = distance / axis.stride
    is_whole = (block * axis.stride).apply("Equal", distance)
    is_after = distance.apply("Less", 0).apply("Not")
    is_inside = is_after.apply("And", block.apply("Less", axis.blocks))
    return block, is_whole.apply("And", is_inside)


def _index_lists(
    image: Sequence[int], block: Sequence[int], block_counts: Sequence[int], node: Node
) -> tuple[list[list[int]], int]:
    """Return the indices of the elements on each pixel, and the index of the appended zero.

    Each list has one index per pixel; there are as many lists as the largest number of elements on a pixel.
    """
    pairs = [(0, 0)]
    for axis in range(len(image)):
        added = _axis_elements(axis, image, block, block_counts, node)
        pairs = [(element + index, pixel + position) for element, pixel in pairs for index, position in added]
    elements_of_pixel: dict[int, list[int]] = {}
    for element, pixel in pairs:
        elements_of_pixel.setdefault(pixel, []).append(element)
    padding_index = prod(block) * prod(block_counts)
    list_count = max(map(len, elements_of_pixel.values()), default=1)
    by_pixel = [elements_of_pixel.get(pixel, []) for pixel in range(prod(image))]
    return [
        [indices[term] if term < len(indices) else padding_index for indices in by_pixel]
        for term in range(list_count)
    ], padding_index


def _axis_elements(
    axis: int, image: Sequence[int], block: Sequence[int], block_counts: Sequence[int], node: Node
) -> list[tuple[int, int]]:
    """Return pairs of the terms that an axis adds to the flat index of an element, and to that of its pixel.

    Elements that fall outside of the image are omitted.
    """
    stride, dilation, before, _ = _axis_geometry(axis, len(image), node)
    per_block = prod(block_counts[axis + 1 :])
    per_offset = prod(block[axis + 1 :]) * prod(block_counts)
    per_pixel = prod(image[axis + 1 :])
    return [
        (offset * per_offset + index * per_block, pixel * per_pixel)
        for offset, index in product(range(block[axis]), range(block_counts[axis]))
        if 0 <= (pixel := index * stride + offset * dilation - before) < image[axis]
    ]


def _block_count(axis: int, image: Sequence[int], block: Sequence[int], node: Node) -> int:
    stride, dilation, before, after = _axis_geometry(axis, len(image), node)
    extent = (block[axis] - 1) * dilation + 1
    return max((image[axis] + before + after - extent) // stride + 1, 0)


def _axis_geometry(axis: int, rank: int, node: Node) -> tuple[int, int, int, int]:
    """Return stride, dilation and both pads of an axis."""
    stride, dilation = ((node.attribute(name) or (1,) * rank)[axis] for name in ("strides", "dilations"))
    pads = node.attribute("pads") or (0,) * (2 * rank)
    return stride, dilation, pads[axis], pads[rank + axis]
