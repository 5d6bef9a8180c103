"""LinearAttention, CausalConvWithState, gated operators such as ScaledSiLU, and BiasSoftmax of onnxruntime.

Kernels compute the gated operators in float32.
"""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.expression import cast, cast_between, square
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
    """Rewrite as RMS normalization of rows as long as `scale`, times the activated gate."""
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
    """Rewrite as `scale * Softplus(x + bias)`, and Sigmoid for the second output."""
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
    """Emit an operator in float32, and cast its result to an element type."""
    if element_type == "float":
        out.emit(op_type, inputs, [name])
    else:
        cast(out.emit(op_type, inputs), element_type, out, [name])


LINEAR_ATTENTION_OPSET, TRANSPOSE_OPSET = 27, 13
"""First opset with LinearAttention and CausalConvWithState, and the opset of the emitted Transpose."""

ADDED_ATTRIBUTES = {"dilation": 1, "ndim": 1, "state_window": 0}
"""Attributes that the ONNX operators lack, with the values for which both operators are equivalent."""

SWAPPED = (0, 2, 1)
"""Permutation that swaps the last two dimensions: channels last to channels first, and back."""


@adapter(("CausalConvWithState", "LinearAttention"), 1, 0, domain="com.microsoft")
def convert_to_standard_operator(node: Node, out: Rewriter) -> None:
    """Rewrite as the ONNX operator with this name, which has channels first and lacks some attributes."""
    for name, value in ADDED_ATTRIBUTES.items():
        if node.attribute(name, value) != value:
            reason = f"{name} is {node.attribute(name)}, but {node.op_type} of ONNX requires {value}"
            raise CannotConvert(reason, "attribute.unsupported", subject=name)
    attributes = node.without("channels_last", *ADDED_ATTRIBUTES)
    out = out.for_opset(LINEAR_ATTENTION_OPSET, "")
    if not node.attribute("channels_last", 0):
        out.emit(node.op_type, node.inputs, node.outputs, **attributes)
        return
    inputs = list(node.inputs)
    for position in (0, 3):
        if node.input(position):
            inputs[position] = _swap_last_two_dims(inputs[position], 1, out)
    results = out.emit_all(node.op_type, inputs, len(node.outputs), **attributes)
    for result, name in zip(results, node.outputs, strict=True):
        if out.is_used(name) or name == node.outputs[0]:
            _swap_last_two_dims(result, [name], out)


def _swap_last_two_dims(value: str, outputs: int | list[str], out: Rewriter) -> str:
    return out.emit("Transpose", [value], outputs, opset=TRANSPOSE_OPSET, perm=SWAPPED)
