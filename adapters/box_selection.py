"""NonMaxSuppression came at 10: before, a loop over batches and classes, and one over the boxes to keep.

A box that is taken puts out itself and all that overlap it by more than the threshold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from opshift.adapters.bodies import LoopBody
from opshift.adapters.casts import cast
from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import positions_below
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import as_list, dimension, reshaped
from opshift.adapters.table import adapter

OPSET = 9
"""What the nodes here are written for."""
CORNERS, CENTRES = ((1, 3), (0, 2)), ((0, 2), (1, 3))
"""Where the numbers of a box along both dimensions stand: its ends, or its middle and its size."""


Ends = tuple[str, str]
"""The lower ends and the upper ones."""


class Boxes(NamedTuple):
    """Of some boxes the ends along both dimensions, and the areas."""

    ends: tuple[Ends, Ends]
    area: str


@adapter("NonMaxSuppression", 10, 9)
def boxes_are_taken_one_by_one(node: Node, out: Rewriter) -> None:
    """Each row of the scores is a class of a batch; what is found in it goes to the end of the list."""
    boxes, scores = node.inputs[:2]
    classes, count = (as_list(dimension(scores, axis, out), out) for axis in (1, 2))
    rows = reshaped(scores, (-1, count), out)
    turns = out.emit("Mul", [as_list(dimension(scores, 0, out), out), classes])
    most = _most(node, count, out)
    body = LoopBody(out)
    found = body.input("int64", (None, 3))
    row = body.emit("Reshape", [body.turn, body.constant([1], "int64")])
    batch = body.emit("Div", [row, classes])
    place = body.emit("Sub", [row, body.emit("Mul", [batch, classes])])
    mine = _boxes(reshaped(body.emit("Gather", [boxes, batch]), (-1, 4), body), node, body)
    score = reshaped(body.emit("Gather", [rows, row]), (-1,), body)
    chosen = _selection((batch, place), mine, score, count, node, body)
    _, found = chosen.run(most, [_candidates(score, node, body), found], body, 2)
    body.output(found, "int64", (None, 3))
    body.run(turns, [out.tensor(Tensor("int64", (0, 3), ()))], out, node.outputs)


def _most(node: Node, count: str, out: Rewriter) -> str:
    """How many boxes can be taken: none if it is not said, and no more than there are."""
    if not node.input(2):
        return out.constant([0], "int64")
    count, stated = (cast(each, "double", out) for each in (count, reshaped(node.input(2), (1,), out)))
    left = out.emit("Relu", [out.emit("Sub", [count, stated])])
    return cast(out.emit("Sub", [count, left]), "int64", out)


def _boxes(numbers: str, node: Node, out: Rewriter) -> Boxes:
    columns = [out.emit("Gather", [numbers, out.constant(place, "int64")], axis=1) for place in range(4)]
    if node.attribute("center_point_box", 0):
        ends = [_ends(columns[middle], columns[size], out) for middle, size in CENTRES]
    else:
        ends = [_ordered(columns[one], columns[other], out) for one, other in CORNERS]
    width, height = (out.emit("Sub", [upper, lower]) for lower, upper in ends)
    return Boxes((ends[0], ends[1]), out.emit("Mul", [width, height]))


def _ends(middle: str, size: str, out: Rewriter) -> Ends:
    half = out.emit("Div", [size, out.constant(2.0, "float")])
    return out.emit("Sub", [middle, half]), out.emit("Add", [middle, half])


def _ordered(one: str, other: str, out: Rewriter) -> Ends:
    return out.emit("Min", [one, other], opset=8), out.emit("Max", [one, other], opset=8)


def _candidates(score: str, node: Node, out: Rewriter) -> str:
    """Which boxes can be taken: those whose score is above the threshold, or all."""
    if node.input(4):
        return out.emit("Greater", [score, node.input(4)], opset=OPSET)
    return out.emit("Not", [out.emit("Less", [score, score], opset=OPSET)])


def _selection(
    where: tuple[str, str], boxes: Boxes, score: str, count: str, node: Node, out: Rewriter
) -> LoopBody:
    """Take the best box that is left, of equal ones the first."""
    body = LoopBody(out)
    left, found = body.input("bool", (None,)), body.input("int64", (None, 3))
    lowest = body.constant([-math.inf], "float")
    ranked = body.emit("Where", [left, score, lowest], opset=OPSET)
    top = body.emit("ReduceMax", [ranked], axes=[0], keepdims=1)
    is_top = body.emit("Not", [body.emit("Less", [ranked, top], opset=OPSET)])
    best = body.emit("ArgMax", [cast(body.emit("And", [left, is_top]), "float", body)], axis=0, keepdims=1)
    is_there = cast(body.emit("Gather", [left, best]), "int64", body)
    line = reshaped(body.emit("Concat", [*where, best], axis=0), (1, 3), body)
    times = body.emit("Concat", [is_there, body.constant([1], "int64")], axis=0)
    found = body.emit("Concat", [found, body.emit("Tile", [line, times])], axis=0)
    itself = body.emit("Equal", [positions_below(count, out), best])
    out_now = body.emit("Or", [itself, _overlapping(boxes, best, node.input(3), body)])
    body.output(body.emit("And", [left, body.emit("Not", [out_now])]), "bool", (None,))
    body.output(found, "int64", (None, 3))
    return body


def _overlapping(boxes: Boxes, best: str, threshold: str, out: Rewriter) -> str:
    """Which boxes share more of their common area with the best one than the threshold."""
    sides = []
    for lower, upper in boxes.ends:
        first = out.emit("Max", [lower, out.emit("Gather", [lower, best])], opset=8)
        last = out.emit("Min", [upper, out.emit("Gather", [upper, best])], opset=8)
        sides.append(out.emit("Relu", [out.emit("Sub", [last, first])]))
    shared = out.emit("Mul", sides)
    both = out.emit("Add", [out.emit("Gather", [boxes.area, best]), boxes.area])
    part = out.emit("Div", [shared, out.emit("Sub", [both, shared])])
    return out.emit("Greater", [part, threshold or out.constant([0.0], "float")], opset=OPSET)
