"""Downgrade DynamicQuantizeLinear, which opset 11 introduced, to arithmetic on the range of its input."""

from __future__ import annotations

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.element_types import BY_NAME
from opshift.model.node import Node

OPSET = 10
"""Opset of the emitted nodes, except Round, which opset 11 introduced."""


@adapter("DynamicQuantizeLinear", 11, 10)
def replace_dynamic_quantize_linear(node: Node, out: Rewriter) -> None:
    """Emit the scale, the range extended to include 0 divided by 255, and the zero point.

    If all elements are 0 the scale is 1, as in runtimes.
    """
    data = node.inputs[0]
    origin, levels = out.constant(0.0, "float"), out.constant(255.0, "float")
    low = out.emit("ReduceMin", [data], opset=OPSET, keepdims=0)
    high = out.emit("ReduceMax", [data], opset=OPSET, keepdims=0)
    low = out.emit("Min", [low, origin], opset=OPSET)
    high = out.emit("Max", [high, origin], opset=OPSET)
    step = out.emit("Div", [out.emit("Sub", [high, low], opset=OPSET), levels], opset=OPSET)
    # Add 1 to a scale of 0, which would divide by zero.
    is_nonzero = out.emit("Cast", [step], opset=OPSET, to=BY_NAME["bool"].number)
    is_zero = out.emit("Not", [is_nonzero], opset=OPSET)
    correction = out.emit("Cast", [is_zero], opset=OPSET, to=BY_NAME["float"].number)
    scale, zero_point = (node.output(position) or out.fresh("scale") for position in (1, 2))
    out.emit("Add", [step, correction], [scale], opset=OPSET)
    offset = out.emit("Sub", [origin, out.emit("Div", [low, scale], opset=OPSET)], opset=OPSET)
    offset = out.emit("Clip", [offset], opset=OPSET, min=0.0, max=255.0)
    offset = out.emit("Round", [offset], opset=11)
    out.emit("Cast", [offset], [zero_point], opset=OPSET, to=BY_NAME["uint8"].number)
    out.emit("QuantizeLinear", [data, scale, zero_point], node.outputs[:1], opset=OPSET)
