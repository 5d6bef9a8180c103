"""Attention, QAttention, MultiHeadAttention and RotaryEmbedding of onnxruntime.

Attention is `softmax(scale * Q K^T + masks) V` of queries Q, keys K and values V. Kernels add in float32
`mask_filter_value` to the score of a masked key, or the lowest finite number if a causal mask excludes a key.
"""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.expression import LARGEST_FINITE, cast_between, fold
from opshift.adapters.emit.heads import (
    append_to_past,
    merge_heads,
    positions,
    scaled_scores,
    score_scale,
    split_heads,
)
from opshift.adapters.emit.shapes import (
    INT64_MAX,
    Dimension,
    add_dimensions,
    computed_dimension,
    dimension,
    dimension_tensor,
    index_range,
    multiply_dimension,
    reshape,
    reshape_like,
    shape_tensor,
)

MASK_FILTER_VALUE = -10000.0
"""Default of `mask_filter_value`."""

PRESENTS = ("present_key", "present_value")
"""Outputs 1 and 2 of MultiHeadAttention and GroupQueryAttention."""


class Lengths(NamedTuple):
    """Numbers of queries, of past keys, and of all keys.

    Attributes:
        has_later_keys: whether there may be more new keys than queries.
    """

    queries: Dimension
    past: Dimension
    keys: Dimension
    has_later_keys: bool = False


def score_mask(node: Node, mask: str, lengths: Lengths, out: Rewriter) -> str:
    """Return the float32 mask to add to scores, for key mask and causal mask; `""` without masks."""
    masks = ""
    if mask:
        filtered = node.attribute("mask_filter_value", MASK_FILTER_VALUE)
        masks = _additive_mask(
            _kept_keys(node, mask, lengths, out), out.constant(0.0, "float"), filtered, out
        )
    if node.attribute("unidirectional", 0):
        # For keys after a query, replace the key mask, whose sum with the causal mask would be infinite.
        others = masks or out.constant(0.0, "float")
        masks = _additive_mask(_causal_mask(lengths, out), others, -LARGEST_FINITE["float"], out)
    return masks


def _additive_mask(kept: str, others: str, filtered: float, out: Rewriter) -> str:
    return out.emit("Where", [kept, others, out.constant(filtered, "float")])


def _causal_mask(lengths: Lengths, out: Rewriter) -> str:
    """Return a boolean mask of shape (queries, keys), True for keys that are not after the query."""
    numbers = queries = positions(lengths.queries, out)
    if lengths.past:
        queries = out.emit("Add", [queries, dimension_tensor(lengths.past, out)])
    operands = [positions(lengths.keys, out), reshape(queries, (-1, 1), out)]
    kept = out.emit("Not", [out.emit("Greater", operands)])
    if not lengths.has_later_keys:
        return kept
    # Keep all keys for the last query, as kernels do.
    last = out.emit("Sub", [dimension_tensor(lengths.queries, out), out.int64(1)])
    is_last = out.emit("Equal", [reshape(numbers, (-1, 1), out), last])
    return out.emit("Or", [kept, is_last])


def _kept_keys(node: Node, mask: str, lengths: Lengths, out: Rewriter) -> str:
    """Return a boolean mask, True for unmasked keys, that broadcasts to (batch, heads, queries, keys)."""
    rank = out.rank(mask)
    if rank == 1:
        return _kept_range(node, mask, lengths, out)
    if rank == 4:
        # The mask is a square of the maximum sequence length: slice the rows and columns for this node.
        starts = [dimension_tensor(lengths.past, out), out.int64([0])]
        ends = [add_dimensions(lengths.past, lengths.queries, out), lengths.keys]
        bounds = [out.emit("Concat", starts, axis=0), shape_tensor(ends, out)]
        mask = out.emit("Slice", [mask, *bounds, out.int64([2, 3])])
    elif rank < 4:
        mask = out.emit("Unsqueeze", [mask, out.int64([1, 2][: 4 - rank])])
    return out.emit("Greater", [mask, out.constant(0, "int32")])


def _kept_range(node: Node, mask: str, lengths: Lengths, out: Rewriter) -> str:
    """Return a boolean mask, True for keys from the start (included) to the end (excluded) of each entry.

    `mask` lists an end for each batch entry, then optionally starts (if `mask` has twice the batch size), or
    offsets of packed sequences, which kernels for CPUs ignore.
    """
    data = node.inputs[0]
    shapes = out.comparable_shapes([data, mask])
    batch, size = ((shape or (None,))[0] for shape in shapes)
    keys = positions(lengths.keys, out)
    bounds = out.cast(mask, "int64")
    if size is not None and size == batch:
        return out.emit("Less", [keys, reshape(bounds, (-1, 1, 1, 1), out)])
    count = dimension_tensor(dimension(data, 0, out), out)
    zero = out.int64([0])
    ends = reshape(out.emit("Slice", [bounds, zero, count, zero]), (-1, 1, 1, 1), out)
    has_starts = None
    # Negative sizes are symbols, known only at run time.
    if batch is not None and size is not None and min(batch, size) >= 0:
        has_starts = size == 2 * batch
    if node.op_type == "MultiHeadAttention" or has_starts is False:
        return out.emit("Less", [keys, ends])
    both = dimension_tensor(add_dimensions(count, count, out), out)
    if has_starts:
        starts = out.emit("Slice", [bounds, count, both, zero])
    else:
        zeros = out.emit("Expand", [zero, count])
        padded = out.emit("Concat", [bounds, zeros], axis=0)
        starts = out.emit("Slice", [padded, count, both, zero])
        is_doubled = out.emit("Equal", [out.emit("Shape", [bounds]), both])
        starts = out.emit("Where", [is_doubled, starts, zeros])
    is_started = out.emit("Not", [out.emit("Less", [keys, reshape(starts, (-1, 1, 1, 1), out)])])
    return out.emit("And", [out.emit("Less", [keys, ends]), is_started])


OPSET = 13
"""Opset of the emitted nodes."""


class Heads(NamedTuple):
    """Queries, keys and values of shape (batch, heads, sequence, head size).

    Attributes:
        hidden_size: the head size of queries and keys times the number of heads, if known.
        value_size: the head size of values times the number of heads, if known.
        element_type: the element type of `query`, `key` and `value`.
    """

    query: str
    key: str
    value: str
    hidden_size: int | None
    value_size: int | None
    element_type: str


class Masks(NamedTuple):
    """Value names of the key mask and of the bias that is added to the scores; `""` if absent."""

    keys: str
    bias: str = ""


@adapter("MultiHeadAttention", 1, 0, domain="com.microsoft")
def expand_multi_head_attention(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul, Softmax and MatMul; split the heads, append to past keys, and add masks."""
    out = out.for_opset(OPSET, "")
    for position, name in ((8, "past_sequence_length"), (9, "cache_indirection")):
        if node.input(position):
            reason = f"input {name} is not supported: it selects parts of caches longer than the past"
            raise CannotConvert(reason, "input.unsupported", subject=name)
    data = node.inputs[0]
    require_present(node, node.input(6), PRESENTS, out)
    query, key, value = _projections(node, out)
    key = append_to_past(node.input(6), key, node.output(1), out)
    value = append_to_past(node.input(7), value, node.output(2), out)
    past = dimension(node.input(6), 2, out) if node.input(6) else 0
    has_later_keys = _has_later_keys(node, out)
    lengths = Lengths(dimension(data, 1, out), past, computed_dimension(key, 2, out), has_later_keys)
    hidden_size = out.known_dimension(data, 2) if node.input(1) else None
    heads = Heads(query, key, value, hidden_size, _value_size(node, out), out.element_type(data))
    _attend(node, heads, lengths, Masks(node.input(4), node.input(5)), out)


def _has_later_keys(node: Node, out: Rewriter) -> bool:
    """Return whether there may be more new keys than queries."""
    if not node.input(2):
        return bool(node.input(1))
    queries, keys = out.comparable_shapes(node.inputs[:2])
    first, second = (queries or (None,) * 3)[1], (keys or (None,) * 3)[-2]
    if first is None or second is None:
        return True
    return first != second if min(first, second) < 0 else second > first


def _value_size(node: Node, out: Rewriter) -> int | None:
    """Return the hidden size of the values, all heads together, or `None` if it is unknown."""
    value = [name for name in node.inputs[:3] if name][-1]
    size = out.known_dimension(value, -1)
    return size and size * (1 if out.known_rank(value) == 3 else node.attribute("num_heads"))


def _projections(node: Node, out: Rewriter) -> list[str]:
    """Return queries, keys and values of shape (batch, heads, sequence, head size), with the bias added."""
    given = [name for name in node.inputs[:3] if name]
    if len(given) == 3:
        return [_with_bias_and_heads(node, position, out) for position in range(3)]
    if node.input(3):
        reason = "the layout of a bias for packed inputs is not defined"
        raise CannotConvert(reason, "input.unsupported", subject="bias")
    # Packed inputs have the shape (batch, sequence, heads, count, head size); the count is 3 for Q, K and V,
    # or 2 for K and V.
    packed = out.emit("Transpose", [given[-1]], perm=(3, 0, 2, 1, 4))
    count = 3 if given == list(node.inputs[:1]) else 2
    parts = [out.emit("Gather", [packed, out.int64(index)], axis=0) for index in range(count)]
    return parts if count == 3 else [_with_bias_and_heads(node, 0, out), *parts]


def _with_bias_and_heads(node: Node, position: int, out: Rewriter) -> str:
    name, bias = node.inputs[position], node.input(3)
    if position and out.rank(name) == 4:
        return name
    if bias:
        size = dimension(node.inputs[0], 2, out)
        start: Dimension = 0
        for _ in range(position):
            start = add_dimensions(start, size, out)
        end = INT64_MAX if position == 2 else add_dimensions(start, size, out)
        bounds = [dimension_tensor(each, out) for each in (start, end)]
        name = out.emit("Add", [name, out.emit("Slice", [bias, *bounds, out.int64([0])])])
    return split_heads(name, node.attribute("num_heads"), out)


@adapter("Attention", 1, 0, domain="com.microsoft")
def expand_attention(node: Node, out: Rewriter) -> None:
    """Rewrite the projection as MatMul, and the attention as MatMul, Softmax and MatMul."""
    out = out.for_opset(OPSET, "")
    product = out.emit("MatMul", list(node.inputs[:2]))
    if node.input(2):
        product = out.emit("Add", [product, node.input(2)])
    _attend_to_projection(node, product, node.input(4), Masks(node.input(3), node.input(5)), out)


@adapter("QAttention", 1, 0, domain="com.microsoft")
def expand_quantized_attention(node: Node, out: Rewriter) -> None:
    """Rewrite the projection as MatMulInteger with scales, and the attention like `expand_attention`.

    The projection is computed in float32, because float16 cannot represent large sums of integers.
    """
    out = out.for_opset(OPSET, "")
    data, weight, bias, data_scale, weight_scale, mask, data_zero, weight_zero, past = (
        node.input(position) for position in range(9)
    )
    product = out.emit("MatMulInteger", [data, weight, data_zero, weight_zero])
    element_type = out.element_type(bias)
    data_scale, weight_scale, bias = (
        cast_between(each, element_type, "float", out) for each in (data_scale, weight_scale, bias)
    )
    scale = out.emit("Mul", [data_scale, weight_scale])
    product = out.emit("Mul", [out.cast(product, "float"), scale])
    product = cast_between(out.emit("Add", [product, bias]), "float", element_type, out)
    _attend_to_projection(node, product, past, Masks(mask), out)


def _attend_to_projection(node: Node, product: str, past: str, masks: Masks, out: Rewriter) -> None:
    """Emit the attention, with queries, keys and values split from `product` along dimension 2."""
    for name in ("do_rotary", "past_present_share_buffer"):
        if node.attribute(name, 0):
            reason = f"{name} is set, but the kernel for CPUs does not support it"
            raise CannotConvert(reason, "attribute.unsupported", subject=name)
    sizes = node.attribute("qkv_hidden_sizes")
    require_present(node, past, ["present"], out)
    if out.is_used(node.output(1)) and sizes and sizes[0] != sizes[2]:
        reason = "the output present needs keys and values of equal sizes"
        raise CannotConvert(reason, "node.invalid", subject="qkv_hidden_sizes")
    parts = out.emit_all("Split", [product, *([out.int64(sizes)] if sizes else [])], 3, axis=2)
    width = out.known_dimension(node.inputs[1], 1)
    widths = sizes or [width and width // 3] * 3
    query, key, value = (
        split_heads(part, node.attribute("num_heads"), out, each)
        for part, each in zip(parts, widths, strict=True)
    )
    past_length: Dimension = 0
    if past:
        pasts = [out.emit("Gather", [past, out.int64(index)], axis=0) for index in (0, 1)]
        key, value = (append_to_past(old, new, "", out) for old, new in zip(pasts, (key, value), strict=True))
        past_length = dimension(past, 3, out)
    if out.is_used(node.output(1)):
        first = out.int64([0])
        both = [out.emit("Unsqueeze", [each, first]) for each in (key, value)]
        out.emit("Concat", both, [node.output(1)], axis=0)
    lengths = Lengths(dimension(node.inputs[0], 1, out), past_length, computed_dimension(key, 2, out))
    element_type = out.element_type(node.inputs[2] if node.op_type == "QAttention" else node.inputs[0])
    _attend(node, Heads(query, key, value, widths[0], widths[2], element_type), lengths, masks, out)


def require_present(node: Node, past: str, presents: Sequence[str], out: Rewriter) -> None:
    """Refuse a past that may have keys if an output in `presents`, names of outputs 1 and up, is omitted."""
    if not past or out.known_dimension(past, -2) == 0:
        return
    missing = [name for position, name in enumerate(presents, 1) if not node.output(position)]
    if missing:
        reason = f"past is given without the output {missing[0]}; kernels then ignore past"
        remedy = f"add {' and '.join(missing)}"
        raise CannotConvert(reason, "result.runtime-dependent", subject="past", remedy=remedy)


def _attend(node: Node, heads: Heads, lengths: Lengths, masks: Masks, out: Rewriter) -> None:
    """Emit the attention, and the scores if output 3 is used."""
    element_type = heads.element_type
    size = heads.hidden_size and heads.hidden_size // node.attribute("num_heads")
    scale = score_scale(node.attribute("scale", 0.0), heads.query, size, element_type, out)
    scores = scaled_scores(heads.query, heads.key, scale, out)
    # Add the masks and the bias first, then the scores, as kernels do: if all keys are masked, order matters.
    bias = masks.bias and cast_between(masks.bias, element_type, "float", out)
    added = fold("Add", filter(None, (score_mask(node, masks.keys, lengths, out), bias)), out)
    if added:
        # Computed in float32, because the range of float16 is too small for the masks.
        scores = out.emit("Add", [cast_between(scores, element_type, "float", out), added])
    score_type = "float" if added else element_type
    if out.is_used(node.output(3)):
        rounded = cast_between(scores, score_type, element_type, out)
        out.emit("Identity", [rounded], [node.output(3)])
    weights = cast_between(out.emit("Softmax", [scores], axis=-1), score_type, element_type, out)
    merge_heads(out.emit("MatMul", [weights, heads.value]), node.outputs[0], out, heads.value_size)


ROTARY_OPSET = 23
"""First opset with RotaryEmbedding."""


@adapter("RotaryEmbedding", 1, 0, domain="com.microsoft")
def expand_rotary_embedding(node: Node, out: Rewriter) -> None:
    """Rewrite as RotaryEmbedding of ONNX, with explicit positions of all tokens."""
    out = out.for_opset(ROTARY_OPSET, "")
    if node.attribute("is_packed_batching", 0):
        reason = "is_packed_batching is 1, but RotaryEmbedding of ONNX requires a batch dimension"
        raise CannotConvert(reason, "attribute.unsupported", subject="is_packed_batching")
    data, positions, cosine, sine = node.inputs[:4]
    heads, rank = node.attribute("num_heads", 0), out.rank(data)
    sizes = out.known_dimension(data, 2), out.known_dimension(cosine, 1)
    if rank == 3 and not heads and sizes[0] is not None and sizes[1]:
        # The sine and cosine caches have one column for each two elements of a head.
        heads = sizes[0] // (2 * sizes[1])
    if out.rank(positions) == 1:
        positions = _consecutive_positions(positions, data, rank - 2, out)
    attributes = {name: node.attribute(name) for name in ("interleaved", "rotary_embedding_dim")}
    is_split = rank == 4 or heads
    rotated = out.emit(
        "RotaryEmbedding",
        [data if is_split else _split_heads(data, cosine, out), cosine, sine, positions],
        node.outputs if is_split else 1,
        num_heads=heads or None,
        **attributes,
    )
    if not is_split:
        merged = out.emit("Transpose", [rotated], perm=(0, 2, 1, 3))
        reshape_like(merged, data, out.emit("Shape", [data]), out, node.outputs)


def _split_heads(data: str, cosine: str, out: Rewriter) -> str:
    """Return the data as (batch, heads, sequence, head size); unknown sizes are computed."""
    half = dimension(cosine, 1, out)
    size = multiply_dimension(half, 2, out)
    heads = out.emit("Div", [dimension_tensor(dimension(data, 2, out), out), dimension_tensor(size, out)])
    return out.emit("Transpose", [reshape(data, (0, 0, heads, size), out)], perm=(0, 2, 1, 3))


def _consecutive_positions(start: str, data: str, axis: int, out: Rewriter) -> str:
    """Return consecutive positions from `start` on, with the same row for each batch entry."""
    batch, length = (dimension_tensor(dimension(data, each, out), out) for each in (0, axis))
    positions = out.emit("Add", [start, index_range(length, out)])
    return out.emit("Expand", [positions, out.emit("Concat", [batch, length], axis=0)])
