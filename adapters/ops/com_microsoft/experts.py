"""MoE and QMoE of onnxruntime: a router selects `k` experts (networks of two layers) for each token.

The emitted nodes compute all experts for all tokens, and weight the results of unselected experts with 0.
"""

from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.shapes import INT64_MAX, reshape, reshape_like
from opshift.adapters.ops.com_microsoft.quantized_weights import (
    block_indices,
    first_columns,
    require_packed_bits,
    unpack,
)

OPSET, GELU_OPSET = 13, 20
"""Opset of the emitted nodes, and opset of emitted Gelu nodes: Gelu exists since opset 20."""

DEFAULTS = (("alpha", 1.0), ("beta", 0.0))
"""Defaults of `activation_alpha` and `activation_beta`, the parameters of SwiGLU."""

INTERLEAVED = 1
"""Value of `swiglu_fusion` for data in which gates and linear values alternate."""


class Layer(NamedTuple):
    """Weights of shape (experts, columns, rows), and the bias, `""` if absent."""

    weights: str
    bias: str


@adapter("MoE", 1, 0, domain="com.microsoft")
def expand_experts(node: Node, out: Rewriter) -> None:
    """Rewrite as TopK for the router, and MatMul for all experts and tokens."""
    out = out.for_opset(OPSET, "")
    _require_common_form(node, range(6, 8))
    scores = node.inputs[1]
    _, chosen = _chosen(node, out)
    weights = out.emit("GatherElements", [out.emit("Softmax", [scores], axis=-1), chosen], axis=1)
    if node.attribute("normalize_routing_weights", 0):
        total = out.emit("ReduceSum", [weights, out.int64([1])], keepdims=1)
        weights = out.emit("Div", [weights, total])
    layers = [Layer(node.inputs[position], node.input(position + 1)) for position in (2, 4)]
    _emit_experts(node, layers, weights, chosen, out)


@adapter("QMoE", 1, 0, domain="com.microsoft")
def expand_quantized_experts(node: Node, out: Rewriter) -> None:
    """Rewrite like MoE, with weights that are unpacked and dequantized by arithmetic."""
    out = out.for_opset(OPSET, "")
    _require_common_form(node, (8, 9, 10, *range(13, 21)))
    if node.attribute("quant_type", b"int") != b"int" or node.attribute("weights_prepacked", -1) > 0:
        reason = "quantized weights must be plain integers: other layouts are specific to one kernel"
        raise CannotConvert(reason, "attribute.unsupported", subject="quant_type")
    if not node.attribute("normalize_routing_weights", 0):
        reason = "normalize_routing_weights is 0, but the CPU kernel normalizes the weights"
        raise CannotConvert(reason, "result.runtime-dependent", remedy="set normalize_routing_weights to 1")
    layers = [
        Layer(_dequantized(node, layer, position, out), node.input(position + 2))
        for layer, position in ((1, 2), (2, 5))
    ]
    scores, chosen = _chosen(node, out)
    _emit_experts(node, layers, out.emit("Softmax", [scores], axis=-1), chosen, out)


def _require_common_form(node: Node, other_inputs: range | tuple[int, ...]) -> None:
    """Refuse attributes and inputs that the CPU kernel does not support."""
    for name, value in (("use_sparse_mixer", 0), ("swiglu_fusion", INTERLEAVED)):
        needed = name != "swiglu_fusion" or _activation_name(node) == "swiglu"
        if needed and node.attribute(name, 0) != value:
            reason = f"{name} is {node.attribute(name, 0)}, which the CPU kernel does not support"
            raise CannotConvert(reason, "attribute.unsupported", subject=name)
    if any(node.input(position) for position in other_inputs):
        reason = "the node has inputs that the CPU kernel does not support, such as weights of a third layer"
        raise CannotConvert(reason, "input.unsupported")


def _chosen(node: Node, out: Rewriter) -> tuple[str, ...]:
    """Return the router scores and the indices of the selected experts, both of shape (tokens, k)."""
    return out.emit_all("TopK", [node.inputs[1], out.int64([node.attribute("k", 1)])], 2, axis=1)


def _dequantized(node: Node, layer: int, position: int, out: Rewriter) -> str:
    """Return the dequantized weights of a layer; each column or block has a scale and a zero point."""
    common = node.attribute("expert_weight_bits", 4)
    bits = require_packed_bits(node.attribute(f"fc{layer}_expert_weight_bits", 0) or common)
    packed, scales, zeros = node.inputs[position], node.inputs[position + 1], node.input(10 + layer)
    size, element_type = node.attribute("block_size", 0), out.element_type(node.inputs[0])
    experts, columns = (out.dimension(packed, axis) for axis in (0, 1))
    rows = out.dimension(packed, 2) * 8 // bits
    blocks = -(-rows // size) if size else 1
    numbers = unpack(packed, bits, 3, element_type, out)
    if zeros:
        # A byte holds the zero points of several blocks or, without blocks, of several columns.
        rank, count = (3, blocks) if size else (2, columns)
        zeros = first_columns(unpack(zeros, bits, rank, element_type, out), count, rank - 1, out)
    is_partial = bool(size and rows % size)
    if is_partial:
        order = block_indices(rows, size, out)
        scales, zeros = (each and out.emit("Gather", [each, order], axis=2) for each in (scales, zeros))
    else:
        numbers = reshape(numbers, (experts, columns, blocks, -1), out)
        scales, zeros = (
            each and reshape(each, (experts, columns, blocks, 1), out) for each in (scales, zeros)
        )
    zeros = zeros or out.constant(2.0 ** (bits - 1), element_type)
    product = out.emit("Mul", [out.emit("Sub", [numbers, zeros]), scales])
    return product if is_partial else reshape(product, (experts, columns, -1), out)


def _emit_experts(node: Node, layers: list[Layer], weights: str, chosen: str, out: Rewriter) -> None:
    """Emit all experts for all tokens, and the weighted sum of the results of the chosen experts."""
    data, scores = node.inputs[:2]
    element_type = out.element_type(data)
    shape = out.emit("Shape", [data])
    width = out.emit("Slice", [shape, out.int64([-1]), out.int64([INT64_MAX])])
    tokens = reshape(data, (1, -1, width), out)
    hidden = _apply_activation(_apply_layer(layers[0], tokens, out), node, element_type, out)
    results = _apply_layer(layers[1], hidden, out)
    zero = out.constant(0.0, element_type)
    none = out.emit("Expand", [zero, out.emit("Shape", [scores])])
    gates = out.emit("ScatterElements", [none, chosen, weights], axis=1)
    gates = out.emit("Unsqueeze", [out.emit("Transpose", [gates], perm=(1, 0)), out.int64([2])])
    weighted = out.emit("Mul", [results, gates])
    # Replace the results of unselected experts by 0, because infinity times the weight 0 would be NaN.
    weighted = out.emit("Where", [out.emit("Equal", [gates, zero]), zero, weighted])
    total = out.emit("ReduceSum", [weighted, out.int64([0])], keepdims=0)
    reshape_like(total, data, shape, out, node.outputs)


def _apply_layer(layer: Layer, data: str, out: Rewriter) -> str:
    product = out.emit("MatMul", [data, out.emit("Transpose", [layer.weights], perm=(0, 2, 1))])
    if not layer.bias:
        return product
    return out.emit("Add", [product, out.emit("Unsqueeze", [layer.bias, out.int64([1])])])


def _activation_name(node: Node) -> str:
    return bytes(node.attribute("activation_type", b"relu")).decode()


def _apply_activation(value: str, node: Node, element_type: str, out: Rewriter) -> str:
    match kind := _activation_name(node):
        case "relu":
            return out.emit("Relu", [value])
        case "gelu":
            return out.emit("Gelu", [value], opset=GELU_OPSET, approximate=b"tanh")
        case "silu":
            return out.emit("Mul", [value, out.emit("Sigmoid", [value])])
        case "identity":
            return value
        case "swiglu":
            return _gate(value, node, element_type, out)
    raise CannotConvert(f"the activation {kind!r} is not defined", "value.unsupported")


def _gate(value: str, node: Node, element_type: str, out: Rewriter) -> str:
    """Return `gate * sigmoid(alpha * gate) * (linear + beta)`; `value` alternates gate and linear values."""
    steps = [out.int64([each]) for each in (INT64_MAX, -1, 2)]
    gate, linear = (out.emit("Slice", [value, out.int64([start]), *steps]) for start in (0, 1))
    limit = node.attribute("swiglu_limit")
    if limit is not None:
        high, low = (out.constant(each, element_type) for each in (limit, -limit))
        gate, linear = out.emit("Min", [gate, high]), out.emit("Clip", [linear, low, high])
    gates, linears = (Expression(each, element_type, out) for each in (gate, linear))
    alpha, beta = (float(node.attribute(f"activation_{name}", default)) for name, default in DEFAULTS)
    return (gates * (gates * alpha).apply("Sigmoid") * (linears + beta)).name
