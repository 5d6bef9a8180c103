"""Clip: `min` and `max` were attributes until 11 made them inputs of the data's type."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

FLOAT_MAX = 3.4028234663852886e38
"""What an absent bound means in version 6: the greatest finite 32-bit float, and its negative."""


@adapter("Clip", 6, 11)
def bounds_become_inputs(node: Node, out: Rewriter) -> None:
    """An absent bound, from 11 on the limit of the data's own type, stays absent for float only."""
    data = node.inputs[0]
    element_type = out.element_type(data)
    inputs = [data]
    for name, limit in (("min", -FLOAT_MAX), ("max", FLOAT_MAX)):
        bound = node.attribute(name, limit)
        is_limit = bound == limit and element_type == "float"
        inputs.append("" if is_limit else out.constant(bound, element_type))
    while not inputs[-1]:
        inputs.pop()
    out.become(node, inputs=inputs, attributes=node.without("min", "max"))
