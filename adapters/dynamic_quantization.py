"""DynamicQuantizeLinear came with 11; it is arithmetic on the range of its input."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

OPSET = 10
"""What the nodes are written for, but for Round."""


@adapter("DynamicQuantizeLinear", 11, 10)
def scale_follows_from_the_range(node: Node, out: Rewriter) -> None:
    """The range, widened to hold zero, over 255 steps; a range of nothing has scale 1, as runtimes do."""
    data = node.inputs[0]
    nothing, steps = out.constant(0.0, "float"), out.constant(255.0, "float")
    low = out.emit("ReduceMin", [data], opset=OPSET, keepdims=0)
    high = out.emit("ReduceMax", [data], opset=OPSET, keepdims=0)
    low = out.emit("Min", [low, nothing], opset=OPSET)
    high = out.emit("Max", [high, nothing], opset=OPSET)
    step = out.emit("Div", [out.emit("Sub", [high, low], opset=OPSET), steps], opset=OPSET)
    is_some = out.emit("Cast", [step], opset=OPSET, to=BY_NAME["bool"].number)
    is_none = out.emit("Not", [is_some], opset=OPSET)
    one = out.emit("Cast", [is_none], opset=OPSET, to=BY_NAME["float"].number)
    scale, zero = (node.output(place) or out.fresh("scale") for place in (1, 2))
    out.emit("Add", [step, one], [scale], opset=OPSET)
    place = out.emit("Sub", [nothing, out.emit("Div", [low, scale], opset=OPSET)], opset=OPSET)
    place = out.emit("Clip", [place], opset=OPSET, min=0.0, max=255.0)
    place = out.emit("Round", [place], opset=11)
    out.emit("Cast", [place], [zero], opset=OPSET, to=BY_NAME["uint8"].number)
    out.emit("QuantizeLinear", [data, scale, zero], node.outputs[:1], opset=OPSET)
