"""Downgrade ConstantOfShape, which opset 9 introduced."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.adapters.tensor_messages import tensor_of


@adapter("ConstantOfShape", 9, 8)
def one_value_is_expanded(node: Node, out: Rewriter) -> None:
    """Replace ConstantOfShape by Expand of a scalar; a tensor of shape (1,) could not expand to rank 0."""
    value = tensor_of(node.attribute("value", Tensor("float", (1,), (0.0,))))
    out.emit("Expand", [out.constant(value.values[0], value.element_type), node.inputs[0]], node.outputs)
