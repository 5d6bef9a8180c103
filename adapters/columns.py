"""Col2Im came with 18; before, every pixel gathers the elements of the columns that fall on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from opshift.adapters.columns_computed import add_element_by_element
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

MOST_ELEMENTS = 1 << 22
"""Of the index lists, which are constants of the converted model."""


@adapter("Col2Im", 18, 17)
def pixels_gather_their_columns(node: Node, out: Rewriter) -> None:
    """Which elements fall on which pixel depends on sizes alone; those that do are added."""
    columns = node.inputs[0]
    if out.element_type(columns) in ("bool", "string"):
        raise CannotConvert(
            "no operator adds up values that are no numbers", remedy="cast them to uint8 first"
        )
    image, extents = _image_shape(node, out), out.constant_value(node.inputs[2])
    if image is None or extents is None:
        add_element_by_element(node, out)
        return
    block = extents.values
    lists, missing = _lists(image, block, node)
    if len(lists) * len(lists[0]) > MOST_ELEMENTS:
        raise CannotConvert("the list of what falls on each pixel would be longer than the model bears")
    elements = 1
    for extent in block:
        elements *= extent
    blocks = missing // elements
    flat = out.emit("Reshape", [columns, out.constant([0, -1, elements * blocks], "int64")])
    if any(missing in each for each in lists):
        flat = out.emit("Pad", [flat, out.constant([0, 0, 0, 0, 0, 1], "int64")])
    total = ""
    for each in lists:
        part = out.emit("Gather", [flat, out.constant(each, "int64")], axis=2)
        total = out.emit("Add", [total, part]) if total else part
    shape = out.constant([0, 0, *image], "int64")
    out.emit("Reshape", [total, shape], node.outputs)


def _image_shape(node: Node, out: Rewriter) -> tuple[int, ...] | None:
    known = out.constant_value(node.inputs[1])
    if known is not None:
        return tuple(known.values)
    shape = out.shape(node.output(0))
    stated = tuple(dim for dim in shape[2:] if dim is not None) if shape else ()
    return stated if shape is not None and len(stated) == len(shape) - 2 else None


def _lists(image: Sequence[int], block: Sequence[int], node: Node) -> tuple[list[list[int]], int]:
    """For each pixel the elements on it, as lists of one element a pixel; and what stands for none."""
    along = [_places(axis, image, block, node) for axis in range(len(image))]
    counts = [len(places) // extent for places, extent in zip(along, block, strict=True)]
    found: dict[int, list[int]] = {}
    for places in product(*along):
        taps, blocks, pixels = zip(*places, strict=True)
        if all(0 <= pixel < size for pixel, size in zip(pixels, image, strict=True)):
            element = _flat(taps, block) * _size(counts) + _flat(blocks, counts)
            found.setdefault(_flat(pixels, image), []).append(element)
    missing = _size(block) * _size(counts)
    longest = max(map(len, found.values()), default=1)
    pixels_of = [found.get(pixel, []) for pixel in range(_size(image))]
    return [[each[n] if n < len(each) else missing for each in pixels_of] for n in range(longest)], missing


def _places(axis: int, image: Sequence[int], block: Sequence[int], node: Node) -> list[tuple[int, int, int]]:
    """Along an axis: an element of the block, which block, and the pixel that it falls on."""
    rank = len(image)
    dilation = (node.attribute("dilations") or (1,) * rank)[axis]
    stride = (node.attribute("strides") or (1,) * rank)[axis]
    pads = node.attribute("pads") or (0,) * (2 * rank)
    reach = (block[axis] - 1) * dilation + 1
    count = (image[axis] + pads[axis] + pads[rank + axis] - reach) // stride + 1
    steps = product(range(block[axis]), range(count))
    return [(tap, at, at * stride + tap * dilation - pads[axis]) for tap, at in steps]


def _flat(place: Sequence[int], sizes: Sequence[int]) -> int:
    """The position of a place in row-major order."""
    found = 0
    for index, size in zip(place, sizes, strict=True):
        found = found * size + index
    return found


def _size(sizes: Sequence[int]) -> int:
    return _flat([size - 1 for size in sizes], sizes) + 1
