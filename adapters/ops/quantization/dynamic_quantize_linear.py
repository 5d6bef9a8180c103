"""DynamicQuantizeLinear (introduced in opset 11), as arithmetic on the range of its input."""

from opshift.adapters import Node, Rewriter, adapter

OPSET = 10
"""Opset of the emitted nodes, except Round, which opset 11 introduced."""


@adapter("DynamicQuantizeLinear", 11, 10)
def replace_dynamic_quantize_linear(node: Node, out: Rewriter) -> None:
    """Emit the scale, the range extended to include 0 divided by 255, and the zero point.

    If all elements are 0 the scale is 1, as in runtimes.
    """
    out = out.for_opset(OPSET)
    data = node.inputs[0]
    origin, levels = out.constant(0.0, "float"), out.constant(255.0, "float")
    low = out.emit("ReduceMin", [data], keepdims=0)
    high = out.emit("ReduceMax", [data], keepdims=0)
    low = out.emit("Min", [low, origin])
    high = out.emit("Max", [high, origin])
    step = out.emit("Div", [out.emit("Sub", [high, low]), levels])
    # Add 1 to a scale of 0, which would divide by zero.
    is_nonzero = out.cast(step, "bool")
    is_zero = out.emit("Not", [is_nonzero])
    correction = out.cast(is_zero, "float")
    scale, zero_point = (node.output(position) or out.fresh("scale") for position in (1, 2))
    out.emit("Add", [step, correction], [scale])
    offset = out.emit("Sub", [origin, out.emit("Div", [low, scale])])
    offset = out.emit("Clip", [offset], min=0.0, max=255.0)
    offset = out.emit("Round", [offset], opset=11)
    out.cast(offset, "uint8", [zero_point])
    out.emit("QuantizeLinear", [data, scale, zero_point], node.outputs[:1])
