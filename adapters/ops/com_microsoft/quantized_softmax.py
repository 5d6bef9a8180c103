"""QLinearSoftmax of onnxruntime, whose kernel computes with integers."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.quantization import INTEGER_RANGES, as_scalar
from opshift.adapters.emit.shapes import computed_dimension, reshape_like
from opshift.adapters.ops.com_microsoft.quantized import OPSET, quantized_operands

LARGEST_SHARE, LARGEST_TOTAL = 2.0**23 - 1, 2.0**32 - 1
"""Limits of the integers that represent an exponential, and the sum of all of a row."""


@adapter("QLinearSoftmax", 1, 0, domain="com.microsoft")
def expand_quantized_softmax(node: Node, out: Rewriter) -> None:
    """Rewrite as arithmetic in double, which represents the integers of the kernel."""
    out = out.for_opset(OPSET, "")
    (operand,), result = quantized_operands(node, out)
    data, axis = operand.data, node.attribute("axis", -1)
    is_flattened = node.attribute("opset") < OPSET
    if is_flattened:
        data, axis = out.emit("Flatten", [data], axis=axis), 1
    numbers = Expression(out.cast(data, "double"), "double", out)
    count = Expression(out.cast(computed_dimension(data, axis, out), "double"), "double", out)
    unit = (count.constant(LARGEST_TOTAL) / count).apply("Min", LARGEST_SHARE)
    scale = Expression(out.cast(as_scalar(operand.scale, out), "double"), "double", out)
    largest = Expression(out.emit("ReduceMax", [numbers.name], axes=[axis]), "double", out)
    shares = (((numbers - largest) * scale).apply("Exp") * unit).apply("Round")
    total = Expression(out.emit("ReduceSum", [shares.name, out.int64([axis])]), "double", out)
    # The kernel rounds the reciprocal down, and the quotient half up.
    reciprocal = Expression(as_scalar(result.scale, out), "float", out).apply("Reciprocal")
    levels = reciprocal.apply("Floor").cast("double")
    quotient = ((shares * levels + (total * 0.5).apply("Floor")) / total).apply("Floor")
    if result.zero_point:
        quotient += Expression(out.cast(result.zero_point, "double"), "double", out)
    limited = quotient.apply("Min", float(INTEGER_RANGES[result.element_type][1]))
    value = out.cast(limited.name, result.element_type, 1 if is_flattened else node.outputs)
    if is_flattened:
        reshape_like(value, operand.data, out.emit("Shape", [operand.data]), out, node.outputs)
