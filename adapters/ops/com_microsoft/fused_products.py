"""MatMul, Gemm and Conv of onnxruntime with transpositions, factors, residuals and activations."""

from collections.abc import Sequence

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.ops.com_microsoft.activations import ACTIVATIONS, emit_activation

OPSET = 13
"""Opset of the emitted products."""

PARAMETERS = ("alpha", "beta", "gamma", "axis")
"""Parameters of activations that nodes name as `activation_alpha` and so on."""


@adapter(("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation"), 1, 0, domain="com.microsoft")
def expand_fused_matmul(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul of transposed operands, times `alpha`, and the activation."""
    out = out.for_opset(OPSET, "")
    activation, alpha = node.attribute("activation"), node.attribute("alpha", 1.0)
    _require_matrices(node, out)
    operands = [_transposed(node, position, out) for position in (0, 1)]
    result = 1 if activation else node.outputs
    product = out.emit("MatMul", operands, result if alpha == 1 else 1)
    if alpha != 1:
        factor = out.constant(alpha, out.element_type(node.inputs[0]))
        product = out.emit("Mul", [product, factor], result)
    if activation:
        _activate(product, activation, node, out)


def _require_matrices(node: Node, out: Rewriter) -> None:
    """Refuse a vector if the other operand is transposed, which kernels ignore."""
    for name in ("transA", "transB", "transBatchA", "transBatchB"):
        first, second = node.inputs if name.endswith("A") else node.inputs[::-1]
        if node.attribute(name, 0) and out.rank(first) > 1 and out.rank(second) == 1:
            reason = f"{name} is set, and the other operand is a vector, for which kernels ignore it"
            raise CannotConvert(reason, "result.runtime-dependent", subject=name)


def _transposed(node: Node, position: int, out: Rewriter) -> str:
    """Return an operand with its last two dimensions swapped, or its first one moved after the batches."""
    name, letter = node.inputs[position], "AB"[position]
    swaps, moves = (node.attribute(f"{verb}{letter}", 0) for verb in ("trans", "transBatch"))
    rank = out.rank(name) if swaps or moves else 0
    if rank < 2:
        return name
    order = [*range(1, rank - 1), 0, rank - 1] if moves else [*range(rank)]
    if swaps:
        order[-2:] = order[-1], order[-2]
    return out.emit("Transpose", [name], perm=order)


@adapter("FusedGemm", 1, 0, domain="com.microsoft")
def expand_fused_gemm(node: Node, out: Rewriter) -> None:
    """Rewrite as Gemm and the activation."""
    out = out.for_opset(OPSET, "")
    activation = node.attribute("activation")
    kept = {name: value for name, value in node.attributes.items() if not name.startswith("activation")}
    product = out.emit("Gemm", node.inputs, 1 if activation else node.outputs, **kept)
    if activation:
        _activate(product, activation, node, out)


def _activate(product: str, activation: bytes, node: Node, out: Rewriter) -> None:
    given = {name: node.attribute(f"activation_{name}") for name in PARAMETERS}
    present = {name: value for name, value in given.items() if value is not None}
    emit_activation(product, activation.decode(), present, node, out)


@adapter("FusedConv", 1, 0, domain="com.microsoft")
def expand_fused_conv(node: Node, out: Rewriter) -> None:
    """Rewrite as Conv, Add if there is a residual, and the activation."""
    out = out.for_opset(11, "")
    activation, residual = node.attribute("activation", b"").decode(), node.input(3)
    result = 1 if activation else node.outputs
    settings = node.without("activation", "activation_params")
    product = out.emit("Conv", node.inputs[:3], 1 if residual else result, **settings)
    if residual:
        product = out.emit("Add", [product, residual], result, opset=7)
    if activation:
        values: Sequence[float] = node.attribute("activation_params", ())
        names = ACTIVATIONS.get(activation, ())
        if len(values) != len(names):
            reason = f"{activation} has {len(names)} parameters, and activation_params has {len(values)}"
            raise CannotConvert(reason, "node.invalid", subject="activation_params")
        emit_activation(product, activation, dict(zip(names, values, strict=True)), node, out)
