"""Gates of linear attention, and activations with a scale or a bias. Kernels compute them in float32."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.cast import cast, cast_between
from opshift.adapters.emit.expression import square
from opshift.adapters.emit.shapes import reshape_like

OPSET = 13
"""Opset of the emitted arithmetic: the first with bfloat16."""


@adapter("ScaledSiLU", 1, 0, domain="com.microsoft")
def expand_scaled_silu(node: Node, out: Rewriter) -> None:
    """Rewrite as `z * sigmoid(z)` with `z = scale * x`, and round each step to the type of `x`."""
    data, scale = node.inputs[0], node.input(1)
    element_type = out.element_type(data)
    out = out.for_opset(OPSET, "")
    factor = _as_float(scale, out) if scale else out.constant(node.attribute("alpha", 1.0), "float")
    scaled = cast_between(out.emit("Mul", [_as_float(data, out), factor]), "float", element_type, out)
    out.emit("Mul", [scaled, out.emit("Sigmoid", [scaled])], node.outputs)


@adapter("GatedRMSNorm", 1, 0, domain="com.microsoft")
def expand_gated_rms_norm(node: Node, out: Rewriter) -> None:
    """Rewrite as the normalization of rows with the length of `scale`, and a product with the gate."""
    data, scale, gate = node.inputs
    activation = node.attribute("activation", b"silu").decode()
    if activation not in ("silu", "swish", "sigmoid"):
        reason = f"activation is {activation!r}, not silu, swish or sigmoid"
        raise CannotConvert(reason, "node.invalid", subject="activation")
    element_type = out.element_type(data)
    out = out.for_opset(OPSET, "")
    shape, length = out.emit("Shape", [data]), out.emit("Shape", [scale])
    rows = out.emit("Reshape", [_as_float(data, out), out.emit("Concat", [out.int64([-1]), length], axis=0)])
    squares = out.emit("ReduceMean", [square(rows, "float", out)], axes=(1,), keepdims=1)
    epsilon = out.constant(node.attribute("epsilon", 1e-5), "float")
    deviation = out.emit("Sqrt", [out.emit("Add", [squares, epsilon])])
    scaled = out.emit("Mul", [out.emit("Div", [rows, deviation]), _as_float(scale, out)])
    gate = _as_float(gate, out)
    opened = out.emit("Sigmoid", [gate])
    if activation != "sigmoid":
        opened = out.emit("Mul", [gate, opened])
    restored = reshape_like(scaled, data, shape, out)
    _emit_as(element_type, "Mul", [restored, opened], node.outputs[0], out)


@adapter("LinearAttentionGate", 1, 0, domain="com.microsoft")
def expand_linear_attention_gate(node: Node, out: Rewriter) -> None:
    """Rewrite as a scaled Softplus of a sum, and as Sigmoid."""
    arguments, bias, scale = node.inputs[:3]
    element_type = out.element_type(arguments)
    out = out.for_opset(OPSET, "")
    total = out.emit("Add", [_as_float(arguments, out), bias])
    _emit_as(element_type, "Mul", [scale, out.emit("Softplus", [total])], node.outputs[0], out)
    rate = node.output(1)
    if rate:
        _emit_as(element_type, "Sigmoid", [_as_float(node.inputs[3], out)], rate, out)


@adapter("BiasSoftmax", 1, 0, domain="com.microsoft")
def expand_bias_softmax(node: Node, out: Rewriter) -> None:
    """Rewrite as Add and Softmax over all dimensions from `axis`."""
    total = out.emit("Add", node.inputs, domain="", opset=7)
    out.emit("Softmax", [total], node.outputs, domain="", opset=11, axis=node.attribute("axis", 1))


def _as_float(value: str, out: Rewriter) -> str:
    return cast_between(value, out.element_type(value), "float", out)


def _emit_as(element_type: str, op_type: str, inputs: list[str], name: str, out: Rewriter) -> None:
    """Emit an operator of float32, and cast its result to an element type."""
    if element_type == "float":
        out.emit(op_type, inputs, [name])
    else:
        cast(out.emit(op_type, inputs), element_type, out, [name])
