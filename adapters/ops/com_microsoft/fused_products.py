"""Fused MatMul, Gemm and Conv of onnxruntime, and Gelu and Dropout of onnxruntime that add a bias.

MatMul, Gemm and Conv may be fused with a transposition, a scale, a residual or an activation.
"""

from collections.abc import Mapping, Sequence

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.expression import cast, cast_between

ACTIVATIONS = {
    "Celu": ("alpha",), "Clip": ("min", "max"), "Elu": ("alpha",), "Gelu": (),
    "HardSigmoid": ("alpha", "beta"), "HardSwish": (), "LeakyRelu": ("alpha",), "Relu": (),
    "Selu": ("alpha", "gamma"), "Sigmoid": (), "Softmax": ("axis",), "Softplus": (), "Softsign": (),
    "Tanh": (), "ThresholdedRelu": ("alpha",),
}  # fmt: skip
"""Activations that may be fused, with their attributes in the order of `activation_params`."""

CLIP_OPSET, ACTIVATION_OPSET = 6, 20
"""Opset of Clip, in which the limits are attributes, and opset of the other activations."""


@adapter("FastGelu", 1, 0, domain="com.microsoft")
def expand_fast_gelu(node: Node, out: Rewriter) -> None:
    """Rewrite as Add, if there is a bias, and Gelu with the tanh approximation."""
    _emit_fast_gelu(_with_bias(node.inputs[0], node.input(1), out), node, out)


@adapter("GemmFastGelu", 1, 0, domain="com.microsoft")
def expand_gemm_fast_gelu(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul, Add and Gelu with the tanh approximation."""
    product = out.emit("MatMul", node.inputs[:2], domain="", opset=13)
    _emit_fast_gelu(_with_bias(product, node.input(2), out), node, out)


def _with_bias(data: str, bias: str, out: Rewriter) -> str:
    return out.emit("Add", [data, bias], domain="", opset=14) if bias else data


def _emit_fast_gelu(data: str, node: Node, out: Rewriter) -> None:
    out.emit("Gelu", [data], node.outputs, domain="", opset=20, approximate=b"tanh")


@adapter("BiasSplitGelu", 1, 0, domain="com.microsoft")
def expand_bias_split_gelu(node: Node, out: Rewriter) -> None:
    """Rewrite as Add, Split, Gelu and Mul."""
    # Before opset 18, Split without sizes requires equal parts, like this operator.
    out = out.for_opset(14, "")
    left, right = out.emit_all("Split", [out.emit("Add", node.inputs)], 2, opset=13, axis=-1)
    out.emit("Mul", [left, out.emit("Gelu", [right], opset=20)], node.outputs)


@adapter("BiasDropout", 1, 0, domain="com.microsoft")
def expand_bias_dropout(node: Node, out: Rewriter) -> None:
    """Rewrite as Add, Dropout and, with a residual, Add."""
    out = out.for_opset(14, "")
    residual = node.input(2)
    dropped = [out.fresh("dropped"), *node.outputs[1:]] if residual else node.outputs
    data = [out.emit("Add", node.inputs[:2]), *node.inputs[3:]]
    kept = out.emit("Dropout", data, dropped, opset=13, seed=node.attribute("seed"))
    if residual:
        out.emit("Add", [kept, residual], node.outputs[:1])


def emit_activation(
    value: str, activation: str, parameters: Mapping[str, float], node: Node, out: Rewriter
) -> None:
    """Emit an activation of `value` with the given parameters, to the outputs of the node.

    Raises:
        CannotConvert: `ACTIVATIONS` does not contain the activation or a parameter.
    """
    unknown = parameters.keys() - ACTIVATIONS.get(activation, ())
    if activation not in ACTIVATIONS or unknown:
        what = f"parameters {sorted(unknown)} of " if unknown else ""
        reason = f"no standard operator computes {what}the activation {activation!r}"
        raise CannotConvert(reason, "attribute.unsupported", subject="activation")
    opset = CLIP_OPSET if activation == "Clip" else ACTIVATION_OPSET
    out.emit(activation, [value], node.outputs, domain=None, opset=opset, **parameters)


OPSET = 13
"""Opset of the emitted products."""

PARAMETERS = ("alpha", "beta", "gamma", "axis")
"""Parameters of activations; the attributes of a fused node are `activation_alpha` and so on."""


@adapter(("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation"), 1, 0, domain="com.microsoft")
def expand_fused_matmul(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul of transposed operands, times `alpha`, and the activation."""
    out = out.for_opset(OPSET, "")
    activation, alpha = node.attribute("activation"), node.attribute("alpha", 1.0)
    _require_matrices(node, out)
    operands = [_transposed(node, position, out) for position in (0, 1)]
    result = 1 if activation else node.outputs
    if alpha == 1:
        product = out.emit("MatMul", operands, result)
    else:
        product = _scaled_product(operands, alpha, out.element_type(node.inputs[0]), result, out)
    if activation:
        _apply_activation(product, activation, node, out)


def _scaled_product(
    operands: Sequence[str], alpha: float, element_type: str, result: int | Sequence[str], out: Rewriter
) -> str:
    """Return the matrix product times `alpha`, rounded once, because the product alone may exceed float16."""
    is_short = element_type in ("float16", "bfloat16")
    wide = "float" if is_short else element_type
    product = out.emit("MatMul", [cast_between(each, element_type, wide, out) for each in operands])
    product = out.emit("Mul", [product, out.constant(alpha, wide)], 1 if is_short else result)
    return cast(product, element_type, out, result) if is_short else product


def _require_matrices(node: Node, out: Rewriter) -> None:
    """Refuse a transposed operand if the other operand is a vector: kernels ignore the transposition."""
    for name in ("transA", "transB", "transBatchA", "transBatchB"):
        first, second = node.inputs if name.endswith("A") else node.inputs[::-1]
        if node.attribute(name, 0) and out.rank(first) > 1 and out.rank(second) == 1:
            reason = f"{name} is set, but kernels ignore it because the other operand is a vector"
            raise CannotConvert(reason, "result.runtime-dependent", subject=name)


def _transposed(node: Node, position: int, out: Rewriter) -> str:
    """Transpose an operand: `transBatch` moves dimension 0 before the last, `trans` swaps the last two."""
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
        _apply_activation(product, activation, node, out)


def _apply_activation(product: str, activation: bytes, node: Node, out: Rewriter) -> None:
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
