"""Scale: `factor` was an attribute until 3 made it an input; Limit came with 2."""

from __future__ import annotations

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.errors import CannotConvert
from opshift.model.node import Node


@adapter("Scale", 1, 3, domain="com.acme")
def factor_becomes_an_input(node: Node, out: Rewriter) -> None:
    """The offset, which is added to the product, is a shift of what is multiplied."""
    factor, offset = node.attribute("factor", 2.0), node.attribute("offset", 0.0)
    if offset and not factor:
        raise CannotConvert("no shift of what is multiplied by 0 adds an offset", remedy="use Add")
    shift = offset / factor if offset else 0.0
    out.become(node, inputs=[node.inputs[0], out.constant(factor, "float")], attributes={"shift": shift})


@adapter("Scale", 3, 1, domain="com.acme")
def factor_becomes_an_attribute(node: Node, out: Rewriter) -> None:
    """The factor has to be known."""
    factor = out.require_constant(node.inputs[1], "the factor").scalar
    offset = factor * node.attribute("shift", 0.0)
    out.become(node, inputs=[node.inputs[0]], attributes={"factor": factor, "offset": offset})


@adapter("Limit", 2, 1, domain="com.acme")
def limits_are_those_of_clip(node: Node, out: Rewriter) -> None:
    """Clip limits both ways."""
    top = node.attribute("top", 6.0)
    out.emit("Clip", [node.inputs[0]], node.outputs, domain="", opset=6, min=0.0, max=top)
