"""LinearAttention and CausalConvWithState (introduced in opset 27), which return a state for the next tokens.

LinearAttention is rewritten as a Scan over the tokens: each token updates and reads a state.
CausalConvWithState is rewritten as a Conv over past and new columns.
"""

import math
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.emit.heads import merged_size, size_per_head
from opshift.adapters.emit.shapes import (
    ALLOWZERO_OPSET,
    INT64_MAX,
    Dimension,
    computed_dimension,
    dimension,
    dimension_tensor,
    reshape,
    shape_tensor,
)
from opshift.adapters.emit.subgraphs import SubgraphBuilder

SCAN_OPSET, PAD_OPSET = 9, 13
"""First opset in which Scan has `scan_input_axes`, and the opset of the emitted Pad."""


class Tokens(NamedTuple):
    """Inputs of LinearAttention, with tokens along dimension 1 and split heads; `""` for absent inputs."""

    query: str
    key: str
    value: str
    decay: str
    beta: str


@adapter("LinearAttention", 27, 26)
def expand_linear_attention(node: Node, out: Rewriter) -> None:
    """Rewrite as a Scan over the tokens, in float like the function body, and cast the results back."""
    _require_inputs_of_rule(node)
    length = dimension(node.inputs[0], 1, out)
    tokens = _token_inputs(node, _padding(length, out), out)
    scanned = [name for name in tokens if name]
    state, results = out.emit_all(
        "Scan",
        [_initial_state(node, tokens, out), *scanned],
        2,
        opset=SCAN_OPSET,
        body=_scan_body(tokens, out).graph(),
        num_scan_inputs=len(scanned),
        scan_input_axes=[1] * len(scanned),
    )
    if not (isinstance(length, int) and length):
        results = out.emit("Slice", [results, out.int64([0]), dimension_tensor(length, out), out.int64([0])])
    scaled = out.emit("Mul", [results, _query_scale(node, tokens, out)])
    hidden = merged_size(node.inputs[2], node.attribute("kv_num_heads"), node.attribute("q_num_heads"), out)
    packed = _reshape_tokens(out.emit("Transpose", [scaled], perm=(1, 0, 2, 3, 4)), (hidden,), out)
    out.cast(packed, out.element_type(node.inputs[0]), node.outputs[:1])
    if out.is_used(node.output(1)):
        out.cast(state, _state_type(node, out), [node.output(1)])


def _require_inputs_of_rule(node: Node) -> None:
    """Require `decay` for gated rules and `beta` for delta rules, and refuse either input for other rules."""
    rule = node.attribute("update_rule", b"gated_delta").decode()
    for position, name, kind in ((4, "decay", "gated"), (5, "beta", "delta")):
        if bool(node.input(position)) == (kind in rule):
            continue
        relation, remedy = ("requires", "pass") if kind in rule else ("forbids", "remove")
        reason = f"update_rule {rule!r} {relation} the input {name}"
        raise CannotConvert(reason, "node.invalid", remedy=f"{remedy} {name}, or change update_rule")


def _padding(length: Dimension, out: Rewriter) -> str:
    """Return pads that append a token of zeros if there are no tokens; `""` if there is always a token.

    A token of zeros leaves the state unchanged; without tokens, the Scan would crash onnxruntime.
    """
    if isinstance(length, int) and length:
        return ""
    is_empty = out.emit(
        "Sub", [out.int64([1]), out.emit("Min", [dimension_tensor(length, out), out.int64([1])])]
    )
    return out.emit("Concat", [out.int64([0, 0, 0, 0]), is_empty, out.int64([0])], axis=0)


def _token_inputs(node: Node, padding: str, out: Rewriter) -> Tokens:
    heads, shared = node.attribute("q_num_heads"), node.attribute("kv_num_heads")
    query, key, value = (
        size_per_head(name, count, out)
        for name, count in zip(node.inputs[:3], (heads, shared, shared), strict=True)
    )
    sizes: list[tuple[Dimension, ...]] = [
        (shared, heads // shared, query),
        (shared, key, 1),
        (shared, 1, value),
        (shared, size_per_head(node.input(4), shared, out), 1) if node.input(4) else (),
        (size_per_head(node.input(5), 1, out), 1, 1) if node.input(5) else (),
    ]
    names = [*node.inputs[:3], node.input(4), node.input(5)]
    split = [name and _split_heads(name, each, padding, out) for name, each in zip(names, sizes, strict=True)]
    split[3] = split[3] and out.emit("Exp", [split[3]])
    return Tokens(*split)


def _split_heads(name: str, sizes: tuple[Dimension, ...], padding: str, out: Rewriter) -> str:
    value = _as_float(name, out)
    if padding:
        value = out.emit("Pad", [value, padding], opset=PAD_OPSET)
    return _reshape_tokens(value, sizes, out)


def _reshape_tokens(value: str, sizes: tuple[Dimension, ...], out: Rewriter) -> str:
    """Reshape the dimensions after batch and token to `sizes`, which may contain 0."""
    if all(isinstance(size, int) and size for size in sizes):
        return reshape(value, (0, 0, *sizes), out)
    shape = shape_tensor((*(computed_dimension(value, axis, out) for axis in (0, 1)), *sizes), out)
    return out.emit("Reshape", [value, shape], opset=ALLOWZERO_OPSET, allowzero=1)


def _as_float(name: str, out: Rewriter) -> str:
    return name if out.element_type(name) == "float" else out.cast(name, "float")


def _scan_body(tokens: Tokens, out: Rewriter) -> SubgraphBuilder:
    """Return the Scan body: decay the state, add key times value, and read the state by the query."""
    body = SubgraphBuilder(out)
    state = body.input("float")
    token = Tokens(*(name and body.input("float") for name in tokens))
    if token.decay:
        state = body.emit("Mul", [state, token.decay])
    value = token.value
    if token.beta:
        key_row = body.emit("Transpose", [token.key], perm=(0, 1, 3, 2))
        retrieved = body.emit("MatMul", [key_row, state])
        value = body.emit("Mul", [token.beta, body.emit("Sub", [value, retrieved])])
    state = body.emit("Add", [state, body.emit("Mul", [token.key, value])])
    # onnxruntime does not run a Scan whose body outputs have no rank.
    body.output(state, "float", (None,) * 4)
    body.output(body.emit("MatMul", [token.query, state]), "float", (None,) * 4)
    return body


def _initial_state(node: Node, tokens: Tokens, out: Rewriter) -> str:
    """Return the past state, or zeros: a (key size, value size) matrix for each key and value head."""
    if node.input(3):
        return _as_float(node.input(3), out)
    batch, shared = dimension(node.inputs[0], 0, out), node.attribute("kv_num_heads")
    sizes = (computed_dimension(tokens.key, 3, out), computed_dimension(tokens.value, 4, out))
    shape = shape_tensor((batch, shared, *sizes), out)
    return out.emit("ConstantOfShape", [shape], opset=9, value=Tensor("float", (1,), (0.0,)))


def _query_scale(node: Node, tokens: Tokens, out: Rewriter) -> str:
    """Return `scale`; if `scale` is 0, return one over the square root of the head size of the query."""
    scale, width = node.attribute("scale", 0.0), out.shape(node.inputs[0])
    if scale:
        return out.constant(scale, "float")
    if width is not None and width[2]:
        return out.constant(math.sqrt(node.attribute("q_num_heads") / width[2]), "float")
    size = out.cast(computed_dimension(tokens.query, 4, out), "float")
    return out.emit("Reciprocal", [out.emit("Sqrt", [size])])


def _state_type(node: Node, out: Rewriter) -> str:
    """Return the type of the past state, or else of the output state if known, or else of the queries."""
    declared = out.known_element_type(node.output(1))
    if node.input(3) or declared is None:
        return out.element_type(node.input(3) or node.inputs[0])
    return declared


@adapter("CausalConvWithState", 27, 26)
def expand_causal_conv(node: Node, out: Rewriter) -> None:
    """Rewrite as Conv over past and new columns; the last columns are the next state."""
    channels, reach = _channels_and_reach(node, out)
    columns = _prepend_past(node, reach, out)
    data = _with_spare_column(node, columns, out)
    inputs = [data, node.inputs[1], *filter(None, [node.input(2)])]
    is_plain = node.attribute("activation", b"none") == b"none"
    is_last = is_plain and data == columns
    result = out.emit("Conv", inputs, node.outputs[:1] if is_last else 1, group=channels)
    if data != columns:
        bounds = [out.int64([each]) for each in (1, INT64_MAX, 2)]
        result = out.emit("Slice", [result, *bounds], node.outputs[:1] if is_plain else 1)
    if not is_plain:
        _emit_silu(result, node, out)
    if out.is_used(node.output(1)):
        # If `reach` is 0, the state is empty, but a start of -0 would select all columns.
        start = out.int64([-reach if reach else INT64_MAX])
        bounds = [start, out.int64([INT64_MAX]), out.int64([2])]
        out.emit("Slice", [columns, *bounds], [node.output(1)])


def _channels_and_reach(node: Node, out: Rewriter) -> tuple[int, int]:
    """Return the number of channels, and the number of past columns in a window (kernel width - 1).

    Raises:
        UnknownShape: the number of channels or the kernel width is unknown.
    """
    data, weight = out.shape(node.inputs[0]), out.shape(node.inputs[1])
    channels = (weight[0] if weight else None) or (data[1] if data else None)
    if not channels or not weight or weight[2] is None:
        reason = "the number of channels or the kernel width is unknown"
        raise UnknownShape(reason, *node.inputs[:2])
    return channels, weight[2] - 1


def _prepend_past(node: Node, reach: int, out: Rewriter) -> str:
    data, past = node.inputs[0], node.input(3)
    if past:
        return out.emit("Concat", [past, data], axis=2)
    if not reach:
        return data
    zero = out.constant(0.0, out.element_type(data))
    return out.emit("Pad", [data, out.int64([0, 0, reach, 0, 0, 0]), zero], opset=13)


def _with_spare_column(node: Node, columns: str, out: Rewriter) -> str:
    """Prepend a zero column if the data may have no columns: Conv needs as many columns as its kernel."""
    if out.known_dimension(node.inputs[0], 2):
        return columns
    zero = out.constant(0.0, out.element_type(node.inputs[0]))
    return out.emit("Pad", [columns, out.int64([0, 0, 1, 0, 0, 0]), zero], opset=13)


def _emit_silu(value: str, node: Node, out: Rewriter) -> None:
    """Emit `x * sigmoid(x)`, computed in float."""
    element_type, outputs = out.element_type(node.inputs[0]), node.outputs[:1]
    is_float = element_type == "float"
    wide = value if is_float else out.cast(value, "float")
    product = out.emit("Mul", [wide, out.emit("Sigmoid", [wide])], outputs if is_float else 1)
    if not is_float:
        out.cast(product, element_type, outputs)
