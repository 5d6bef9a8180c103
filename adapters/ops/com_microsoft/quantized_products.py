"""Matrix products of com.microsoft: MatMulInteger, scaled to floats or quantized again."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.cast import cast_between
from opshift.adapters.emit.expression import fold
from opshift.adapters.emit.float32 import Float32, float32_scalar
from opshift.adapters.ops.com_microsoft.quantized import OPSET, QuantizedFormat


@adapter("QGemm", 1, 0, domain="com.microsoft")
def expand_quantized_gemm(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMulInteger and Add, scaled, and quantized if the result has a zero point."""
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
    # Without a zero point, the result is not rounded, even if it has a scale.
    if not zero:
        out.emit("Mul", operands, node.outputs)
        return
    result = QuantizedFormat(out.constant(1.0, "float"), zero, out.element_type(first))
    result.quantize(out.emit("Mul", operands), out, node.outputs)


def _scale(name: str, out: Rewriter) -> Float32:
    """Return a scale, which may have one number per column."""
    constant = out.constant_value(name)
    return float32_scalar(name, out) if constant and len(constant.values) == 1 else Float32(name, out)


@adapter("DynamicQuantizeMatMul", 1, 0, domain="com.microsoft")
def expand_dynamic_quantize_matmul(node: Node, out: Rewriter) -> None:
    """Rewrite as DynamicQuantizeLinear, and MatMulInteger scaled to floats."""
    out = out.for_opset(OPSET, "")
    data, weights, scale, zero, bias = (node.input(position) for position in range(5))
    quantized, data_scale, data_zero = out.emit_all("DynamicQuantizeLinear", [data], 3, opset=11)
    _scaled_product([quantized, weights, data_zero, zero], [data_scale, scale], bias, node, out)


@adapter("MatMulIntegerToFloat", 1, 0, domain="com.microsoft")
def expand_matmul_integer_to_float(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMulInteger, scaled to floats."""
    out = out.for_opset(OPSET, "")
    first, second, first_scale, second_scale, first_zero, second_zero, bias = (
        node.input(position) for position in range(7)
    )
    _scaled_product([first, second, first_zero, second_zero], [first_scale, second_scale], bias, node, out)


def _scaled_product(operands: list[str], scales: list[str], bias: str, node: Node, out: Rewriter) -> None:
    """Emit the product of integers times both scales, plus the bias, in the type of the scales.

    It is computed in float32, because float16 cannot represent large sums.
    """
    element_type = out.element_type(node.inputs[2])
    while not operands[-1]:
        operands.pop()
    product = out.cast(out.emit("MatMulInteger", operands, opset=10), "float")
    scale = fold("Mul", [cast_between(each, element_type, "float", out) for each in scales], out)
    is_float, outputs = element_type == "float", node.outputs
    result = out.emit("Mul", [product, scale], 1 if bias or not is_float else outputs)
    if bias:
        bias = cast_between(bias, element_type, "float", out)
        result = out.emit("Add", [result, bias], outputs if is_float else 1)
    if not is_float:
        out.cast(result, element_type, outputs)
