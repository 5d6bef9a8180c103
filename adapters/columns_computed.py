"""Col2Im by sizes that are known at run time only: a loop over the elements of a block."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.bodies import LoopBody
from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import positions_below
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import reshaped

OPSET = 13
"""What the nodes here are written for."""
ADDS_SMALL_INTEGERS = 14
"""The opset that the sum is written for: the first in which Add takes integers of 8 and 16 bits."""
ZERO = Tensor("int64", (1,), (0,))


class Axis(NamedTuple):
    """Along one axis: how far blocks stand and their elements lie apart, and what is padded in front.

    The others are names of lists of one: elements in a block, and blocks; and a list of all pixels.
    """

    stride: int
    dilation: int
    pad: int
    elements: str
    blocks: str
    pixels: str


def add_element_by_element(node: Node, out: Rewriter) -> None:
    """In each turn every pixel takes what one element of some block puts there, or nothing."""
    columns, image = node.inputs[:2]
    axes = _axes(node, out)
    elements = _product([axis.elements for axis in axes], out)
    blocks = _product([axis.blocks for axis in axes], out)
    missing = _of("Mul", elements, blocks, out)
    shape = out.emit("Concat", [out.constant([0, -1], "int64"), missing], opset=OPSET, axis=0)
    flat = out.emit("Reshape", [columns, shape], opset=OPSET)
    flat = out.emit("Pad", [flat, out.constant([0, 0, 0, 0, 0, 1], "int64")], opset=OPSET)
    nowhere = _of("Add", out.emit("ConstantOfShape", [image], opset=9, value=ZERO), missing, out)
    body = LoopBody(out)
    element_type = out.element_type(columns)
    total = body.input(element_type)
    places = _places(axes, blocks, missing, body)
    part = body.emit("Gather", [flat, places], opset=OPSET, axis=2)
    body.output(body.emit("Add", [total, part], opset=ADDS_SMALL_INTEGERS), element_type)
    nothing = out.emit("Gather", [flat, nowhere], opset=OPSET, axis=2)
    body.run(elements, [nothing], out, node.outputs)


def _axes(node: Node, out: Rewriter) -> list[Axis]:
    image, block = node.inputs[1:]
    found = []
    rank = _rank(node, out)
    pads = node.attribute("pads") or (0,) * (2 * rank)
    for axis in range(rank):
        stride, dilation = ((node.attribute(name) or (1,) * rank)[axis] for name in ("strides", "dilations"))
        size, elements = (
            out.emit("Gather", [sizes, out.constant([axis], "int64")], opset=OPSET, axis=0)
            for sizes in (image, block)
        )
        reach = _of("Mul", _of("Sub", elements, _number(1, out), out), _number(dilation, out), out)
        room = _of("Add", size, _number(pads[axis] + pads[rank + axis] - 1, out), out)
        steps = _of("Div", _of("Sub", room, reach, out), _number(stride, out), out)
        blocks = _of("Add", steps, _number(1, out), out)
        found.append(Axis(stride, dilation, pads[axis], elements, blocks, positions_below(size, out)))
    return found


def _rank(node: Node, out: Rewriter) -> int:
    for name in node.inputs[1:]:
        shape = out.shape(name)
        if shape and shape[0] is not None:
            return shape[0]
    raise CannotConvert(
        "how many dimensions the image has is not known",
        remedy=f"state the shape of {node.inputs[1]!r}: add a value_info for it",
    )


def _places(axes: list[Axis], blocks: str, missing: str, body: LoopBody) -> str:
    """Where the element whose turn it is lies, for each pixel."""
    rest = reshaped(body.turn, (1,), body)
    place, is_there = _of("Mul", rest, blocks, body), ""
    weights = [_product([each.blocks for each in axes[at + 1 :]], body) for at in range(len(axes))]
    for at in reversed(range(len(axes))):
        axis = axes[at]
        above = _of("Div", rest, axis.elements, body)
        element = _of("Sub", rest, _of("Mul", above, axis.elements, body), body)
        rest = above
        block, is_hit = _block(axis, element, body)
        shape = (-1, *[1] * (len(axes) - 1 - at))
        place = _of("Add", place, reshaped(_of("Mul", block, weights[at], body), shape, body), body)
        is_hit = reshaped(is_hit, shape, body)
        is_there = _of("And", is_there, is_hit, body) if is_there else is_hit
    return body.emit("Where", [is_there, place, missing], opset=OPSET)


def _block(axis: Axis, element: str, out: Rewriter) -> tuple[str, str]:
    """For each pixel along an axis the block that puts an element there, and whether there is one."""
    offset = _of("Mul", element, _number(-axis.dilation, out), out)
    distance = _of("Add", axis.pixels, _of("Add", offset, _number(axis.pad, out), out), out)
    stride = _number(axis.stride, out)
    block = _of("Div", distance, stride, out)
    is_whole = _of("Equal", _of("Mul", block, stride, out), distance, out)
    is_after = out.emit("Not", [_of("Less", distance, _number(0, out), out)], opset=OPSET)
    is_inside = _of("And", is_after, _of("Less", block, axis.blocks, out), out)
    return block, _of("And", is_whole, is_inside, out)


def _product(sizes: list[str], out: Rewriter) -> str:
    product = _number(1, out)
    for size in sizes:
        product = _of("Mul", product, size, out)
    return product


def _number(number: int, out: Rewriter) -> str:
    return out.constant([number], "int64")


def _of(op_type: str, first: str, second: str, out: Rewriter) -> str:
    return out.emit(op_type, [first, second], opset=OPSET)
