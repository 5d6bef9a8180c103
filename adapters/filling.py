"""ConstantOfShape: it came at 9; before, one value is expanded."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("ConstantOfShape", 9, 8)
def one_value_is_expanded(node: Node, out: Rewriter) -> None:
    """The value goes to every place of the shape; without dimensions of its own it adds none."""
    value = node.attribute("value", Tensor("float", (1,), (0.0,)))
    scalar = out.emit("Reshape", [out.emit("Constant", [], value=value), out.constant([], "int64")])
    out.emit("Expand", [scalar, node.inputs[0]], node.outputs)
