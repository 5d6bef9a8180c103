"""Products and sums of 8-bit and 16-bit integers in 32 bits."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.cast import cast

ARITHMETIC_OPSET = 7
"""Opset that introduced arithmetic with broadcasting, also of 32-bit integers."""


@adapter("MatMulInteger16", 1, 0, domain="com.microsoft")
def expand_matmul_integer(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul of integers with 32 bits."""
    types = {out.element_type(name) for name in node.inputs}
    wide = "uint32" if types == {"uint16"} else "int32"
    out.emit("MatMul", [cast(name, wide, out) for name in node.inputs], node.outputs, domain="", opset=9)


@adapter("MulInteger", 1, 0, domain="com.microsoft")
def expand_mul_integer(node: Node, out: Rewriter) -> None:
    """Rewrite as Mul of the differences from the zero points."""
    out = out.for_opset(ARITHMETIC_OPSET, "")
    factors = [_centered(node.input(position), node.input(position + 1), out) for position in (0, 2)]
    out.emit("Mul", factors, node.outputs)


def _centered(value: str, zero_point: str, out: Rewriter) -> str:
    wide = cast(value, "int32", out)
    return out.emit("Sub", [wide, cast(zero_point, "int32", out)]) if zero_point else wide


@adapter("ReduceSumInteger", 1, 0, domain="com.microsoft")
def expand_reduce_sum_integer(node: Node, out: Rewriter) -> None:
    """Rewrite as ReduceSum of integers with 32 bits."""
    is_unsigned = out.element_type(node.inputs[0]) == "uint8"
    out, data = out.for_opset(11, ""), cast(node.inputs[0], "int32", out)
    # onnxruntime adds up no unsigned integers
    total = out.emit("ReduceSum", [data], 1 if is_unsigned else node.outputs, **node.attributes)
    if is_unsigned:
        cast(total, "uint32", out, node.outputs)
