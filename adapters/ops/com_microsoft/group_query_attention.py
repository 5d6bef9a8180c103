"""GroupQueryAttention of onnxruntime: causal attention in which groups of query heads share keys and values.

New keys and values are appended to a cache. The cache may be longer than the cached sequences, and each batch
entry may have a sequence of a different length.
"""

import math
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.heads import (
    cap_scores,
    merge_heads,
    positions,
    scaled_scores,
    score_scale,
    split_heads,
)
from opshift.adapters.emit.shapes import (
    computed_dimension,
    dimension,
    dimension_tensor,
    reshape,
    shape_tensor,
)
from opshift.adapters.ops.com_microsoft.attention import PRESENTS, require_present

OPSET, NORMALIZATION_OPSET = 13, 23
"""Opset of the emitted nodes, and of RotaryEmbedding and RMSNormalization."""

SCORES, WEIGHTS = 1, 2
"""Values of `qk_output` with which output 3 holds the scores, and the softmax weights."""

PLAIN_CACHE = {"k_quant_type": b"NONE", "v_quant_type": b"NONE", "sliding_window_cache": 0}
"""Attributes, and the values that declare a cache that is not quantized and holds all positions."""


class CachedSequence(NamedTuple):
    """Names of int64 values: numbers of tokens, and positions of queries in each batch entry.

    Attributes:
        query_count: number of queries, of shape (1,).
        appended: number of keys that are appended to the cache, of shape (1,): `query_count`, or 0 if the
            node reads the cache of another node.
        past: number of keys before the appended ones, of shape (batch, 1).
        queries: positions of the queries, of shape (batch, queries).
        total: number of keys that are not padding, of shape (batch, 1).
        keys: number of keys in the longest sequence (`total_sequence_length`), of shape (1,).
    """

    query_count: str
    appended: str
    past: str
    queries: str
    total: str
    keys: str


@adapter("GroupQueryAttention", 1, 0, domain="com.microsoft")
def expand_group_query_attention(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul, Softmax and MatMul over the cache; normalize and rotate queries and keys first."""
    out = out.for_opset(OPSET, "")
    _require_plain_cache(node)
    _require_presents(node, out)
    query, key, value = _projections(node, out)
    tokens = _token_positions(node, out)
    query, key = (
        _rotate(_normalize(each, weight, node, out), count, tokens, node, out)
        for each, weight, count in (
            (query, node.input(14), tokens.query_count),
            (key, node.input(15), tokens.appended),
        )
    )
    key, value = (_append_to_cache(node, index, new, tokens, out) for index, new in enumerate((key, value)))
    key, value = (_repeat_for_query_heads(each, node, out) for each in (key, value))
    weights = _weights(node, query, key, tokens, out)
    width = out.known_dimension(node.inputs[0], 2)
    merge_heads(
        out.emit("MatMul", [weights, value]),
        node.outputs[0],
        out,
        width and _size(width, node) * node.attribute("num_heads"),
    )


def _size(width: int, node: Node) -> int:
    """Return the head size; `width` is the last dimension of `query`, which may hold keys and values, too."""
    packed = 0 if node.input(1) else 2 * node.attribute("kv_num_heads")
    return int(width // (node.attribute("num_heads") + packed))


def _require_plain_cache(node: Node) -> None:
    for name, plain in PLAIN_CACHE.items():
        value = node.attribute(name, plain)
        if value != plain:
            reason = f"{name} is {value!r}, but the cache must have all positions and the type of query"
            raise CannotConvert(reason, "attribute.unsupported", subject=name)
    if node.attribute("local_window_size", -1) == 0:
        raise CannotConvert("local_window_size is 0, which selects no keys", "value.unsupported")


def _require_presents(node: Node, out: Rewriter) -> None:
    """Refuse `past_key` without present outputs: kernels then read `past_key` only if `key` is empty."""
    is_empty = node.input(1) and out.known_dimension(node.input(1), 1) == 0
    if not is_empty or node.output(1) or node.output(2):
        require_present(node, node.input(3), PRESENTS, out)


def _projections(node: Node, out: Rewriter) -> list[str]:
    """Return queries, keys and values of shape (batch, heads, sequence, head size)."""
    heads, shared = node.attribute("num_heads"), node.attribute("kv_num_heads")
    counts = (heads, shared, shared)
    if not node.input(1):
        packed = split_heads(node.inputs[0], sum(counts), out)
        return list(out.emit_all("Split", [packed, out.int64(counts)], 3, axis=1))
    return [split_heads(name, count, out) for name, count in zip(node.inputs[:3], counts, strict=True)]


def _normalize(value: str, weight: str, node: Node, out: Rewriter) -> str:
    """Apply RMSNormalization to each head of queries or keys, unless `weight` is `""`."""
    if not weight:
        return value
    epsilon = node.attribute("qk_norm_epsilon", 1e-6)
    return out.emit("RMSNormalization", [value, weight], opset=NORMALIZATION_OPSET, epsilon=epsilon)


def _token_positions(node: Node, out: Rewriter) -> CachedSequence:
    count = appended = dimension_tensor(dimension(node.inputs[0], 1, out), out)
    last = reshape(out.cast(node.inputs[5], "int64"), (-1, 1), out)
    total = out.emit("Add", [last, out.int64(1)])
    first = past = _length_before(total, count, out)
    if _may_append_fewer_keys(node, out):
        appended = dimension_tensor(dimension(node.inputs[1], 1, out), out)
        past = _length_before(total, appended, out)
    queries = out.emit("Add", [first, positions(count, out)])
    keys = reshape(out.cast(node.inputs[6], "int64"), (1,), out)
    return CachedSequence(count, appended, past, queries, total, keys)


def _length_before(total: str, count: str, out: Rewriter) -> str:
    """Return the number of keys before the last `count` keys; 0 if the first tokens are padding."""
    return out.emit("Max", [out.emit("Sub", [total, count]), out.int64(0)])


def _may_append_fewer_keys(node: Node, out: Rewriter) -> bool:
    """Return whether `key` may be shorter than `query`: kernels then require a past and an empty `key`."""
    if not (node.input(1) and node.input(3)):
        return False
    queries, keys = ((shape or ())[1:2] for shape in out.comparable_shapes(node.inputs[:2]))
    return not queries or None in queries or queries != keys


def _rotate(value: str, count: str, tokens: CachedSequence, node: Node, out: Rewriter) -> str:
    """Rotate `count` queries or keys by their positions if `do_rotary` is set."""
    if not node.attribute("do_rotary", 0):
        return value
    cosine, sine, ids = (node.input(position) for position in (7, 8, 9))
    if ids:
        # Without a past, count positions from the first one, as kernels do.
        first = out.emit("Slice", [ids, out.int64([0, 0]), out.int64([1, 1])])
        consecutive = out.emit("Add", [first, positions(tokens.query_count, out)])
        ids = out.emit("Where", [out.emit("Equal", [tokens.query_count, tokens.keys]), consecutive, ids])
    rotated = ids or tokens.queries
    if count != tokens.query_count:
        rotated = out.emit("Slice", [rotated, out.int64([0]), count, out.int64([1])])
    return out.emit(
        "RotaryEmbedding", [value, cosine, sine, rotated], opset=NORMALIZATION_OPSET,
        interleaved=node.attribute("rotary_interleaved", 0),
        rotary_embedding_dim=2 * out.dimension(cosine, 1),
    )  # fmt: skip


def _append_to_cache(node: Node, index: int, new: str, tokens: CachedSequence, out: Rewriter) -> str:
    """Append new keys (index 0) or values (1) to the cache, emit the cache, and return the used part.

    If the cache is longer than the sequence, the remaining rows are zero.
    """
    past, present = node.input(3 + index), node.output(1 + index)
    if not past:
        if out.is_used(present):
            out.emit("Identity", [new], [present])
        return new
    size = dimension_tensor(dimension(past, 2, out), out)
    # `joined` has the rows of the past, then the appended rows, and then one row of zeros.
    joined = out.emit("Concat", [past, new], axis=2)
    joined = out.emit("Pad", [joined, out.int64([0, 0, 0, 0, 0, 0, 1, 0])])
    rows = positions(out.emit("Max", [size, tokens.keys]), out)
    after_past = out.emit("Add", [rows, out.emit("Sub", [size, tokens.past])])
    after_past = out.emit("Min", [after_past, out.emit("Add", [size, tokens.appended])])
    taken = out.emit("Where", [out.emit("Less", [rows, tokens.past]), rows, after_past])
    known_size = out.known_dimension(past, 3)
    head_size = computed_dimension(new, 3, out) if known_size is None else known_size
    row_shape = shape_tensor([1, node.attribute("kv_num_heads"), 1, head_size], out)
    taken = out.emit("Expand", [reshape(taken, (0, 1, -1, 1), out), row_shape])
    cache = out.emit("GatherElements", [joined, taken], [present] if present else 1, axis=2)
    return out.emit("Slice", [cache, out.int64([0]), tokens.keys, out.int64([2])])


def _repeat_for_query_heads(value: str, node: Node, out: Rewriter) -> str:
    """Repeat each head of keys or values for the query heads of its group."""
    heads, shared = node.attribute("num_heads"), node.attribute("kv_num_heads")
    if heads == shared:
        return value
    groups = [index * shared // heads for index in range(out.require_elements(heads))]
    return out.emit("Gather", [value, out.int64(groups)], axis=1)


def _weights(node: Node, query: str, key: str, tokens: CachedSequence, out: Rewriter) -> str:
    """Return the softmax weights of the keys, of shape (batch, query heads, queries, keys)."""
    element_type, scores_output = out.element_type(node.inputs[0]), node.attribute("qk_output", 0)
    width = out.known_dimension(node.inputs[0], 2)
    size = width and _size(width, node)
    scale = score_scale(node.attribute("scale", 0.0), query, size, element_type, out)
    scores = scaled_scores(query, key, scale, out)
    scores = cap_scores(scores, node.attribute("softcap", 0.0), element_type, out)
    if node.input(10):
        scores = out.emit("Add", [scores, node.input(10)])
    kept = _kept_keys(node, tokens, out)
    if scores_output == SCORES and out.is_used(node.output(3)):
        out.emit("Where", [kept, scores, out.constant(0.0, element_type)], [node.output(3)])
    scores = out.emit("Where", [kept, scores, out.constant(-math.inf, element_type)])
    weights = _softmax(node, scores, element_type, out)
    if scores_output == WEIGHTS and out.is_used(node.output(3)):
        out.emit("Identity", [weights], [node.output(3)])
    return weights


def _kept_keys(node: Node, tokens: CachedSequence, out: Rewriter) -> str:
    """Return a boolean mask, True for unpadded keys; if causal, for keys in the window up to each query."""
    keys, window = positions(tokens.keys, out), node.attribute("local_window_size", -1)
    if not node.attribute("causal", 1):
        return out.emit("Less", [keys, reshape(tokens.total, (0, 1, 1, 1), out)])
    queries = reshape(tokens.queries, (0, 1, -1, 1), out)
    kept = out.emit("Not", [out.emit("Greater", [keys, queries])])
    if window < 0:
        return kept
    first = out.emit("Sub", [queries, out.int64(window)])
    return out.emit("And", [kept, out.emit("Greater", [keys, first])])


def _softmax(node: Node, scores: str, element_type: str, out: Rewriter) -> str:
    """Return the softmax over the keys; a sink is an additional score of each head, without a key."""
    sink = node.input(11)
    if not sink and node.attribute("smooth_softmax", -1) != 1:
        return out.emit("Softmax", [scores], axis=-1)
    sink = reshape(sink, (1, -1, 1, 1), out) if sink else out.constant(0.0, element_type)
    highest = out.emit("Max", [out.emit("ReduceMax", [scores], axes=(3,), keepdims=1), sink])
    powers, sink_power = (out.emit("Exp", [out.emit("Sub", [each, highest])]) for each in (scores, sink))
    total = out.emit("ReduceSum", [powers, out.int64([3])], keepdims=1)
    return out.emit("Div", [powers, out.emit("Add", [total, sink_power])])
