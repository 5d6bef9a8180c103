"""Adapters of Elu: `alpha` is an input since opset 29."""

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.node import Node


@adapter("Elu", 22, 29)
def move_alpha_to_input(node: Node, out: Rewriter) -> None:
    """Move `alpha` to an input; the default of 1 is omitted."""
    alpha = node.attribute("alpha", 1.0)
    if alpha == 1:
        out.replace(node, attributes={})
        return
    constant = out.constant(alpha, out.element_type(node.inputs[0]))
    out.replace(node, inputs=[node.inputs[0], constant], attributes={})


@adapter("Elu", 29, 22)
def move_alpha_to_attribute(node: Node, out: Rewriter) -> None:
    """Move a constant scalar `alpha` to the attribute; apply any other one with Mul and Where."""
    data, alpha = node.inputs[0], node.input(1)
    if not alpha:
        out.replace(node, attributes={})
        return
    constant = out.constant_value(alpha)
    if constant is not None and len(constant.values) == 1:
        out.replace(node, inputs=[data], attributes={"alpha": constant.scalar})
        return
    # Elu with alpha 1 is exp(x) - 1 where x is negative, so a product applies any other alpha.
    scaled = out.emit("Mul", [out.emit("Elu", [data]), alpha])
    is_negative = out.emit("Less", [data, out.constant(0.0, out.element_type(data))])
    out.emit("Where", [is_negative, scaled, data], node.outputs)
