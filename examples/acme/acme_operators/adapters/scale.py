"""Adapters of com.acme.Scale, in both directions."""

from __future__ import annotations

from opshift.adapters import Node, Rewriter, adapter


@adapter("Scale", 1, 2, domain="com.acme")
def factor_to_input(node: Node, out: Rewriter) -> None:
    """Replace the attribute `factor` by a constant input."""
    factor = out.constant(node.attribute("factor", 2.0), "float")
    out.replace(node, inputs=[node.inputs[0], factor], attributes={})


@adapter("Scale", 2, 1, domain="com.acme")
def factor_to_attribute(node: Node, out: Rewriter) -> None:
    """Replace a constant input `factor` by the attribute; a computed factor is refused."""
    factor = out.require_constant(node.inputs[1], "the factor").scalar
    out.replace(node, inputs=[node.inputs[0]], attributes={"factor": factor})
