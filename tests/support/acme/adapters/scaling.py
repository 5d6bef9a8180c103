"""Adapters of Scale 1 and 3 (`factor` becomes an input) and of Limit, introduced in version 2."""

from __future__ import annotations

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.errors import CannotConvert
from opshift.model.node import Node


@adapter("Scale", 1, 3, domain="com.acme")
def move_factor_to_input(node: Node, out: Rewriter) -> None:
    """Replace the offset of the product by a shift of the input."""
    factor, offset = node.attribute("factor", 2.0), node.attribute("offset", 0.0)
    if offset and not factor:
        raise CannotConvert("with factor 0, no shift of the input adds an offset", remedy="use Add")
    shift = offset / factor if offset else 0.0
    out.replace(node, inputs=[node.inputs[0], out.constant(factor, "float")], attributes={"shift": shift})


@adapter("Scale", 3, 1, domain="com.acme")
def move_factor_to_attribute(node: Node, out: Rewriter) -> None:
    """Move a constant factor to the attribute."""
    factor = out.require_constant(node.inputs[1], "the factor").scalar
    offset = factor * node.attribute("shift", 0.0)
    out.replace(node, inputs=[node.inputs[0]], attributes={"factor": factor, "offset": offset})


@adapter("Limit", 2, 1, domain="com.acme")
def replace_by_clip(node: Node, out: Rewriter) -> None:
    """Replace Limit by Clip."""
    top = node.attribute("top", 6.0)
    out.emit("Clip", [node.inputs[0]], node.outputs, domain="", opset=6, min=0.0, max=top)
