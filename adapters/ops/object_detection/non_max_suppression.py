"""Rewrite NonMaxSuppression (introduced in opset 10) as two nested Loops.

The outer Loop runs over pairs of batch and class. Each iteration of the inner Loop selects a box, and removes
this box and all boxes with an overlap above the threshold from the candidates.
"""

import math
from typing import NamedTuple

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.expression import Expression, cast
from opshift.adapters.emit.shapes import dimension, dimension_tensor, index_range, reshape
from opshift.adapters.emit.subgraphs import LoopBuilder

OPSET = 9
"""Opset of the emitted nodes."""

CORNER_COLUMNS, CENTER_COLUMNS = ((1, 3), (0, 2)), ((0, 2), (1, 3))
"""Columns of a box, for each dimension: its two corners, or its center and its size."""


class Boxes(NamedTuple):
    """Lower and upper bounds of boxes along both dimensions, and their areas."""

    bounds: list[tuple[str, str]]
    area: str


@adapter("NonMaxSuppression", 10, 9)
def replace_non_max_suppression_by_loops(node: Node, out: Rewriter) -> None:
    """Replace NonMaxSuppression by a Loop over pairs of batch and class that appends the selected boxes."""
    boxes, scores = node.inputs[:2]
    classes, count = (dimension_tensor(dimension(scores, axis, out), out) for axis in (1, 2))
    # Flatten, unlike Reshape, accepts empty scores.
    rows = out.emit("Flatten", [scores], axis=2)
    pairs = out.emit("Mul", [dimension_tensor(dimension(scores, 0, out), out), classes])
    max_boxes = _max_boxes(node, count, out)
    body = LoopBuilder(out)
    found = body.input("int64", (None, 3))
    row = reshape(body.iteration, (1,), body)
    batch = body.emit("Div", [row, classes])
    class_index = body.emit("Sub", [row, body.emit("Mul", [batch, classes])])
    batch_boxes = _box_bounds(reshape(body.emit("Gather", [boxes, batch]), (-1, 4), body), node, body)
    score = reshape(body.emit("Gather", [rows, row]), (-1,), body)
    chosen = _selection_body((batch, class_index), batch_boxes, score, count, node, body)
    _, found = chosen.emit_loop(max_boxes, [_candidates(score, node, body), found], body, 2)
    body.output(found, "int64", (None, 3))
    body.emit_loop(pairs, [out.tensor(Tensor("int64", (0, 3), ()))], out, node.outputs)


def _max_boxes(node: Node, count: str, out: Rewriter) -> str:
    """Emit the maximum number of boxes to select: 0 by default, and at most the number of boxes."""
    if not node.input(2):
        return out.int64([0])
    # Emit count - relu(count - limit) in double for the minimum: Min supports no integers in opset 9.
    count, limit = (cast(each, "double", out) for each in (count, reshape(node.input(2), (1,), out)))
    excess = out.emit("Relu", [out.emit("Sub", [count, limit])])
    return cast(out.emit("Sub", [count, excess]), "int64", out)


def _box_bounds(numbers: str, node: Node, out: Rewriter) -> Boxes:
    names = [out.emit("Gather", [numbers, out.int64(column)], axis=1) for column in range(4)]
    columns = [Expression(name, "float", out) for name in names]
    ends = []
    if node.attribute("center_point_box", 0):
        for center, size in CENTER_COLUMNS:
            half = columns[size] / 2
            ends.append((columns[center] - half, columns[center] + half))
    else:
        for corner, opposite in CORNER_COLUMNS:
            first, second = columns[corner], columns[opposite]
            ends.append((first.apply("Min", second, opset=8), first.apply("Max", second, opset=8)))
    width, height = (upper - lower for lower, upper in ends)
    return Boxes([(lower.name, upper.name) for lower, upper in ends], (width * height).name)


def _selection_body(
    batch_and_class: tuple[str, str], boxes: Boxes, score: str, count: str, node: Node, out: Rewriter
) -> LoopBuilder:
    """Build the body of the inner Loop: select the candidate with the highest score, the first if tied."""
    body = LoopBuilder(out)
    candidates, found = body.input("bool", (None,)), body.input("int64", (None, 3))
    lowest = body.constant([-math.inf], "float")
    ranked = body.emit("Where", [candidates, score, lowest], opset=OPSET)
    top = body.emit("ReduceMax", [ranked], axes=[0], keepdims=1)
    is_top = body.emit("Not", [body.emit("Less", [ranked, top], opset=OPSET)])
    is_best_candidate = cast(body.emit("And", [candidates, is_top]), "float", body)
    best = body.emit("ArgMax", [is_best_candidate], axis=0, keepdims=1)
    is_candidate = cast(body.emit("Gather", [candidates, best]), "int64", body)
    # Without a remaining candidate, Tile repeats the row 0 times, so the iteration appends nothing.
    row = reshape(body.emit("Concat", [*batch_and_class, best], axis=0), (1, 3), body)
    repeats = body.emit("Concat", [is_candidate, body.int64([1])], axis=0)
    found = body.emit("Concat", [found, body.emit("Tile", [row, repeats])], axis=0)
    is_best = body.emit("Equal", [index_range(count, out), best])
    is_removed = body.emit("Or", [is_best, _overlapping(boxes, best, node.input(3), body)])
    body.output(body.emit("And", [candidates, body.emit("Not", [is_removed])]), "bool", (None,))
    body.output(found, "int64", (None, 3))
    return body


def _overlapping(boxes: Boxes, best: str, threshold: str, out: Rewriter) -> str:
    """Emit a mask of the boxes whose intersection over union with the best box is above the threshold."""

    def value(name: str) -> Expression:
        return Expression(name, "float", out)

    def of_best(name: str) -> Expression:
        return value(out.emit("Gather", [name, best]))

    sides = []
    for lower, upper in boxes.bounds:
        start = value(lower).apply("Max", of_best(lower), opset=8)
        end = value(upper).apply("Min", of_best(upper), opset=8)
        sides.append((end - start).apply("Relu"))
    intersection = sides[0] * sides[1]
    ratio = intersection / (of_best(boxes.area) + value(boxes.area) - intersection)
    return out.emit("Greater", [ratio.name, threshold or out.constant([0.0], "float")], opset=OPSET)


def _candidates(score: str, node: Node, out: Rewriter) -> str:
    """Emit a mask of the candidates: boxes with a score above the threshold, or all without a threshold."""
    if node.input(4):
        return out.emit("Greater", [score, node.input(4)], opset=OPSET)
    # x < x is false for every score, even NaN.
    return out.emit("Not", [out.emit("Less", [score, score], opset=OPSET)])
