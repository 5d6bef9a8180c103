"""Clip: `min` and `max` were attributes until 11 made them inputs of the data's type."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

FLOAT_MAX = 3.4028234663852886e38
"""What an absent bound means in version 6: the greatest finite 32-bit float, and its negative."""


@adapter("Clip", 6, 11)
def bounds_become_inputs(node: Node, out: Rewriter) -> None:
    """An absent bound stays absent, but for double, where it still cuts at the range of float."""
    low, high = node.attribute("min", -FLOAT_MAX), node.attribute("max", FLOAT_MAX)
    data = node.inputs[0]
    has_bounds = low > -FLOAT_MAX, high < FLOAT_MAX
    element_type = out.element_type(data) if any(has_bounds) else out.known_element_type(data)
    inputs = [data]
    for needed, bound in zip(has_bounds, (low, high), strict=True):
        kept = needed or (element_type == "double" and abs(bound) == FLOAT_MAX)
        inputs.append(out.constant(bound, element_type) if kept and element_type else "")
    while not inputs[-1]:
        inputs.pop()
    out.become(node, inputs=inputs, attributes=node.without("min", "max"))
