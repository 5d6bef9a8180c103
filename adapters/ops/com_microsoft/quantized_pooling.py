"""Pooling of com.microsoft: averages of quantized images, and layouts with channels last."""

from opshift.adapters import Node, Rewriter, UnknownShape, adapter
from opshift.adapters.core.rewriter import Attributes
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
    data, settings = _with_counted_padding(data, node, out)
    data = out.emit("AveragePool", [data], opset=11, **settings)
    if channels_last:
        data = out.emit("Transpose", [data], perm=channels_last_order(rank))
    scaled = Float32(data, out) / float32_scalar(result.scale, out)
    result.saturate((scaled + float32_scalar(result.zero_point, out)).name, node, out)


def _with_counted_padding(data: str, node: Node, out: Rewriter) -> tuple[str, Attributes]:
    """Return padded data and the attributes of AveragePool, where a window may end after the padding.

    Kernels divide by all elements of such a window, and AveragePool by those within the padded data.
    """
    settings = node.without("channels_last")
    is_same = node.attribute("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")
    if is_same or not (node.attribute("ceil_mode", 0) and node.attribute("count_include_pad", 0)):
        return data, settings
    kernel = node.attribute("kernel_shape")
    pads = node.attribute("pads", (0,) * (2 * len(kernel)))
    strides = node.attribute("strides", (1,) * len(kernel))
    first = 1 if node.attribute("channels_last", 0) else 2
    ends = [
        _end_padding(node, out.known_dimension(node.inputs[0], first + axis), *sizes)
        for axis, sizes in enumerate(zip(kernel, strides, pads, pads[len(kernel) :], strict=False))
    ]
    around = out.int64([0, 0, *pads[: len(kernel)], 0, 0, *ends])
    data = out.emit("Pad", [data, around, out.constant(0.0, "float")])
    return data, {"kernel_shape": kernel, "strides": strides}


def _end_padding(node: Node, size: int | None, kernel: int, stride: int, start: int, end: int) -> int:
    """Return the padding after the data with which the last window is complete.

    Raises:
        UnknownShape: it depends on the size whether the last window would start after the data.
    """
    if size is None:
        if end - kernel + stride > 0:
            name = node.inputs[0]
            raise UnknownShape(
                f"the sizes of {name!r}, which decide about the last window, are unknown", name
            )
        return end + stride - 1
    windows = -(-(size + start + end - kernel) // stride) + 1
    if (windows - 1) * stride >= size + start:
        windows -= 1
    return (windows - 1) * stride + kernel - size - start


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
