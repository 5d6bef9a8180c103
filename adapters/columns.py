"""Col2Im (introduced in opset 18): for each pixel, gather and add the column elements that fall on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from opshift.adapters.columns_computed import add_element_by_element
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

MOST_ELEMENTS = 1 << 22
"""Maximum total length of the index lists, which become constants of the converted model."""


@adapter("Col2Im", 18, 17)
def pixels_gather_their_columns(node: Node, out: Rewriter) -> None:
    """Gather the elements of each pixel by constant indices and add them; in a loop if sizes are unknown."""
    columns = node.inputs[0]
    if out.element_type(columns) in ("bool", "string"):
        raise CannotConvert(
            "the columns are bool or string, which no operator can add", remedy="cast them to uint8 first"
        )
    image, block_shape = _image_shape(node, out), out.constant_value(node.inputs[2])
    if image is None or block_shape is None:
        add_element_by_element(node, out)
        return
    block = block_shape.values
    lists, padding_index = _index_lists(image, block, node)
    if len(lists) * len(lists[0]) > MOST_ELEMENTS:
        raise CannotConvert(f"the constant index lists would have more than {MOST_ELEMENTS} elements")
    block_size = 1
    for size in block:
        block_size *= size
    blocks = padding_index // block_size
    flattened = out.emit("Reshape", [columns, out.constant([0, -1, block_size * blocks], "int64")])
    # Every index list has an element for each pixel, so lists of the later terms point to an appended zero.
    if any(padding_index in indices for indices in lists):
        flattened = out.emit("Pad", [flattened, out.constant([0, 0, 0, 0, 0, 1], "int64")])
    total = ""
    for indices in lists:
        part = out.emit("Gather", [flattened, out.constant(indices, "int64")], axis=2)
        total = out.emit("Add", [total, part]) if total else part
    shape = out.constant([0, 0, *image], "int64")
    out.emit("Reshape", [total, shape], node.outputs)


def _image_shape(node: Node, out: Rewriter) -> tuple[int, ...] | None:
    known = out.constant_value(node.inputs[1])
    if known is not None:
        return tuple(known.values)
    shape = out.shape(node.output(0))
    declared = tuple(dim for dim in shape[2:] if dim is not None) if shape else ()
    return declared if shape is not None and len(declared) == len(shape) - 2 else None


def _index_lists(image: Sequence[int], block: Sequence[int], node: Node) -> tuple[list[list[int]], int]:
    """Return the indices of the elements on each pixel, and the index that means no element.

    Each list has one index per pixel; there are as many lists as the largest number of elements on a pixel.
    """
    axis_elements = [_axis_elements(axis, image, block, node) for axis in range(len(image))]
    block_counts = [len(positions) // extent for positions, extent in zip(axis_elements, block, strict=True)]
    elements_of_pixel: dict[int, list[int]] = {}
    for positions in product(*axis_elements):
        offsets, blocks, pixels = zip(*positions, strict=True)
        if all(0 <= pixel < size for pixel, size in zip(pixels, image, strict=True)):
            element = _flat_index(offsets, block) * _element_count(block_counts) + _flat_index(
                blocks, block_counts
            )
            elements_of_pixel.setdefault(_flat_index(pixels, image), []).append(element)
    padding_index = _element_count(block) * _element_count(block_counts)
    list_count = max(map(len, elements_of_pixel.values()), default=1)
    by_pixel = [elements_of_pixel.get(pixel, []) for pixel in range(_element_count(image))]
    return [
        [indices[term] if term < len(indices) else padding_index for indices in by_pixel]
        for term in range(list_count)
    ], padding_index


def _axis_elements(
    axis: int, image: Sequence[int], block: Sequence[int], node: Node
) -> list[tuple[int, int, int]]:
    """Return, along an axis, (offset in the block, block, pixel) for every element of every block."""
    rank = len(image)
    dilation = (node.attribute("dilations") or (1,) * rank)[axis]
    stride = (node.attribute("strides") or (1,) * rank)[axis]
    pads = node.attribute("pads") or (0,) * (2 * rank)
    extent = (block[axis] - 1) * dilation + 1
    block_count = (image[axis] + pads[axis] + pads[rank + axis] - extent) // stride + 1
    pairs = product(range(block[axis]), range(block_count))
    return [(offset, index, index * stride + offset * dilation - pads[axis]) for offset, index in pairs]


def _flat_index(position: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the row-major index of a position."""
    flat = 0
    for index, size in zip(position, sizes, strict=True):
        flat = flat * size + index
    return flat


def _element_count(sizes: Sequence[int]) -> int:
    return _flat_index([size - 1 for size in sizes], sizes) + 1
