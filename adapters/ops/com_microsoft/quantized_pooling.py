"""Pooling of com.microsoft: averages of quantized images, and layouts with channels last."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.float32 import Float32, float32_scalar
from opshift.adapters.emit.quantization import as_scalar
from opshift.adapters.emit.shapes import reshape
from opshift.adapters.ops.com_microsoft.channels_last import channels_first, channels_last_order
from opshift.adapters.ops.com_microsoft.quantized import OPSET, quantized_operands

POOL_OPSET = 12
"""Opset of the emitted pooling: the first with MaxPool of 8-bit integers."""


@adapter("NhwcMaxPool", 1, 0, domain="com.microsoft")
def expand_nhwc_max_pool(node: Node, out: Rewriter) -> None:
    """Rewrite as MaxPool between two Transpose."""
    out = out.for_opset(POOL_OPSET, "")
    rank = len(node.attribute("kernel_shape")) + 2
    pooled = out.emit("MaxPool", [channels_first(node.inputs[0], rank, out)], **node.attributes)
    out.emit("Transpose", [pooled], node.outputs, perm=channels_last_order(rank))


@adapter("QLinearAveragePool", 1, 0, domain="com.microsoft", error="at most one step of the quantized result")
def expand_quantized_average_pool(node: Node, out: Rewriter) -> None:
    """Rewrite as AveragePool of dequantized numbers; the averages round after the zero point is added."""
    out.allow("approximate", "AveragePool adds up a window in a different order than the kernel")
    out = out.for_opset(OPSET, "")
    (operand,), result = quantized_operands(node, out)
    rank = len(node.attribute("kernel_shape")) + 2
    channels_last = node.attribute("channels_last", 0)
    data = operand.dequantize(out)
    if channels_last:
        data = channels_first(data, rank, out)
    data = out.emit("AveragePool", [data], opset=11, **node.without("channels_last"))
    if channels_last:
        data = out.emit("Transpose", [data], perm=channels_last_order(rank))
    scaled = Float32(data, out) / float32_scalar(result.scale, out)
    result.saturate((scaled + float32_scalar(result.zero_point, out)).name, node, out)


@adapter("QLinearGlobalAveragePool", 1, 0, domain="com.microsoft")
def expand_quantized_global_average_pool(node: Node, out: Rewriter) -> None:
    """Rewrite as ReduceSum of integers, scaled to the average."""
    out = out.for_opset(OPSET, "")
    (operand,), result = quantized_operands(node, out)
    rank = out.rank(operand.data)
    first = 1 if node.attribute("channels_last", 0) else 2
    axes = out.int64(range(first, first + rank - 2))
    data, zero = (out.cast(each, "int32") for each in (operand.data, operand.zero_point))
    total = out.emit("ReduceSum", [out.emit("Sub", [data, as_scalar(zero, out)]), axes])
    size = out.emit("ReduceProd", [out.emit("Gather", [out.emit("Shape", [data]), axes])], keepdims=0)
    count = Float32(out.cast(reshape(size, (), out), "float"), out)
    scale = float32_scalar(operand.scale, out) / (float32_scalar(result.scale, out) * count)
    average = Float32(out.cast(total, "float"), out) * scale
    unit = result._replace(scale=out.constant(1.0, "float"))
    unit.quantize(average.name, out, node.outputs)
