"""Operators of com.microsoft on integers of 8 and 16 bits, and operators with channels last.

Quantized operators are elementwise operators, concatenation, pooling, products and Softmax. Kernels compute
with integers or floats, depending on the operator. Data with channels last is transposed to channels first.
"""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import Node, Rewriter, UnknownShape, adapter
from opshift.adapters.core.rewriter import Attributes
from opshift.adapters.emit.expression import Expression, cast, cast_between, fold
from opshift.adapters.emit.quantization import INTEGER_RANGES, Float32, as_scalar, float32_scalar
from opshift.adapters.emit.shapes import computed_dimension, reshape, reshape_like

OPSET = 13
"""Opset of the emitted nodes."""

STEP_ERROR = "at most one step of the quantized result"
"""Error bound of approximate operators with quantized results."""


class Quantized(NamedTuple):
    """Value names of a quantized tensor, its scale and its zero point; `zero_point` may be `""`."""

    data: str
    scale: str
    zero_point: str

    def dequantize(self, out: Rewriter) -> str:
        """Emit DequantizeLinear with a scalar scale and zero point."""
        zero_point = [as_scalar(self.zero_point, out)] if self.zero_point else []
        return out.emit("DequantizeLinear", [self.data, as_scalar(self.scale, out), *zero_point])


class QuantizedFormat(NamedTuple):
    """Scale, zero point and element type of a quantized result; `zero_point` may be `""`."""

    scale: str
    zero_point: str
    element_type: str

    def quantize(self, value: str, out: Rewriter, outputs: int | tuple[str, ...] = 1) -> str:
        """Emit QuantizeLinear with a scalar scale and zero point."""
        zero = as_scalar(self.zero_point, out) if self.zero_point else out.constant(0, self.element_type)
        return out.emit("QuantizeLinear", [value, as_scalar(self.scale, out), zero], outputs)

    def saturate(self, value: str, node: Node, out: Rewriter) -> None:
        """Round a scaled value, clip to the range of the element type, and cast to the node's output."""
        low, high = INTEGER_RANGES[self.element_type]
        value = out.emit("Clip", [out.emit("Round", [value])], opset=6, min=float(low), max=float(high))
        out.cast(value, self.element_type, node.outputs)


def quantized_operands(node: Node, out: Rewriter, start: int = 0) -> tuple[list[Quantized], QuantizedFormat]:
    """Return the operands from input `start` on, with three inputs each, and the format of the result."""
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


@adapter("QLinearAdd", 1, 0, domain="com.microsoft", error=STEP_ERROR)
def expand_quantized_add(node: Node, out: Rewriter) -> None:
    """Rewrite as arithmetic that rounds like onnxruntime's kernel, which fuses products and sums.

    The kernel adds the second operand first, or the first operand if the innermost loop repeats the first.
    """
    operands, result = quantized_operands(node, out)
    orders = _possible_swaps(*out.comparable_shapes([each.data for each in operands]))
    if len(orders) > 1:
        out.allow("approximate", "the order of the operands in the kernel depends on unknown dimensions")
    elif True in orders:
        operands.reverse()
    out = out.for_opset(OPSET, "")
    scale, zero = (float32_scalar(name, out) for name in (result.scale, result.zero_point))
    data, zeros, ratios = zip(*(_ratio(each, scale, out) for each in operands), strict=True)
    offset = zero - ratios[0].multiply_add(zeros[0], ratios[1] * zeros[1])
    total = data[0].multiply_add(ratios[0], data[1].multiply_add(ratios[1], offset))
    result.saturate(total.name, node, out)


def _possible_swaps(
    first: Sequence[int | None] | None, second: Sequence[int | None] | None
) -> frozenset[bool]:
    """Return whether the kernel swaps operands of these shapes: True, False, or both if it is unknown.

    The kernel swaps them if the first operand has size 1 in the innermost dimension in which an operand is
    larger, or in the first dimension of the shorter shape. Negative sizes are symbols; `None` is unknown.
    """
    if first is None:
        return frozenset((False, True))
    second = (None,) * len(first) if second is None else second
    pairs = list(zip(reversed(first or (1,)), reversed(second or (1,)), strict=False))
    swaps = set()
    for index, (size, other) in enumerate(pairs, 1):
        is_one, is_other_one = (each is None or each < 0 or each == 1 for each in (size, other))
        if size != 1:
            swaps.add(False)
        if is_one and (index == len(pairs) or other is None or other not in (1, size)):
            swaps.add(True)
        if not (is_one and is_other_one):
            break
    return frozenset(swaps)


def _ratio(operand: Quantized, scale: Float32, out: Rewriter) -> tuple[Float32, Float32, Float32]:
    """Return the data, the zero point, and the operand's scale divided by `scale`."""
    # The data is not cast to float, because `multiply_add` casts the integers to double.
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
    """Rewrite as Concat of operands that are dequantized, and quantized with the scale of the result."""
    out = out.for_opset(OPSET, "")
    result = QuantizedFormat(node.inputs[0], node.inputs[1], out.element_type(node.inputs[1]))
    operands = [Quantized(*node.inputs[index : index + 3]) for index in range(2, len(node.inputs), 3)]
    parts = [result.quantize(each.dequantize(out), out) for each in operands]
    out.emit("Concat", parts, node.outputs, axis=node.attribute("axis"))


@adapter("QLinearWhere", 1, 0, domain="com.microsoft")
def expand_quantized_where(node: Node, out: Rewriter) -> None:
    """Rewrite as Where of operands that are dequantized, and quantized with the scale of the result."""
    out = out.for_opset(OPSET, "")
    operands, result = quantized_operands(node, out, start=1)
    parts = [result.quantize(each.dequantize(out), out) for each in operands]
    out.emit("Where", [node.inputs[0], *parts], node.outputs, opset=16)


def channels_first(data: str, rank: int, out: Rewriter) -> str:
    """Emit a Transpose that moves the channels from the last dimension to dimension 1."""
    return out.emit("Transpose", [data], perm=(0, rank - 1, *range(1, rank - 1)))


def channels_last_order(rank: int) -> tuple[int, ...]:
    """Return the permutation that moves the channels to the last dimension."""
    return (0, *range(2, rank), 1)


@adapter("NhwcConv", 1, 0, domain="com.microsoft")
def expand_nhwc_conv(node: Node, out: Rewriter) -> None:
    """Rewrite as Conv between two Transpose nodes."""
    out = out.for_opset(11, "")
    _convolve("Conv", node.inputs, node.attributes, node, out)


@adapter("NhwcFusedConv", 1, 0, domain="com.microsoft")
def expand_nhwc_fused_conv(node: Node, out: Rewriter) -> None:
    """Rewrite as FusedConv between Transpose nodes."""
    inputs, residual = list(node.inputs), node.input(3)
    if residual:
        inputs[3] = channels_first(residual, _rank_of_data(node, out), out.for_opset(11, ""))
    _convolve("FusedConv", inputs, node.attributes, node, out.for_opset(1))


@adapter("QLinearConv", 1, 0, domain="com.microsoft")
def expand_quantized_conv(node: Node, out: Rewriter) -> None:
    """Rewrite as QLinearConv of ONNX, between two Transpose nodes if the channels are last."""
    out, attributes = out.for_opset(10, ""), node.without("channels_last")
    if node.attribute("channels_last", 0):
        _convolve("QLinearConv", node.inputs, attributes, node, out)
    else:
        out.emit("QLinearConv", node.inputs, node.outputs, **attributes)


def _convolve(op_type: str, inputs: Sequence[str], attributes: Attributes, node: Node, out: Rewriter) -> None:
    """Emit the channels-first operator `op_type` between Transposes, for a channels-last node."""
    rank, standard = _rank_of_data(node, out), out.for_opset(11, "")
    data = channels_first(inputs[0], rank, standard)
    result = out.emit(op_type, [data, *inputs[1:]], **attributes)
    standard.emit("Transpose", [result], node.outputs, perm=channels_last_order(rank))


def _rank_of_data(node: Node, out: Rewriter) -> int:
    sizes = node.attribute("kernel_shape", None)
    return out.rank(node.inputs[0]) if sizes is None else len(sizes) + 2


POOL_OPSET = 12
"""Opset of the emitted pooling: the first with MaxPool of 8-bit integers."""


@adapter("NhwcMaxPool", 1, 0, domain="com.microsoft")
def expand_nhwc_max_pool(node: Node, out: Rewriter) -> None:
    """Rewrite as MaxPool between two Transpose nodes."""
    out = out.for_opset(POOL_OPSET, "")
    rank = len(node.attribute("kernel_shape")) + 2
    pooled = out.emit("MaxPool", [channels_first(node.inputs[0], rank, out)], **node.attributes)
    out.emit("Transpose", [pooled], node.outputs, perm=channels_last_order(rank))


@adapter("QLinearAveragePool", 1, 0, domain="com.microsoft", error=STEP_ERROR)
def expand_quantized_average_pool(node: Node, out: Rewriter) -> None:
    """Rewrite as AveragePool of dequantized data; add the zero point before the rounding."""
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
    """Return data and attributes for AveragePool; emit a Pad if a window may end after the declared padding.

    Kernels divide by the full size of this window, but AveragePool by the elements in the padded data.
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
    """Return the trailing padding that completes the last window; for an unknown size, an upper bound.

    Raises:
        UnknownShape: the size is unknown, and decides whether the last window starts after the data.
    """
    if size is None:
        if end - kernel + stride > 0:
            name = node.inputs[0]
            raise UnknownShape(
                f"the spatial sizes of {name!r} are unknown, which decide whether ceil_mode adds a window",
                name,
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


@adapter("QGemm", 1, 0, domain="com.microsoft")
def expand_quantized_gemm(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMulInteger, Add and a Mul by the scales; quantize if the result has a zero point."""
    out = out.for_opset(OPSET, "")
    first, first_scale, first_zero, second, second_scale, second_zero, addend, scale, zero = (
        node.input(position) for position in range(9)
    )
    operands = [
        out.emit("Transpose", [name], perm=(1, 0)) if node.attribute(swap, 0) else name
        for name, swap in ((first, "transA"), (second, "transB"))
    ]
    product = out.emit("MatMulInteger", [*operands, first_zero, second_zero], opset=10)
    if addend:
        product = out.emit("Add", [product, addend])
    factor = Float32(node.attribute("alpha", 1.0), out) * float32_scalar(first_scale, out)
    factor *= _scale(second_scale, out)
    if scale:
        factor /= float32_scalar(scale, out)
    operands = [out.cast(product, "float"), factor.name]
    # Without a zero point, the result is not rounded, even with a scale.
    if not zero:
        out.emit("Mul", operands, node.outputs)
        return
    result = QuantizedFormat(out.constant(1.0, "float"), zero, out.element_type(first))
    result.quantize(out.emit("Mul", operands), out, node.outputs)


def _scale(name: str, out: Rewriter) -> Float32:
    """Return a scale as float32: a scalar, or the unchanged value if it may have one number per column."""
    constant = out.constant_value(name)
    return float32_scalar(name, out) if constant and len(constant.values) == 1 else Float32(name, out)


@adapter("DynamicQuantizeMatMul", 1, 0, domain="com.microsoft")
def expand_dynamic_quantize_matmul(node: Node, out: Rewriter) -> None:
    """Rewrite as DynamicQuantizeLinear, MatMulInteger, and a Mul by the scales."""
    out = out.for_opset(OPSET, "")
    data, weights, scale, zero, bias = (node.input(position) for position in range(5))
    quantized, data_scale, data_zero = out.emit_all("DynamicQuantizeLinear", [data], 3, opset=11)
    _scaled_product([quantized, weights, data_zero, zero], [data_scale, scale], bias, node, out)


@adapter("MatMulIntegerToFloat", 1, 0, domain="com.microsoft")
def expand_matmul_integer_to_float(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMulInteger and a Mul by the scales."""
    out = out.for_opset(OPSET, "")
    first, second, first_scale, second_scale, first_zero, second_zero, bias = (
        node.input(position) for position in range(7)
    )
    _scaled_product([first, second, first_zero, second_zero], [first_scale, second_scale], bias, node, out)


def _scaled_product(operands: list[str], scales: list[str], bias: str, node: Node, out: Rewriter) -> None:
    """Emit the product of integers times both scales, plus the bias, in the type of the scales.

    The computation is in float32, because float16 cannot represent large sums.
    """
    element_type = out.element_type(node.inputs[2])
    while not operands[-1]:
        operands.pop()
    if out.known_rank(node.inputs[0]) == out.known_rank(node.inputs[1]) == 1:
        # The product is a scalar, which the shape (1,) would broadcast to rank 1.
        scales = [as_scalar(each, out) for each in scales]
        bias = bias and as_scalar(bias, out)
    product = out.cast(out.emit("MatMulInteger", operands, opset=10), "float")
    scale = fold("Mul", [cast_between(each, element_type, "float", out) for each in scales], out)
    is_float, outputs = element_type == "float", node.outputs
    result = out.emit("Mul", [product, scale], 1 if bias or not is_float else outputs)
    if bias:
        bias = cast_between(bias, element_type, "float", out)
        result = out.emit("Add", [result, bias], outputs if is_float else 1)
    if not is_float:
        out.cast(result, element_type, outputs)


LARGEST_FLOAT = float.fromhex("0x1.fffffep127")
SPARE_EXPONENT = 5.0
"""Exponent of the margin: the exponentials of a row sum to at most `LARGEST_FLOAT * e**-5`."""

SPARE_FACTOR = 2.0**-16
"""Factor that keeps `shares * levels` finite: a power of 2, so that the multiplication does not round."""


@adapter("QLinearSoftmax", 1, 0, domain="com.microsoft")
def expand_quantized_softmax(node: Node, out: Rewriter) -> None:
    """Rewrite as arithmetic, with Exp of doubles and all other steps in float, as in the kernel."""
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
    # The kernel rounds 1 / scale down, product and quotient to float, and the result half to even.
    reciprocal = Expression(as_scalar(result.scale, out), "float", out).apply("Reciprocal")
    levels = reciprocal.apply("Floor") * SPARE_FACTOR
    quotient = (shares * levels / total * (1 / SPARE_FACTOR)).apply("Round")
    if result.zero_point:
        quotient += Expression(out.cast(result.zero_point, "float"), "float", out)
    limited = quotient.apply("Min", float(INTEGER_RANGES[result.element_type][1]))
    value = out.cast(limited.name, result.element_type, 1 if is_flattened else node.outputs)
    if is_flattened:
        reshape_like(value, operand.data, out.emit("Shape", [operand.data]), out, node.outputs)


ARITHMETIC_OPSET = 7
"""First opset in which Mul and Sub broadcast and support 32-bit integers."""


@adapter("MatMulInteger16", 1, 0, domain="com.microsoft")
def expand_matmul_integer(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul of 32-bit integers."""
    types = {out.element_type(name) for name in node.inputs}
    wide = "uint32" if types == {"uint16"} else "int32"
    out.emit("MatMul", [cast(name, wide, out) for name in node.inputs], node.outputs, domain="", opset=9)


@adapter("MulInteger", 1, 0, domain="com.microsoft")
def expand_mul_integer(node: Node, out: Rewriter) -> None:
    """Rewrite as Sub of the zero points, and Mul of the differences."""
    out = out.for_opset(ARITHMETIC_OPSET, "")
    factors = [_centered_integers(node.input(position), node.input(position + 1), out) for position in (0, 2)]
    out.emit("Mul", factors, node.outputs)


def _centered_integers(value: str, zero_point: str, out: Rewriter) -> str:
    wide = cast(value, "int32", out)
    return out.emit("Sub", [wide, cast(zero_point, "int32", out)]) if zero_point else wide


@adapter("ReduceSumInteger", 1, 0, domain="com.microsoft")
def expand_reduce_sum_integer(node: Node, out: Rewriter) -> None:
    """Rewrite as ReduceSum of 32-bit integers."""
    is_unsigned = out.element_type(node.inputs[0]) == "uint8"
    out, data = out.for_opset(11, ""), cast(node.inputs[0], "int32", out)
    # ReduceSum of onnxruntime does not support unsigned integers.
    total = out.emit("ReduceSum", [data], 1 if is_unsigned else node.outputs, **node.attributes)
    if is_unsigned:
        cast(total, "uint32", out, node.outputs)
