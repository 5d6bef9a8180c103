"""Attention and RotaryEmbedding (introduced in opset 23), and FlexAttention.

Attention is `softmax(scale * Q K^T + bias) V` of queries Q, keys K and values V, for several heads at once.
FlexAttention has subgraphs that modify the scores and the probabilities. RotaryEmbedding rotates pairs of
elements by angles whose sine and cosine are inputs.

A mask is boolean, or is added to the scores. The logarithm turns a boolean mask into numbers to add: 0 for a
key that is kept, minus infinity for a key that is masked. Version 24 of Attention introduced padding, and
version 25 windows; the adapters rewrite both as a mask.
"""

import math
from functools import partial
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, UnknownShape, adapter, function_body
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import LARGEST_FINITE
from opshift.adapters.emit.heads import (
    append_to_past,
    cap_scores,
    merge_heads,
    merged_size,
    size_per_head,
    split_heads,
)
from opshift.adapters.emit.shapes import (
    INT64_MAX,
    MAX_CONSTANT_ELEMENTS,
    Dimension,
    add_dimensions,
    computed_dimension,
    dimension,
    dimension_tensor,
    divide_dimension,
    index_range,
    reshape,
    shape_tensor,
)
from opshift.adapters.emit.subgraphs import LoopBuilder
from opshift.model.element_types import BY_NAME, BY_NUMBER

UNBOUNDED = -1
"""Window size that means no limit."""

BROADCASTING_MAX_OPSET = 8
"""First opset in which Max broadcasts."""


class Mask(NamedTuple):
    """Value name of a mask, which is boolean or added to the scores."""

    name: str
    is_boolean: bool


@adapter("Attention", 25, 24)
def convert_windows_to_mask(node: Node, out: Rewriter) -> None:
    """Mask keys more than `left_window_size` before a query or more than `right_window_size` after it."""
    attributes = node.without("left_window_size", "right_window_size")
    left, right = (node.attribute(f"{side}_window_size", UNBOUNDED) for side in ("left", "right"))
    if left == right == UNBOUNDED:
        out.replace(node, attributes=attributes)
        return
    mask, distances = full_mask(node, out), relative_positions(node, out)
    if left != UNBOUNDED:
        mask = _restrict_mask(mask, _is_not("Less", distances, -left, out), node, out)
    if right != UNBOUNDED:
        mask = _restrict_mask(mask, _is_not("Greater", distances, right, out), node, out)
    out.replace(node, inputs=_with_mask(node, mask), attributes=attributes)


@adapter("Attention", 24, 23)
def convert_padding_to_mask(node: Node, out: Rewriter) -> None:
    """Mask padding keys, from `nonpad_kv_seqlen` on; align a causal mask with the last unpadded key."""
    mask, attributes = full_mask(node, out), dict(node.attributes)
    lengths = node.input(6)
    if lengths:
        end = reshape(out.cast(lengths, "float"), (-1, 1, 1, 1), out)
        keys = float_positions(key_length(node, out), out)
        mask = _restrict_mask(mask, out.emit("Less", [keys, end]), node, out)
        if node.attribute("is_causal", 0):
            mask = _apply_causality(mask, node, out)
        else:
            # Runtimes require a mask with a row for every query.
            queries = shape_tensor([1, 1, _sequence_length(node, 0, out), 1], out)
            mask = mask._replace(name=out.emit("Expand", [mask.name, queries]))
        # Drop `is_causal`: version 23 aligns queries with the past keys, not with the last unpadded key.
        attributes.pop("is_causal", None)
    out.replace(node, inputs=_with_mask(node, mask)[:6], attributes=attributes)


def full_mask(node: Node, out: Rewriter) -> Mask | None:
    """Return the mask of a node with one column for every key, or `None` if the node has no mask.

    Since version 24, a mask may have fewer columns than there are keys: mask the keys without a column.

    Raises:
        CannotConvert: the mask may have a single column, which either broadcasts or is padded.
    """
    mask = _mask_input(node, out)
    if mask is None:
        return None
    rank, shape, length = out.rank(node.inputs[3]), out.shape(node.inputs[3]), key_length(node, out)
    if shape and shape[-1] == length:
        return mask
    if rank == 0:
        return mask._replace(name=out.emit("Expand", [mask.name, dimension_tensor(length, out)]))
    if not shape or shape[-1] == 1:
        reason = "attn_mask may have one column, which can apply to the first key only or to every key"
        remedy = "give attn_mask one column for every key"
        if shape and isinstance(length, int):
            raise CannotConvert(reason, "shape.unsupported", remedy=remedy)
        raise UnknownShape(reason, node.inputs[1], node.inputs[3], otherwise=remedy)
    columns = dimension(node.inputs[3], rank - 1, out)
    missing = _subtract_sizes(length, columns, out)
    pads = shape_tensor([*[0] * (2 * rank - 1), missing], out)
    masked = out.constant(-math.inf, out.element_type(node.inputs[0]))
    return Mask(out.emit("Pad", [_as_bias(mask, node, out), pads, masked], opset=13), is_boolean=False)


def _mask_input(node: Node, out: Rewriter) -> Mask | None:
    name = node.input(3)
    if not name:
        return None
    element_type, score_type = out.element_type(name), out.element_type(node.inputs[0])
    if element_type not in ("bool", score_type):
        return Mask(out.cast(name, score_type), is_boolean=False)
    return Mask(name, element_type == "bool")


def key_length(node: Node, out: Rewriter) -> Dimension:
    """Return the number of keys, including past keys."""
    new, past = _sequence_length(node, 1, out), node.input(4)
    return add_dimensions(dimension(past, 2, out), new, out) if past else new


def _sequence_length(node: Node, position: int, out: Rewriter) -> Dimension:
    """Return the number of queries (input 0) or of new keys (input 1)."""
    return dimension(node.inputs[position], out.rank(node.inputs[position]) - 2, out)


def _subtract_sizes(size: Dimension, subtrahend: Dimension, out: Rewriter) -> Dimension:
    if isinstance(size, int) and isinstance(subtrahend, int):
        return size - subtrahend
    return out.emit("Sub", [dimension_tensor(size, out), dimension_tensor(subtrahend, out)])


def _as_bias(mask: Mask, node: Node, out: Rewriter) -> str:
    """Return the mask as numbers to add to the scores."""
    if not mask.is_boolean:
        return mask.name
    return out.emit("Log", [out.cast(mask.name, out.element_type(node.inputs[0]))])


def relative_positions(node: Node, out: Rewriter) -> str:
    """Return the key position minus the query position, as float.

    The last two dimensions of the result are queries and keys. With `nonpad_kv_seqlen`, the last query has
    the position of the last unpadded key.
    """
    queries, lengths, past = _sequence_length(node, 0, out), node.input(6), node.input(4)
    offset = dimension(past, 2, out) if past and not lengths else 0
    keys = float_positions(key_length(node, out), out)
    distances = out.emit("Sub", [keys, _position_column(queries, offset, out)])
    if not lengths:
        return distances
    ends = reshape(out.cast(lengths, "float"), (-1, 1, 1, 1), out)
    first = out.emit("Sub", [ends, _as_float(queries, out)])
    return out.emit("Sub", [distances, first])


def float_positions(length: Dimension, out: Rewriter) -> str:
    """Return the numbers from 0 to `length - 1` as a 1-D float tensor; a constant if the length is small."""
    if isinstance(length, int) and length <= MAX_CONSTANT_ELEMENTS:
        return out.constant(tuple(map(float, range(length))), "float")
    return out.cast(index_range(dimension_tensor(length, out), out), "float")


def _position_column(length: Dimension, offset: Dimension, out: Rewriter) -> str:
    """Return the `length` positions from `offset` on as float, of shape (length, 1)."""
    if isinstance(length, int) and isinstance(offset, int) and length <= MAX_CONSTANT_ELEMENTS:
        numbers = tuple(float(offset + index) for index in range(length))
        return out.tensor(Tensor("float", (length, 1), numbers))
    column = reshape(float_positions(length, out), (-1, 1), out)
    return out.emit("Add", [column, _as_float(offset, out)])


def _as_float(size: Dimension, out: Rewriter) -> str:
    if isinstance(size, int):
        return out.constant(float(size), "float")
    return out.cast(size, "float")


def _restrict_mask(mask: Mask | None, keeps: str, node: Node, out: Rewriter) -> Mask:
    """Return `mask` (`None`: all keys) without the keys for which the boolean value `keeps` is False."""
    restriction = Mask(keeps, is_boolean=True)
    if mask is None:
        return restriction
    if mask.is_boolean:
        return Mask(out.emit("And", [mask.name, keeps]), is_boolean=True)
    return Mask(out.emit("Add", [mask.name, _as_bias(restriction, node, out)]), is_boolean=False)


def _is_not(comparison: str, distances: str, limit: int, out: Rewriter) -> str:
    return out.emit("Not", [out.emit(comparison, [distances, out.constant(float(limit), "float")])])


def _with_mask(node: Node, mask: Mask | None) -> list[str]:
    if mask is None:
        return list(node.inputs)
    return [*(node.input(position) for position in range(3)), mask.name, *node.inputs[4:]]


def attention_bias(node: Node, out: Rewriter) -> str:
    """Return the value that version 23 adds to the scores, or `""` if there is none.

    The result combines the mask, and minus infinity for keys after each query if `is_causal` is set.
    """
    mask = _apply_causality(_mask_input(node, out), node, out)
    return "" if mask is None else _as_bias(mask, node, out)


def _apply_causality(mask: Mask | None, node: Node, out: Rewriter) -> Mask | None:
    if not node.attribute("is_causal", 0):
        return mask
    return _restrict_mask(mask, _is_not("Greater", relative_positions(node, out), 0, out), node, out)


@adapter("Attention", 23, 22)
def expand_attention(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul, Softmax and MatMul; split the heads of 3-D inputs first."""
    types = {out.element_type(name) for name in (node.inputs[0], node.inputs[2])}
    if len(types) > 1:
        both = " and ".join(sorted(types))
        reason = f"Q and V are {both}, but MatMul requires a single type"
        raise CannotConvert(reason, "type.unsupported", subject=both, remedy="cast V to the type of Q and K")
    query, new_key, new_value = (split_input_heads(node, position, out) for position in range(3))
    key = append_to_past(node.input(4), new_key, node.output(1), out)
    value = append_to_past(node.input(5), new_value, node.output(2), out)
    scores = _attention_scores(query, _repeat_for_query_heads(key, node, 1, out), node, out)
    capped = cap_scores(scores, node.attribute("softcap", 0.0), out.element_type(node.inputs[0]), out)
    added = attention_bias(node, out)
    biased = out.emit("Add", [capped, added]) if added else capped
    weights = _softmax_over_keys(biased, node, out)
    if out.is_used(node.output(3)):
        stage = (scores, capped, biased, weights)[node.attribute("qk_matmul_output_mode", 0)]
        out.emit("Identity", [stage], [node.output(3)])
    value = _repeat_for_query_heads(value, node, 2, out)
    if out.rank(node.inputs[0]) == 4:
        out.emit("MatMul", [weights, value], node.outputs[:1])
        return
    hidden = merged_size(node.inputs[2], _head_count(node, 2, out), _head_count(node, 0, out), out)
    merge_heads(out.emit("MatMul", [weights, value]), node.outputs[0], out, hidden)


def split_input_heads(node: Node, position: int, out: Rewriter) -> str:
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


def _attention_scores(query: str, key: str, node: Node, out: Rewriter) -> str:
    """Return the scaled product of queries and keys.

    Queries and keys are both multiplied by the square root of `scale`, which keeps the products small.
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
    if not last_dimension:  # heads without elements have an infinite scale, which nodes compute
        return computed_dimension(split, 3, out)
    is_split = out.rank(node.inputs[position]) == 4
    return last_dimension if is_split else last_dimension // _head_count(node, position, out)


def _repeat_for_query_heads(value: str, node: Node, position: int, out: Rewriter) -> str:
    """Repeat each key or value head for the query heads that share the head (grouped-query attention)."""
    heads, shared = _head_count(node, 0, out), _head_count(node, position, out)
    if heads == shared:
        return value
    owners = [head * shared // heads for head in range(out.require_elements(heads))]
    return out.emit("Gather", [value, out.int64(owners)], axis=1)


def _softmax_over_keys(scores: str, node: Node, out: Rewriter) -> str:
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

    The maximum of a masked row is minus infinity. A finite maximum alone makes the sum of exponentials at
    least 1. A row with infinity or NaN becomes NaN.
    """
    # Avoid NaN: raise a maximum of minus infinity to a finite number, and a sum of zeros to one.
    lowest, one = (out.constant(each, element_type) for each in (-LARGEST_FINITE[element_type], 1.0))
    maximum = out.emit("ReduceMax", [scores], axes=(3,), keepdims=1, opset=8)
    finite_maximum = _at_least(maximum, lowest, element_type, out)
    exponentials = out.emit("Exp", [out.emit("Sub", [scores, finite_maximum])])
    sums = out.emit("ReduceSum", [exponentials], axes=(3,), keepdims=1, opset=8)
    return out.emit("Div", [exponentials, _at_least(sums, one, element_type, out)])


def _at_least(value: str, low: str, element_type: str, out: Rewriter) -> str:
    """Return the maximum of `value` and the scalar `low`; infinity and NaN remain."""
    if out.default_opset >= BROADCASTING_MAX_OPSET:
        return out.emit("Max", [value, low], opset=13)
    # Without an upper bound, Clip replaces infinity by the largest finite number.
    return out.emit("Clip", [value, low, out.constant(math.inf, element_type)], opset=13)


@function_body("FlexAttention", 1, domain="ai.onnx.preview")
def expand_flex_attention(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul, Softmax and MatMul; apply `score_mod` before and `prob_mod` after the Softmax.

    Query heads are reshaped to (key heads, query heads per key head), so that MatMul broadcasts key heads.
    """
    out = out.for_opset(18, "")  # the target opset may lack the attributes `start` and `end` of Shape
    emit = partial(out.emit, domain="")
    query, key, value = node.inputs
    element_type = out.element_type(query)
    compute_type = "double" if element_type == "double" else "float"
    if "softmax_precision" in node.attributes:
        compute_type = BY_NUMBER[node.attribute("softmax_precision")].name
    shared_heads = emit("Shape", [key], end=2)

    def grouped(data: str) -> str:
        sizes = [shared_heads, out.int64([-1]), emit("Shape", [data], start=2)]
        return emit("Reshape", [data, emit("Concat", sizes, axis=0)])

    def multiply_by_group(data: str, shared: str) -> str:
        products = emit("MatMul", [grouped(data), emit("Unsqueeze", [shared, out.int64([2])])])
        sizes = [emit("Shape", [data], end=3), emit("Shape", [shared], start=3)]
        return emit("Reshape", [products, emit("Concat", sizes, axis=0)])

    keys_last = emit("Transpose", [key], perm=(0, 1, 3, 2))
    root = _root_of_scale(query, node, out)
    products = multiply_by_group(*(emit("Mul", [factor, root]) for factor in (query, keys_last)))
    scores = out.cast(products, compute_type)
    scores = _apply_subgraph(node, "score_mod", scores, compute_type, out)
    weights = emit("Softmax", [scores], axis=-1)
    weights = _apply_subgraph(node, "prob_mod", weights, compute_type, out)
    out.cast(multiply_by_group(weights, out.cast(value, compute_type)), element_type, node.outputs)


def _apply_subgraph(node: Node, attribute: str, value: str, element_type: str, out: Rewriter) -> str:
    """Apply the subgraph in an attribute, if present, to a value, in a Loop with one iteration."""
    if attribute not in node.attributes:
        return value
    graph = node.attribute(attribute)
    body = LoopBuilder(out)
    body.emit("Identity", [body.input(element_type)], [body.provide(graph.input[0].name)], domain="")
    body.embed(node.attributes[attribute])
    body.output(body.embedded_name(graph.output[0].name), element_type)
    return body.emit_loop(out.int64(1), [value], out)[0]


@adapter("RotaryEmbedding", 23, 22)
def expand_rotary_embedding(node: Node, out: Rewriter) -> None:
    """Rewrite as arithmetic on the first `rotary_embedding_dim` elements of each head; 0 means all."""
    packed = out.rank(node.inputs[0]) == 3
    head_size = size_per_head(node.inputs[0], (packed and node.attribute("num_heads", 0)) or 1, out)
    data = _split_rotary_heads(node, head_size, out) if packed else node.inputs[0]
    width: int = node.attribute("rotary_embedding_dim", 0)
    is_partial = width not in (0, head_size)
    rotated_data = _slice_last(data, 0, width, out) if is_partial else data
    rotated = _rotate_pairs(rotated_data, width if is_partial else head_size, node, packed, out)
    if is_partial:
        rotated = out.emit("Concat", [rotated, _slice_last(data, width, INT64_MAX, out)], axis=3)
    if packed:
        reshape(rotated, (0, 0, dimension(node.inputs[0], 2, out)), out, node.outputs)
    else:
        rename_output(rotated, node, out)


def _split_rotary_heads(node: Node, head_size: Dimension, out: Rewriter) -> str:
    """Return the data as (batch, sequence, heads, head size)."""
    heads = node.attribute("num_heads", 0)
    if not heads:
        reason = "num_heads is missing, but 3-D data requires it"
        raise CannotConvert(reason, "node.invalid", remedy="set num_heads")
    return reshape(node.inputs[0], (0, 0, heads, head_size), out)


def _rotate_pairs(data: str, width: Dimension, node: Node, packed: bool, out: Rewriter) -> str:
    """Rotate pairs: adjacent elements if `interleaved`, otherwise one element of each half of a head.

    `width` is the number of elements of a head to rotate.
    """
    if isinstance(width, int) and width % 2:
        reason = f"{width} elements of each head are rotated in pairs, but {width} is odd"
        remedy = "make rotary_embedding_dim, or the head size if it is 0, an even number"
        raise CannotConvert(reason, "node.invalid", remedy=remedy)
    interleaved, half = node.attribute("interleaved", 0), divide_dimension(width, 2, out)
    if isinstance(half, int) and not interleaved:
        first, second = out.emit_all("Split", [data, out.int64([half, half])], 2, axis=3, opset=13)
    else:
        pairs = reshape(data, (0, 0, 0, half, 2) if interleaved else (0, 0, 0, 2, half), out)
        axis = 4 if interleaved else 3
        first, second = (out.emit("Gather", [pairs, out.int64(index)], axis=axis) for index in (0, 1))
    cosine = _angles_per_token(node, 1, packed, out)
    # Share equal angles: tract fails if two equal nodes compute them.
    sine = cosine if node.inputs[2] == node.inputs[1] else _angles_per_token(node, 2, packed, out)
    real = out.emit("Sub", [out.emit("Mul", [cosine, first]), out.emit("Mul", [sine, second])])
    imaginary = out.emit("Add", [out.emit("Mul", [sine, first]), out.emit("Mul", [cosine, second])])
    if not interleaved:
        return out.emit("Concat", [real, imaginary], axis=3)
    columns = [out.emit("Unsqueeze", [each, out.int64([4])], opset=13) for each in (real, imaginary)]
    return reshape(out.emit("Concat", columns, axis=4), (0, 0, 0, width), out)


def _angles_per_token(node: Node, position: int, packed: bool, out: Rewriter) -> str:
    """Return the sine or cosine for every token, with a dimension of size 1 for the heads."""
    angles = node.inputs[position]
    if node.input(3):
        angles = out.emit("Gather", [angles, node.inputs[3]], axis=0)
    return out.emit("Unsqueeze", [angles, out.int64([2 if packed else 1])], opset=13)


def _slice_last(data: str, start: int, end: int, out: Rewriter) -> str:
    bounds = [out.int64([each]) for each in (start, end, 3)]
    return out.emit("Slice", [data, *bounds])
