"""Elu: `alpha` was an attribute until 29 made it an input."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Elu", 22, 29)
def alpha_becomes_an_input(node: Node, out: Rewriter) -> None:
    """Left out, it is 1 in both."""
    alpha = node.attribute("alpha", 1.0)
    if alpha == 1:
        out.become(node, attributes={})
        return
    constant = out.constant(alpha, out.element_type(node.inputs[0]))
    out.become(node, inputs=[node.inputs[0], constant], attributes={})


@adapter("Elu", 29, 22)
def alpha_becomes_an_attribute(node: Node, out: Rewriter) -> None:
    """One constant number; others scale Elu with alpha 1, and only where `X` is negative."""
    data, alpha = node.inputs[0], node.input(1)
    if not alpha:
        out.become(node, attributes={})
        return
    constant = out.constant_value(alpha)
    if constant is not None and len(constant.values) == 1:
        out.become(node, inputs=[data], attributes={"alpha": constant.scalar})
        return
    scaled = out.emit("Mul", [out.emit("Elu", [data]), alpha])
    is_negative = out.emit("Less", [data, out.constant(0.0, out.element_type(data))])
    out.emit("Where", [is_negative, scaled, data], node.outputs)
