"""Attention (introduced in opset 23): `softmax(scale * Q K^T + bias) V` for several heads at once."""

import math

from opshift.adapters import CannotConvert, Node, Rewriter, UnknownShape, adapter
from opshift.adapters.emit.cast import LARGEST_FINITE
from opshift.adapters.emit.heads import append_to_past, cap_scores, merge_heads, merged_size, split_heads
from opshift.adapters.emit.shapes import Dimension, computed_dimension, reshape
from opshift.adapters.ops.nn.attention_mask import attention_bias
from opshift.model.element_types import BY_NAME, BY_NUMBER


@adapter("Attention", 23, 22)
def expand_attention(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul, Softmax and MatMul; split the heads of 3-D inputs first."""
    types = {out.element_type(name) for name in (node.inputs[0], node.inputs[2])}
    if len(types) > 1:
        both = " and ".join(sorted(types))
        reason = f"Q and V are {both}, but MatMul requires a single type"
        raise CannotConvert(reason, "type.unsupported", subject=both, remedy="cast V to the type of Q and K")
    query, new_key, new_value = (_split_heads(node, position, out) for position in range(3))
    key = append_to_past(node.input(4), new_key, node.output(1), out)
    value = append_to_past(node.input(5), new_value, node.output(2), out)
    scores = _scores(query, _repeat_for_query_heads(key, node, 1, out), node, out)
    capped = cap_scores(scores, node.attribute("softcap", 0.0), out.element_type(node.inputs[0]), out)
    added = attention_bias(node, out)
    biased = out.emit("Add", [capped, added]) if added else capped
    weights = _softmax(biased, node, out)
    if out.is_used(node.output(3)):
        stage = (scores, capped, biased, weights)[node.attribute("qk_matmul_output_mode", 0)]
        out.emit("Identity", [stage], [node.output(3)])
    value = _repeat_for_query_heads(value, node, 2, out)
    if out.rank(node.inputs[0]) == 4:
        out.emit("MatMul", [weights, value], node.outputs[:1])
        return
    hidden = merged_size(node.inputs[2], _head_count(node, 2, out), _head_count(node, 0, out), out)
    merge_heads(out.emit("MatMul", [weights, value]), node.outputs[0], out, hidden)


def _split_heads(node: Node, position: int, out: Rewriter) -> str:
    """Return an input as (batch, heads, sequence, head size)."""
    name = node.inputs[position]
    if out.rank(name) == 4:
        return name
    return split_heads(name, _head_count(node, position, out), out)


def _head_count(node: Node, position: int, out: Rewriter) -> int:
    """Return the number of heads of an input; refuse if neither the shape nor an attribute declares it."""
    name, attribute = node.inputs[position], "kv_num_heads" if position else "q_num_heads"
    is_split = out.known_rank(name) == 4
    heads = out.known_dimension(name, 1) if is_split else node.attribute(attribute)
    if not heads:
        reason = f"the number of heads of {name!r} is unknown"
        raise UnknownShape(reason, name, otherwise="set q_num_heads and kv_num_heads")
    return int(heads)


def _scores(query: str, key: str, node: Node, out: Rewriter) -> str:
    """Return the scaled product of queries and keys.

    Both factors are multiplied by the square root of `scale`, which keeps the products small.
    """
    keys_last = out.emit("Transpose", [key], perm=(0, 1, 3, 2))
    root = _root_of_scale(query, node, out)
    return out.emit("MatMul", [out.emit("Mul", [factor, root]) for factor in (query, keys_last)])


def _root_of_scale(query: str, node: Node, out: Rewriter) -> str:
    element_type, scale = out.element_type(node.inputs[0]), node.attribute("scale")
    size = _head_size(node, 0, query, out) if scale is None else 1
    if isinstance(size, str):
        as_float = out.cast(size, "float")
        root = out.emit("Reciprocal", [out.emit("Sqrt", [out.emit("Sqrt", [as_float])])])
        return out.cast(root, element_type)
    scale = 1 / math.sqrt(size) if scale is None else scale
    if scale < 0:
        reason = f"scale is {scale}, but its square root multiplies queries and keys"
        raise CannotConvert(reason, "result.undefined")
    return out.constant(math.sqrt(scale), element_type)


def _head_size(node: Node, position: int, split: str, out: Rewriter) -> Dimension:
    last_dimension = out.known_dimension(node.inputs[position], -1)
    if last_dimension is None:
        return computed_dimension(split, 3, out)
    is_split = out.rank(node.inputs[position]) == 4
    return last_dimension if is_split else last_dimension // _head_count(node, position, out)


def _repeat_for_query_heads(value: str, node: Node, position: int, out: Rewriter) -> str:
    """Repeat each key or value head for the query heads that share it (grouped-query attention)."""
    heads, shared = _head_count(node, 0, out), _head_count(node, position, out)
    if heads == shared:
        return value
    size = _head_size(node, position, value, out)
    unsqueezed = out.emit("Unsqueeze", [value, out.int64([2])], opset=13)
    repeats = out.int64([1, 1, heads // shared, 1, 1])
    return reshape(out.emit("Tile", [unsqueezed, repeats]), (0, heads, -1, size), out)


def _softmax(scores: str, node: Node, out: Rewriter) -> str:
    """Return the softmax over the keys, computed in the type that `softmax_precision` names."""
    element_type = out.element_type(node.inputs[0])
    precision = BY_NUMBER[node.attribute("softmax_precision", BY_NAME[element_type].number)].name
    if precision != element_type:
        scores = out.cast(scores, precision)
    if node.input(3):
        weights = _softmax_or_zero(scores, precision, out)
    else:
        weights = out.emit("Softmax", [scores], axis=-1, opset=13)
    return weights if precision == element_type else out.cast(weights, element_type)


def _softmax_or_zero(scores: str, element_type: str, out: Rewriter) -> str:
    """Return the softmax, or 0 where all keys of a query are masked.

    Such a row has a maximum of minus infinity. In all other rows the maximum is finite, and its exponential
    alone makes the sum at least 1.
    """
    # Minus infinity minus itself is NaN, so the maximum is raised to a finite value, and the sum of zeros
    # to one before the division.
    lowest, one = (out.constant(each, element_type) for each in (-LARGEST_FINITE[element_type], 1.0))
    maximum = out.emit("ReduceMax", [scores], axes=(3,), keepdims=1, opset=8)
    exponentials = out.emit("Exp", [out.emit("Sub", [scores, out.emit("Max", [maximum, lowest], opset=13)])])
    sums = out.emit("ReduceSum", [exponentials], axes=(3,), keepdims=1, opset=8)
    return out.emit("Div", [exponentials, out.emit("Max", [sums, one], opset=13)])
