"""Pad as Gather, for pads or a value that are not constant or do not fit into the attributes of Pad-2."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.positions import OPSET, Steps, held, inside, pair, steps, there_and_back
from opshift.adapters.rewriter import Rewriter


def gather_padded(node: Node, out: Rewriter) -> None:
    """Emit a Gather for each axis; for the mode `constant`, replace the padding with the value by Where."""
    mode = node.attribute("mode", b"constant")
    element_type = out.element_type(node.inputs[0])
    rank = out.rank(node.inputs[0])
    fill_value = node.input(2) or (
        out.constant(_zero(element_type), element_type) if mode == b"constant" else ""
    )
    value = node.inputs[0]
    for axis in range(rank):
        before, after = pair(node.inputs[1], axis, rank, out)
        padded = steps(value, before, after, axis, out)
        # The mode `constant` gathers edge elements, which Where then replaces.
        indices = there_and_back(padded, out) if mode == b"reflect" else held(padded, out)
        value = out.emit("Gather", [value, indices], opset=OPSET, axis=axis)
        if mode == b"constant":
            value = out.emit("Where", [_mask(padded, rank - axis, out), value, fill_value], opset=OPSET)
    out.emit("Identity", [value], node.outputs, opset=OPSET)


def _zero(element_type: str) -> int | float:
    return 0.0 if element_type in ("float16", "float", "double") else 0


def _mask(padded: Steps, dimensions: int, out: Rewriter) -> str:
    """Return which positions are not padding, with `dimensions - 1` dimensions of 1 appended to broadcast."""
    shape = out.constant([-1, *[1] * (dimensions - 1)], "int64")
    return out.emit("Reshape", [inside(padded, out), shape], opset=OPSET)
