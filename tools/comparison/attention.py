"""Generators of nodes: attention, rotary embeddings, recurrences and experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from comparison.sampler import FLOATS, Array, Sample, Sampler, generates

LOWEST = float(np.finfo(np.float32).min)
i32, f32 = np.int32, np.float32


def _heads(draw: Sampler) -> tuple[int, int, int, int]:
    """Draw the batch size, the sequence length, the number of heads and the head size."""
    return draw.size(1, 3), draw.size(1, 4), draw.integer(1, 3), draw.pick([1, 2, 4, 8])


def _mask(draw: Sampler, batch: int, queries: int, total: int, *, ends: bool = True) -> Array | None:
    """Draw a mask of keys, in one of the supported forms."""
    kinds = ["", "keys", "queries", "padding", "ones", "lengths", "offsets", *(["ends"] if ends else [])]
    match draw.pick(kinds):
        case "":
            return None
        case "lengths":
            return draw.integers((batch,), i32, 0, total)
        case "offsets":
            return draw.integers((3 * batch + 2,), i32, 0, total)
        case "ends":
            return np.concatenate(
                [draw.integers((batch,), i32, 0, total), draw.integers((batch,), i32, 0, total)]
            )
        case "queries":
            return draw.integers((batch, queries, total), i32, 0, 1)
        case "padding":
            lengths = draw.integers((batch, 1), i32, 0, total)
            return (np.arange(total)[None] >= lengths).astype(i32)
        case "ones":
            return np.ones((batch, total), i32)
    return draw.integers((batch, total), i32, 0, 1)


def _mask_attributes(draw: Sampler, heads: int) -> dict[str, Any]:
    values = [-10000.0, -1.0, -65504.0, LOWEST, -1e30, 0.0]
    return {
        "num_heads": heads,
        **draw.some(scale=draw.pick([0.0, 0.3, 1.0]), mask_filter_value=draw.pick(values)),
        **draw.flags("unidirectional"),
    }


def _tolerance(mask: Array | None, attributes: dict[str, Any]) -> float:
    """Return the tolerance for a node with a mask.

    Scores of queries without keys are rounded to a multiple of the spacing of numbers at the mask's value.
    A last bit of the score may decide between two of them; the results differ by about as much. At values
    such as -1e30, all scores are equal.
    """
    value = attributes.get("mask_filter_value", -10000.0)
    step = float(np.spacing(f32(min(abs(value), 1e10))))
    return 0.0 if mask is None or step > 1 else 2 * step


def _added_bias(draw: Sampler, batch: int, heads: int, queries: int, total: int, dtype: Any) -> Array | None:
    if draw.maybe(0.7):
        return None
    return draw.floats((draw.pick([1, batch]), draw.pick([1, heads]), queries, total), dtype)


@generates("MultiHeadAttention")
def multi_head_attention(draw: Sampler, op_type: str) -> Sample:
    """Generate multi-head attention, with queries, keys and values in several layouts."""
    dtype = FLOATS[draw.pick(["float", "float16"])]
    batch, queries, heads, size = _heads(draw)
    attributes = _mask_attributes(draw, heads)
    keys = queries if draw.maybe(0.5) else draw.size(1, 5)
    value_size = size if draw.maybe(0.7) else draw.pick([1, 3, 4])
    past, width = (draw.size(1, 3) if draw.maybe(0.3) else None), heads * size
    total = keys + (past or 0)
    query = draw.floats((batch, queries, width), dtype)
    if draw.maybe(0.3):
        key: Array | None = draw.floats((batch, heads, keys, size), dtype)
        value: Array | None = draw.floats((batch, heads, keys, value_size), dtype)
    else:
        key = draw.floats((batch, keys, width), dtype)
        value = draw.floats((batch, keys, heads * value_size), dtype)
    bias = draw.floats((2 * width + heads * value_size,), dtype) if draw.maybe(0.3) else None
    mask = _mask(draw, batch, queries, total, ends=False)
    added = _added_bias(draw, batch, heads, queries, total, dtype)
    pasts = [None, None]
    if past is not None:
        pasts = [draw.floats((batch, heads, past, each), dtype) for each in (size, value_size)]  # type: ignore[misc]
    outputs: list[Any] = [dtype]
    if draw.maybe(0.3 if past is None else 0.9):
        outputs += [dtype, dtype]
        if draw.maybe(0.3):
            outputs.append(dtype)
    elif draw.maybe(0.1):
        outputs += [None, None, dtype]
    inputs = [query, key, value, bias, mask, added, *pasts]
    return Sample(op_type, inputs, outputs, attributes, tolerance=_tolerance(mask, attributes))


@generates("Attention")
def attention(draw: Sampler, op_type: str) -> Sample:
    """Generate attention with a projection to queries, keys and values."""
    dtype = FLOATS[draw.pick(["float", "float16"])]
    batch, queries, heads, size = _heads(draw)
    attributes = _mask_attributes(draw, heads)
    hidden, width = draw.integer(1, 6), heads * size
    total = 3 * width
    past = draw.size(1, 3) if draw.maybe(0.3) else None
    if past is None and draw.maybe(0.3):
        value_width = heads * draw.integer(1, 4)
        attributes["qkv_hidden_sizes"] = [width, width, value_width]
        total = 2 * width + value_width
    keys = queries + (past or 0)
    inputs = [
        draw.floats((batch, queries, hidden), dtype),
        draw.floats((hidden, total), dtype),
        draw.floats((total,), dtype),
        _mask(draw, batch, queries, keys),
        None if past is None else draw.floats((2, batch, heads, past, size), dtype),
        _added_bias(draw, batch, heads, queries, keys, dtype),
    ]
    outputs = [dtype, dtype] if draw.maybe(0.3 if past is None else 0.9) else [dtype]
    return Sample(op_type, inputs, outputs, attributes, tolerance=_tolerance(inputs[3], attributes))


@generates("QAttention")
def quantized_attention(draw: Sampler, op_type: str) -> Sample:
    """Generate attention with a quantized projection."""
    batch, queries, heads, size = _heads(draw)
    hidden, width, kind = draw.integer(1, 6), heads * size, draw.pick([np.uint8, np.int8])
    past = draw.size(1, 3) if draw.maybe(0.3) else None
    by_column, total = draw.maybe(), queries + (past or 0)
    inputs: list[Array | None] = [
        draw.integers((batch, queries, hidden), np.uint8),
        draw.integers((hidden, 3 * width), kind),
        draw.floats((3 * width,)),
        draw.positive(draw.pick([(), (1,)])),
        draw.positive((3 * width,) if by_column else draw.pick([(), (1,)])),
        _mask(draw, batch, queries, total),
        draw.integers((), np.uint8) if draw.maybe(0.7) else None,
        draw.integers((3 * width,) if by_column else (), kind) if draw.maybe(0.7) else None,
        None if past is None else draw.floats((2, batch, heads, past, size)),
    ]
    outputs = [f32, f32] if draw.maybe(0.3 if past is None else 0.9) else [f32]
    constants = frozenset({1, 3, 4, 6, 7}) if draw.maybe() else frozenset()
    attributes = _mask_attributes(draw, heads)
    tolerance = _tolerance(inputs[5], attributes)
    return Sample(op_type, inputs, outputs, attributes, constants, tolerance=tolerance)


@generates("GroupQueryAttention")
def group_query_attention(draw: Sampler, op_type: str) -> Sample:
    """Generate attention in which groups of query heads share keys, with a cache in most samples."""
    dtype = FLOATS[draw.pick(["float", "float16"])]
    batch, shared, size = draw.integer(1, 3), draw.integer(1, 2), draw.pick([8, 16])
    heads = shared * draw.integer(1, 3)
    is_prompt = draw.maybe()
    queries = draw.integer(1, 4) if is_prompt or batch == 1 else 1
    past = 0 if is_prompt else draw.integer(0, 6)
    total = past + queries
    # The cache ends with the past, or has space for all tokens.
    cache = draw.pick([past, past, total + draw.integer(0, 2)])
    lengths = np.full((batch,), total - 1, i32)
    if batch > 1 and draw.maybe():
        lengths[1:] = draw.integers((batch - 1,), i32, max(queries if not is_prompt else 1, 1) - 1, total - 1)
    packed = draw.maybe(0.3)
    appended = queries
    if not packed and draw.maybe(0.2):
        # The cache contains all keys and values.
        appended, cache = 0, total + draw.integer(0, 2)
    width = (heads + 2 * shared) if packed else heads
    rows = draw.maybe(0.8)
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": shared}
    attributes |= draw.some(scale=draw.pick([0.0, 0.3]), softcap=draw.pick([0.0, 2.0]))
    attributes |= draw.some(local_window_size=draw.pick([-1, 1, 2, 4]))
    attributes |= draw.some(smooth_softmax=draw.pick([-1, 0, 1])) if draw.maybe(0.3) else {}
    rotates = draw.maybe(0.4)
    caches: list[Array | None] = [None, None]
    if rotates:
        attributes["do_rotary"] = 1
        attributes |= draw.flags("rotary_interleaved")
        half = size // 2 if draw.maybe(0.7) else size // 4
        caches = [draw.normal((max(cache, total) + 2, half), dtype) for _ in range(2)]
    ids = None
    if rotates and draw.maybe(0.3):
        ids = np.tile(np.arange(past, total, dtype=np.int64), (batch, 1))
    added = None
    if draw.maybe(0.2):
        added = draw.floats((draw.pick([1, batch]), draw.pick([1, heads]), queries, total), dtype)
    sink = draw.floats((heads,), dtype) if draw.maybe(0.15) else None
    if sink is not None:
        attributes.pop("smooth_softmax", None)
    weights = [draw.floats((size,), dtype) for _ in range(2)] if draw.maybe(0.2) else []
    if weights and draw.maybe():
        attributes["qk_norm_epsilon"] = draw.pick([1e-6, 1e-3])
    outputs: list[Any] = [dtype, dtype, dtype]
    if draw.maybe(0.2):
        attributes["qk_output"] = draw.integer(1, 2)
        outputs.append(dtype)
    inputs: list[Array | None] = [
        draw.floats((batch, queries, width * size), dtype),
        *(
            [None, None]
            if packed
            else [draw.floats((batch, appended, shared * size), dtype) for _ in range(2)]
        ),
        *(
            [draw.floats((batch, shared, cache, size), dtype) for _ in range(2)]
            if rows or cache
            else [None, None]
        ),
        lengths,
        np.array(total, i32) if draw.maybe() else np.array([total], i32),
        *caches,
        ids,
        added,
        sink,
        None,
        None,
        *weights,
    ]
    ends = lengths.astype(int) + 1
    places = np.maximum(ends - queries, 0)[:, None] + np.arange(queries)
    is_padding = places >= ends[:, None]
    keys, rows = np.arange(total), places[:, None, :, None]
    window = attributes.get("local_window_size", -1)
    is_hidden = (keys > rows) | ((window > 0) & (keys <= rows - window)) | is_padding[:, None, :, None]
    undefined = {0: is_padding[:, :, None], 3: is_hidden}
    return Sample(op_type, inputs, outputs, attributes, undefined=undefined)


@generates("RotaryEmbedding")
def rotary_embedding(draw: Sampler, op_type: str) -> Sample:
    """Generate a rotary embedding of data of rank 3 or 4, with one position, or one for each token."""
    dtype = FLOATS[draw.pick(["float", "float16"])]
    batch, length, heads, size = draw.size(1, 3), draw.size(1, 4), draw.integer(1, 3), draw.pick([2, 4, 8])
    attributes: dict[str, Any] = {**draw.flags("interleaved"), **draw.some(scale=1.0)}
    is_split, half, rows = draw.maybe(0.4), size // 2, max(length, 1) + draw.integer(0, 3)
    if size > 2 and draw.maybe(0.3):
        half = size // 4
        attributes |= {"rotary_embedding_dim": 2 * half, "num_heads": heads}
    elif draw.maybe():
        attributes["num_heads"] = heads
    data = draw.floats((batch, heads, length, size) if is_split else (batch, length, heads * size), dtype)
    if draw.maybe():
        ids = draw.integers((batch, length), np.int64, 0, rows - 1)
    else:
        ids = draw.integers((1,), np.int64, 0, rows - length if length else 0)
    return Sample(
        op_type, [data, ids, *(draw.normal((rows, half), dtype) for _ in range(2))], [dtype], attributes
    )


@generates("LinearAttention")
def linear_attention(draw: Sampler, op_type: str) -> Sample:
    """Generate a linear recurrence over the tokens."""
    batch, length, shared, size = draw.size(1, 2), draw.size(1, 4), draw.integer(1, 2), draw.pick([2, 4])
    heads, value_size = shared * draw.integer(1, 2), draw.pick([2, 3, 4])
    rule = draw.pick(["linear", "gated", "delta", "gated_delta", None])
    attributes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": shared}
    attributes |= {"update_rule": rule} if rule else {}
    attributes |= draw.some(scale=draw.pick([0.0, 0.5]), chunk_size=draw.pick([1, 64]), state_window=0)
    is_gated, is_delta = rule in ("gated", "gated_delta", None), rule in ("delta", "gated_delta", None)
    decays = (shared, shared * size)
    inputs: list[Array | None] = [
        draw.floats((batch, length, heads * size)),
        draw.floats((batch, length, shared * size), scale=0.5),
        draw.floats((batch, length, shared * value_size)),
        draw.floats((batch, shared, size, value_size)) if draw.maybe() else None,
        -np.abs(draw.floats((batch, length, draw.pick(decays)))) if is_gated else None,
        draw.positive((batch, length, draw.pick([1, shared])), 0, 1) if is_delta else None,
    ]
    return Sample(op_type, inputs, [f32, f32], attributes)


@generates("CausalConvWithState")
def causal_convolution(draw: Sampler, op_type: str) -> Sample:
    """Generate a convolution over past and new columns."""
    batch, channels, length, width = draw.size(1, 2), draw.integer(1, 4), draw.size(1, 5), draw.integer(1, 4)
    attributes = draw.some(activation=draw.pick(["none", "silu", "swish"]))
    attributes |= draw.some(ndim=1, dilation=draw.pick([1, 1, 2]), state_window=0)
    is_last = draw.maybe(0.2)
    attributes |= {"channels_last": 1} if is_last else {}
    rows = (width - 1) * attributes.get("dilation", 1)
    inputs: list[Array | None] = [
        draw.floats((batch, length, channels) if is_last else (batch, channels, length)),
        draw.floats((channels, 1, width)),
        draw.floats((channels,)) if draw.maybe() else None,
        draw.floats((batch, rows, channels) if is_last and draw.maybe() else (batch, channels, rows))
        if draw.maybe()
        else None,
    ]
    return Sample(op_type, inputs, [f32, f32], attributes)


def _expert_attributes(draw: Sampler, experts: int) -> tuple[dict[str, Any], bool]:
    activation = draw.pick([None, "relu", "gelu", "silu", "identity", "swiglu"])
    attributes: dict[str, Any] = {"activation_type": activation} if activation else {}
    if activation == "swiglu":
        attributes["swiglu_fusion"] = 1
        attributes |= draw.some(activation_alpha=1.7, activation_beta=1.0, swiglu_limit=draw.pick([0.5, 7.0]))
    attributes |= draw.some(k=draw.integer(1, experts)) | draw.flags("normalize_routing_weights")
    return attributes, activation == "swiglu"


@generates("MoE")
def experts(draw: Sampler, op_type: str) -> Sample:
    """Generate experts (networks of two layers) and the scores of their router."""
    dtype, count = FLOATS[draw.pick(["float", "float16"])], draw.integer(1, 4)
    attributes, is_gated = _expert_attributes(draw, count)
    hidden, inner, tokens = draw.integer(1, 5), draw.integer(1, 5), draw.size(1, 4)
    width = 2 * inner if is_gated else inner
    shape = (draw.size(1, 2), tokens, hidden) if draw.maybe(0.4) else (tokens, hidden)
    rows = int(np.prod(shape[:-1]))
    inputs = [
        draw.floats(shape, dtype),
        draw.floats((rows, count), dtype),
        draw.floats((count, width, hidden), dtype),
        draw.floats((count, width), dtype) if draw.maybe() else None,
        draw.floats((count, hidden, inner), dtype),
        draw.floats((count, hidden), dtype) if draw.maybe() else None,
    ]
    return Sample(op_type, inputs, [dtype], attributes)


@generates("QMoE")
def quantized_experts(draw: Sampler, op_type: str) -> Sample:
    """Generate experts with packed weights."""
    dtype, count = FLOATS[draw.pick(["float", "float16"])], draw.integer(1, 3)
    attributes, is_gated = _expert_attributes(draw, count)
    if draw.maybe(0.95):
        attributes["normalize_routing_weights"] = 1
    hidden, inner, tokens = draw.pick([8, 16, 32, 48]), draw.pick([8, 16, 32, 48]), draw.size(1, 3)
    bits, size = draw.pick([4, 8, 2]), draw.pick([0, 0, 16, 32, 64])
    attributes |= {"expert_weight_bits": bits} if bits != 4 or draw.maybe() else {}
    attributes |= {"block_size": size} if size else draw.some(block_size=0)
    width, packed, zeros = (2 * inner if is_gated else inner), 8 // bits, draw.maybe(0.4)

    def layer(columns: int, rows: int) -> list[Array | None]:
        blocks = (-(-rows // size),) if size else ()
        return [
            draw.integers((count, columns, rows // packed), np.uint8),
            # weights of about 1: sums of products of large float16 numbers are hardly exact
            draw.positive((count, columns, *blocks), dtype=dtype) / dtype(max(1, 2 ** (bits - 4))),
            draw.floats((count, columns), dtype) if draw.maybe() else None,
        ]

    def zero_points(columns: int, rows: int) -> Array | None:
        if not zeros:
            return None
        blocks = -(-rows // size) if size else 0
        shape = (count, columns, -(-blocks // packed)) if size else (count, -(-columns // packed))
        return draw.integers(shape, np.uint8)

    inputs: list[Array | None] = [
        draw.floats((tokens, hidden), dtype),
        draw.floats((tokens, count), dtype),
        *layer(width, hidden),
        *layer(hidden, inner),
        None, None, None,
        zero_points(width, hidden),
        zero_points(hidden, inner),
    ]  # fmt: skip
    return Sample(op_type, inputs, [dtype], attributes)
