"""Elementwise operators: numpy's broadcasting replaced `broadcast` and `axis` at 7.

Before, the second input was stretched only where `broadcast` was 1: its dimensions stood for those of the
first from `axis` on, or for the last ones where `axis` was left out.
"""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

ARITHMETIC = ("Add", "Sub", "Mul", "Div")
COMPARISON = ("And", "Or", "Xor", "Equal", "Greater", "Less", "Pow")


@adapter(ARITHMETIC, 6, 7)
@adapter(COMPARISON, 1, 7)
def axis_becomes_trailing_ones(node: Node, out: Rewriter) -> None:
    """A second input that stands at `axis` gets a dimension of one for each of the first's that follow."""
    attributes = node.without("broadcast", "axis")
    axis = node.attribute("axis")
    if not node.attribute("broadcast", 0) or axis is None:
        out.become(node, attributes=attributes)
        return
    first, second = node.inputs
    rank, second_rank = out.rank(first), out.rank(second)
    start = axis + rank if axis < 0 else axis
    missing = rank - start - second_rank
    if missing > 0:
        second = out.emit("Unsqueeze", [second], axes=range(second_rank, second_rank + missing))
    out.become(node, inputs=(first, second), attributes=attributes)


@adapter("PRelu", 6, 7)
def slope_is_broadcast(node: Node, out: Rewriter) -> None:
    """A slope for each channel aligned with dimension 1; from 7 on it aligns with the last."""
    data, slope = node.inputs
    shape = out.shape(slope)
    if shape is not None and len(shape) == 1 and out.known_rank(data) == 0:
        out.become(node, inputs=(data, out.emit("Squeeze", [slope], axes=[0])))
        return
    if shape == (1,) or (shape is not None and len(shape) != 1):
        out.become(node)
        return
    rank = out.rank(data)
    out.rank(slope)
    if rank > 2:
        slope = out.emit("Unsqueeze", [slope], axes=range(1, rank - 1))
    out.become(node, inputs=(data, slope))
