"""Pad by amounts or with a value that is known at run time only, where both have to be attributes."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.positions import OPSET, Steps, held, inside, pair, steps, there_and_back
from opshift.adapters.rewriter import Rewriter


def gather_padded(node: Node, out: Rewriter) -> None:
    """Every dimension is gathered from where its elements come from; places outside are then filled."""
    mode = node.attribute("mode", b"constant")
    element_type = out.element_type(node.inputs[0])
    rank = out.rank(node.inputs[0])
    filling = node.input(2) or (
        out.constant(_nothing(element_type), element_type) if mode == b"constant" else ""
    )
    value = node.inputs[0]
    for place in range(rank):
        before, after = pair(node.inputs[1], place, rank, out)
        taken = steps(value, before, after, place, out)
        positions = there_and_back(taken, out) if mode == b"reflect" else held(taken, out)
        value = out.emit("Gather", [value, positions], opset=OPSET, axis=place)
        if mode == b"constant":
            value = out.emit("Where", [_mask(taken, rank - place, out), value, filling], opset=OPSET)
    out.emit("Identity", [value], node.outputs, opset=OPSET)


def _nothing(element_type: str) -> int | float:
    return 0.0 if element_type in ("float16", "float", "double") else 0


def _mask(taken: Steps, dimensions: int, out: Rewriter) -> str:
    """Where a dimension is not filled, as a shape that ends in a one for each dimension after it."""
    shape = out.constant([-1, *[1] * (dimensions - 1)], "int64")
    return out.emit("Reshape", [inside(taken, out), shape], opset=OPSET)
