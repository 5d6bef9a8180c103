"""Gelu and Dropout with a bias, and activations that are fused into other operators."""

from collections.abc import Mapping

from opshift.adapters import CannotConvert, Node, Rewriter, adapter

ACTIVATIONS = {
    "Celu": ("alpha",), "Clip": ("min", "max"), "Elu": ("alpha",), "Gelu": (),
    "HardSigmoid": ("alpha", "beta"), "HardSwish": (), "LeakyRelu": ("alpha",), "Relu": (),
    "Selu": ("alpha", "gamma"), "Sigmoid": (), "Softmax": ("axis",), "Softplus": (), "Softsign": (),
    "Tanh": (), "ThresholdedRelu": ("alpha",),
}  # fmt: skip
"""Parameters of standard operators that may be fused, in the order of `activation_params`."""

CLIP_OPSET, ACTIVATION_OPSET = 6, 20
"""Opset in which the limits of Clip are attributes, and that of the other activations."""


@adapter("FastGelu", 1, 0, domain="com.microsoft")
def expand_fast_gelu(node: Node, out: Rewriter) -> None:
    """Rewrite as Gelu with the tanh approximation, of the sum if there is a bias."""
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
    """Emit the outputs of a node: an activation of the value with the given parameters.

    Raises:
        CannotConvert: no standard operator computes the activation, or it has no such parameter.
    """
    unknown = parameters.keys() - ACTIVATIONS.get(activation, ())
    if activation not in ACTIVATIONS or unknown:
        what = f"parameters {sorted(unknown)} of " if unknown else ""
        reason = f"no standard operator computes the activation with {what}{activation!r}"
        raise CannotConvert(reason, "attribute.unsupported", subject="activation")
    opset = CLIP_OPSET if activation == "Clip" else ACTIVATION_OPSET
    out.emit(activation, [value], node.outputs, domain=None, opset=opset, **parameters)
