"""QLinearSoftmax of onnxruntime, whose kernel looks exponentials up in a table of floats."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.quantization import INTEGER_RANGES, as_scalar
from opshift.adapters.emit.shapes import computed_dimension, reshape_like
from opshift.adapters.ops.com_microsoft.quantized import OPSET, quantized_operands

LARGEST_FLOAT = float.fromhex("0x1.fffffep127")
SPARE_EXPONENT = 5.0
"""The kernel scales exponentials so that the sum of a row is at most the largest float, divided by e**5."""

SPARE_FACTOR = 2.0**-16
"""Factor that keeps products of exponentials and levels finite, and all of their bits."""


@adapter("QLinearSoftmax", 1, 0, domain="com.microsoft")
def expand_quantized_softmax(node: Node, out: Rewriter) -> None:
    """Rewrite as exponentials in double and the other steps in float, as the kernel rounds them."""
    out = out.for_opset(OPSET, "")
    (operand,), result = quantized_operands(node, out)
    data, axis = operand.data, node.attribute("axis", -1)
    is_flattened = node.attribute("opset") < OPSET
    if is_flattened:
        data, axis = out.emit("Flatten", [data], axis=axis), 1
    numbers = Expression(out.cast(data, "double"), "double", out)
    count = Expression(out.cast(computed_dimension(data, axis, out), "float"), "float", out)
    offset = (count.constant(LARGEST_FLOAT) / count).apply("Log").cast("double") - SPARE_EXPONENT
    scale = Expression(out.cast(as_scalar(operand.scale, out), "double"), "double", out)
    largest = Expression(out.emit("ReduceMax", [numbers.name], axes=[axis]), "double", out)
    shares = ((numbers - largest + offset / scale) * scale).apply("Exp").cast("float")
    total = Expression(out.emit("ReduceSum", [shares.name, out.int64([axis])]), "float", out)
    # The kernel rounds the reciprocal down, and the product and the quotient to float before half to even.
    reciprocal = Expression(as_scalar(result.scale, out), "float", out).apply("Reciprocal")
    levels = reciprocal.apply("Floor") * SPARE_FACTOR
    quotient = (shares * levels / total * (1 / SPARE_FACTOR)).apply("Round")
    if result.zero_point:
        quotient += Expression(out.cast(result.zero_point, "float"), "float", out)
    limited = quotient.apply("Min", float(INTEGER_RANGES[result.element_type][1]))
    value = out.cast(limited.name, result.element_type, 1 if is_flattened else node.outputs)
    if is_flattened:
        reshape_like(value, operand.data, out.emit("Shape", [operand.data]), out, node.outputs)
