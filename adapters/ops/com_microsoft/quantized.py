"""Element-wise operators and concatenation of com.microsoft on tensors of 8-bit integers."""

from typing import NamedTuple

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.float32 import Float32, float32_scalar
from opshift.adapters.emit.quantization import INTEGER_RANGES, as_scalar

OPSET = 13
"""Opset of the emitted nodes."""


class Quantized(NamedTuple):
    """A quantized tensor by the names of its parts; `zero_point` may be empty."""

    data: str
    scale: str
    zero_point: str

    def dequantize(self, out: Rewriter) -> str:
        """Emit DequantizeLinear with scalars."""
        zero_point = [as_scalar(self.zero_point, out)] if self.zero_point else []
        return out.emit("DequantizeLinear", [self.data, as_scalar(self.scale, out), *zero_point])


class QuantizedFormat(NamedTuple):
    """Scale, zero point and element type that a result is quantized with; `zero_point` may be empty."""

    scale: str
    zero_point: str
    element_type: str

    def quantize(self, value: str, out: Rewriter, outputs: int | tuple[str, ...] = 1) -> str:
        """Emit QuantizeLinear with scalars."""
        zero = as_scalar(self.zero_point, out) if self.zero_point else out.constant(0, self.element_type)
        return out.emit("QuantizeLinear", [value, as_scalar(self.scale, out), zero], outputs)

    def saturate(self, value: str, node: Node, out: Rewriter) -> None:
        """Emit the output of a node: a value that has been scaled, rounded and limited."""
        low, high = INTEGER_RANGES[self.element_type]
        value = out.emit("Clip", [out.emit("Round", [value])], opset=6, min=float(low), max=float(high))
        out.cast(value, self.element_type, node.outputs)


def quantized_operands(node: Node, out: Rewriter, start: int = 0) -> tuple[list[Quantized], QuantizedFormat]:
    """Return the quantized operands from an input on, and the format of the result, which follows them."""
    end = start + (len(node.inputs) - start) // 3 * 3
    operands = [Quantized(*node.inputs[index : index + 3]) for index in range(start, end, 3)]
    return operands, QuantizedFormat(
        node.inputs[end], node.input(end + 1), out.element_type(operands[0].data)
    )


@adapter(("QLinearSigmoid", "QLinearLeakyRelu", "QLinearReduceMean"), 1, 0, domain="com.microsoft")
def expand_quantized_function(node: Node, out: Rewriter) -> None:
    """Rewrite as DequantizeLinear, the standard operator and QuantizeLinear."""
    out = out.for_opset(OPSET, "")
    (operand,), result = quantized_operands(node, out)
    value = out.emit(node.op_type.removeprefix("QLinear"), [operand.dequantize(out)], **node.attributes)
    result.quantize(value, out, node.outputs)


@adapter("QLinearAdd", 1, 0, domain="com.microsoft")
def expand_quantized_add(node: Node, out: Rewriter) -> None:
    """Rewrite as arithmetic that rounds like onnxruntime's kernel, which fuses products and sums."""
    out = out.for_opset(OPSET, "")
    operands, result = quantized_operands(node, out)
    if _is_repeated(operands[0].data, out) and not _is_repeated(operands[1].data, out):
        operands.reverse()
    scale, zero = (float32_scalar(name, out) for name in (result.scale, result.zero_point))
    data, zeros, ratios = zip(*(_ratio(each, scale, out) for each in operands), strict=True)
    offset = zero - ratios[0].multiply_add(zeros[0], ratios[1] * zeros[1])
    total = data[0].multiply_add(ratios[0], data[1].multiply_add(ratios[1], offset))
    result.saturate(total.name, node, out)


def _is_repeated(name: str, out: Rewriter) -> bool:
    """Return whether broadcasting repeats each element, for which the kernel exchanges the operands."""
    shape = out.shape(name)
    return shape is not None and shape[-1:] in ((), (1,))


def _ratio(operand: Quantized, scale: Float32, out: Rewriter) -> tuple[Float32, Float32, Float32]:
    """Return the data, the zero point, and the quotient of the scale and another one."""
    # `multiply_add` casts the integers to double.
    return (
        Float32(operand.data, out),
        float32_scalar(operand.zero_point, out),
        float32_scalar(operand.scale, out) / scale,
    )


@adapter("QLinearMul", 1, 0, domain="com.microsoft")
def expand_quantized_mul(node: Node, out: Rewriter) -> None:
    """Rewrite as arithmetic that rounds after the zero point is added, like onnxruntime's kernel."""
    out = out.for_opset(OPSET, "")
    (first, second), result = quantized_operands(node, out)
    scales = [float32_scalar(each, out) for each in (first.scale, second.scale, result.scale)]
    product = _centered(first, out) * _centered(second, out) * (scales[0] * scales[1] / scales[2])
    result.saturate((product + float32_scalar(result.zero_point, out)).name, node, out)


def _centered(operand: Quantized, out: Rewriter) -> Float32:
    """Return the data minus the zero point."""
    data = Float32(out.cast(operand.data, "float"), out)
    return data - float32_scalar(operand.zero_point, out) if operand.zero_point else data


@adapter("QLinearConcat", 1, 0, domain="com.microsoft")
def expand_quantized_concat(node: Node, out: Rewriter) -> None:
    """Rewrite as Concat of tensors that are dequantized, and quantized with the scale of the result."""
    out = out.for_opset(OPSET, "")
    result = QuantizedFormat(node.inputs[0], node.inputs[1], out.element_type(node.inputs[1]))
    operands = [Quantized(*node.inputs[index : index + 3]) for index in range(2, len(node.inputs), 3)]
    parts = [result.quantize(each.dequantize(out), out) for each in operands]
    out.emit("Concat", parts, node.outputs, axis=node.attribute("axis"))


@adapter("QLinearWhere", 1, 0, domain="com.microsoft")
def expand_quantized_where(node: Node, out: Rewriter) -> None:
    """Rewrite as Where of tensors that are dequantized, and quantized with the scale of the result."""
    out = out.for_opset(OPSET, "")
    operands, result = quantized_operands(node, out, start=1)
    parts = [result.quantize(each.dequantize(out), out) for each in operands]
    out.emit("Where", [node.inputs[0], *parts], node.outputs, opset=16)
