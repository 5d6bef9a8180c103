"""Elementwise operators, upgrade: NumPy broadcasting replaced `broadcast` and `axis` in opset 7.

Before, only the second input was broadcast, and only if `broadcast` was 1. Its dimensions matched those of
the first input starting at `axis`, or the last ones if `axis` was absent.
"""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

ARITHMETIC = ("Add", "Sub", "Mul", "Div")
"""Operators that change from version 6 to version 7."""
COMPARISON = ("And", "Or", "Xor", "Equal", "Greater", "Less", "Pow")
"""Operators that change from version 1 to version 7."""


@adapter(ARITHMETIC, 6, 7)
@adapter(COMPARISON, 1, 7)
def axis_becomes_trailing_ones(node: Node, out: Rewriter) -> None:
    """Replace `axis` by trailing dimensions of size 1 on the second input."""
    attributes = node.without("broadcast", "axis")
    axis = node.attribute("axis")
    if not node.attribute("broadcast", 0) or axis is None:
        out.become(node, attributes=attributes)
        return
    first, second = node.inputs
    rank, second_rank = out.rank(first), out.rank(second)
    start = axis + rank if axis < 0 else axis
    trailing = rank - start - second_rank
    if trailing > 0:
        second = out.emit("Unsqueeze", [second], axes=range(second_rank, second_rank + trailing))
    out.become(node, inputs=(first, second), attributes=attributes)


@adapter("PRelu", 6, 7)
def slope_is_broadcast(node: Node, out: Rewriter) -> None:
    """Unsqueeze a slope per channel: it matched dimension 1, and matches the last one since version 7."""
    data, slope = node.inputs
    shape = out.shape(slope)
    if shape is not None and len(shape) == 1 and out.known_rank(data) == 0:
        out.become(node, inputs=(data, out.emit("Squeeze", [slope], axes=[0])))
        return
    if shape == (1,) or (shape is not None and len(shape) != 1):
        out.become(node)
        return
    rank = out.rank(data)
    # Refuse a slope of unknown rank.
    out.rank(slope)
    if rank > 2:
        slope = out.emit("Unsqueeze", [slope], axes=range(1, rank - 1))
    out.become(node, inputs=(data, slope))
