"""Col2Im came with 18; before, every pixel gathers the elements of the columns that fall on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

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
    image = _image_shape(node, out)
    block = out.require_constant(node.inputs[2], "block_shape").values
    lists, missing = _lists(image, block, node)
    if len(lists) * len(lists[0]) > MOST_ELEMENTS:
        raise CannotConvert("the list of what falls on each pixel would be longer than the model bears")
    elements = 1
    for extent in block:
        elements *= extent
    blocks = missing // elements
    flat = out.emit("Reshape", [columns, out.constant([0, -1, elements * blocks], "int64")], opset=5)
    if any(missing in each for each in lists):
        flat = out.emit("Pad", [flat], opset=2, pads=[0, 0, 0, 0, 0, 1])
    total = ""
    for each in lists:
        part = out.emit("Gather", [flat, out.constant(each, "int64")], opset=7, axis=2)
        total = out.emit("Add", [total, part], opset=7) if total else part
    shape = out.constant([0, 0, *image], "int64")
    out.emit("Reshape", [total, shape], node.outputs, opset=5)


def _image_shape(node: Node, out: Rewriter) -> tuple[int, ...]:
    known = out.constant_value(node.inputs[1])
    if known is not None:
        return tuple(known.values)
    shape = out.shape(node.output(0))
    stated = tuple(dim for dim in shape[2:] if dim is not None) if shape else ()
    if shape is None or len(stated) != len(shape) - 2:
        return tuple(out.require_constant(node.inputs[1], "image_shape").values)
    return stated


def _lists(image: Sequence[int], block: Sequence[int], node: Node) -> tuple[list[list[int]], int]:
    """For each pixel the elements on it, as lists of one element a pixel; and what stands for none."""
    rank = len(image)
    dilations = node.attribute("dilations") or (1,) * rank
    strides = node.attribute("strides") or (1,) * rank
    pads = node.attribute("pads") or (0,) * (2 * rank)
    counts = [
        (image[i] + pads[i] + pads[rank + i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(rank)
    ]
    along = []
    for i in range(rank):
        steps = product(range(block[i]), range(counts[i]))
        along.append([(tap, at, at * strides[i] + tap * dilations[i] - pads[i]) for tap, at in steps])
    found: dict[int, list[int]] = {}
    for places in product(*along):
        if all(0 <= place[2] < size for place, size in zip(places, image, strict=True)):
            tap = _flat([place[0] for place in places], block)
            at = _flat([place[1] for place in places], counts)
            found.setdefault(_flat([place[2] for place in places], image), []).append(
                tap * _size(counts) + at
            )
    missing = _size(block) * _size(counts)
    longest = max(map(len, found.values()), default=1)
    pixels = [found.get(pixel, []) for pixel in range(_size(image))]
    return [[each[n] if n < len(each) else missing for each in pixels] for n in range(longest)], missing


def _flat(place: Sequence[int], sizes: Sequence[int]) -> int:
    """The position of a place in row-major order."""
    found = 0
    for index, size in zip(place, sizes, strict=True):
        found = found * size + index
    return found


def _size(sizes: Sequence[int]) -> int:
    return _flat([size - 1 for size in sizes], sizes) + 1
