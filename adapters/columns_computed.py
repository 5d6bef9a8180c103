"""Col2Im with sizes that are known only at run time: a loop over the elements of a block."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.bodies import LoopBody
from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import positions_below
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import reshaped

OPSET = 13
"""Opset of the emitted nodes."""
ADDS_SMALL_INTEGERS = 14
"""Opset of the emitted Add: the first in which Add supports integers of 8 and 16 bits."""
ZERO = Tensor("int64", (1,), (0,))


class Axis(NamedTuple):
    """Geometry along one axis.

    `stride`, `dilation` and the leading `pad` are numbers. `elements` (per block) and `blocks` name int64
    lists of length 1; `pixels` names the list of all pixel positions.
    """

    stride: int
    dilation: int
    pad: int
    elements: str
    blocks: str
    pixels: str


def add_element_by_element(node: Node, out: Rewriter) -> None:
    """Emit a loop that adds, in each iteration, one element of the block to all pixels that it falls on."""
    columns, image = node.inputs[:2]
    axes = _axes(node, out)
    elements = _product([axis.elements for axis in axes], out)
    blocks = _product([axis.blocks for axis in axes], out)
    padding_index = _binary("Mul", elements, blocks, out)
    shape = out.emit("Concat", [out.constant([0, -1], "int64"), padding_index], opset=OPSET, axis=0)
    flattened = out.emit("Reshape", [columns, shape], opset=OPSET)
    # The appended zero is gathered for pixels on which an element does not fall.
    flattened = out.emit("Pad", [flattened, out.constant([0, 0, 0, 0, 0, 1], "int64")], opset=OPSET)
    padding_indices = _binary(
        "Add", out.emit("ConstantOfShape", [image], opset=9, value=ZERO), padding_index, out
    )
    body = LoopBody(out)
    element_type = out.element_type(columns)
    total = body.input(element_type)
    indices = _element_indices(axes, blocks, padding_index, body)
    term = body.emit("Gather", [flattened, indices], opset=OPSET, axis=2)
    body.output(body.emit("Add", [total, term], opset=ADDS_SMALL_INTEGERS), element_type)
    zeros = out.emit("Gather", [flattened, padding_indices], opset=OPSET, axis=2)
    body.run(elements, [zeros], out, node.outputs)


def _axes(node: Node, out: Rewriter) -> list[Axis]:
    image, block = node.inputs[1:]
    axes = []
    rank = _rank(node, out)
    pads = node.attribute("pads") or (0,) * (2 * rank)
    for axis in range(rank):
        stride, dilation = ((node.attribute(name) or (1,) * rank)[axis] for name in ("strides", "dilations"))
        size, elements = (
            out.emit("Gather", [sizes, out.constant([axis], "int64")], opset=OPSET, axis=0)
            for sizes in (image, block)
        )
        extent = _binary("Mul", _binary("Sub", elements, _int64(1, out), out), _int64(dilation, out), out)
        padded_size = _binary("Add", size, _int64(pads[axis] + pads[rank + axis] - 1, out), out)
        steps = _binary("Div", _binary("Sub", padded_size, extent, out), _int64(stride, out), out)
        blocks = _binary("Add", steps, _int64(1, out), out)
        axes.append(Axis(stride, dilation, pads[axis], elements, blocks, positions_below(size, out)))
    return axes


def _rank(node: Node, out: Rewriter) -> int:
    """Return the number of spatial dimensions, from the lengths of the image and block shapes."""
    for name in node.inputs[1:]:
        shape = out.shape(name)
        if shape and shape[0] is not None:
            return shape[0]
    raise CannotConvert(
        "the number of dimensions of the image is unknown",
        remedy=f"add a value_info with the shape of {node.inputs[1]!r}",
    )


def _element_indices(axes: list[Axis], blocks: str, padding_index: str, body: LoopBody) -> str:
    """Return, for each pixel, the flat index of the current element, or that of the appended zero."""
    remaining = reshaped(body.turn, (1,), body)
    index, is_present = _binary("Mul", remaining, blocks, body), ""
    weights = [
        _product([each.blocks for each in axes[dimension + 1 :]], body) for dimension in range(len(axes))
    ]
    for dimension in reversed(range(len(axes))):
        axis = axes[dimension]
        quotient = _binary("Div", remaining, axis.elements, body)
        element = _binary("Sub", remaining, _binary("Mul", quotient, axis.elements, body), body)
        remaining = quotient
        block, is_hit = _block(axis, element, body)
        shape = (-1, *[1] * (len(axes) - 1 - dimension))
        index = _binary(
            "Add", index, reshaped(_binary("Mul", block, weights[dimension], body), shape, body), body
        )
        is_hit = reshaped(is_hit, shape, body)
        is_present = _binary("And", is_present, is_hit, body) if is_present else is_hit
    return body.emit("Where", [is_present, index, padding_index], opset=OPSET)


def _block(axis: Axis, element: str, out: Rewriter) -> tuple[str, str]:
    """Return, for each pixel along an axis, the block with an element on it, and whether it exists."""
    offset = _binary("Mul", element, _int64(-axis.dilation, out), out)
    distance = _binary("Add", axis.pixels, _binary("Add", offset, _int64(axis.pad, out), out), out)
    stride = _int64(axis.stride, out)
    block = _binary("Div", distance, stride, out)
    is_whole = _binary("Equal", _binary("Mul", block, stride, out), distance, out)
    is_after = out.emit("Not", [_binary("Less", distance, _int64(0, out), out)], opset=OPSET)
    is_inside = _binary("And", is_after, _binary("Less", block, axis.blocks, out), out)
    return block, _binary("And", is_whole, is_inside, out)


def _product(sizes: list[str], out: Rewriter) -> str:
    total = _int64(1, out)
    for size in sizes:
        total = _binary("Mul", total, size, out)
    return total


def _int64(number: int, out: Rewriter) -> str:
    return out.constant([number], "int64")


def _binary(op_type: str, first: str, second: str, out: Rewriter) -> str:
    return out.emit(op_type, [first, second], opset=OPSET)
