"""DFT: `axis` was an attribute, with another default, until 20 made it an input."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("DFT", 17, 20)
def axis_becomes_an_input(node: Node, out: Rewriter) -> None:
    """The axis is always written: absent, it meant 1, and from 20 on the last but one."""
    axis = out.constant(node.attribute("axis", 1), "int64")
    out.become(node, inputs=[node.inputs[0], node.input(1), axis], attributes=node.without("axis"))


@adapter("DFT", 20, 17)
def axis_becomes_an_attribute(node: Node, out: Rewriter) -> None:
    """Absent, it means the last but one, which `axis` may name as -2."""
    axis = out.require_constant(node.input(2), "input axis").scalar if node.input(2) else -2
    inputs = node.inputs[:2] if node.input(1) else node.inputs[:1]
    out.become(node, inputs=inputs, attributes={**node.attributes, "axis": int(axis)})
