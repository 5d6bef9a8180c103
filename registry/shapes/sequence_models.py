"""Shapes of attention, with heads as a separate dimension or packed into the last one."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.dims import exact_quotient, plus, product, unknown
from opshift.registry.shapes.node_reading import input_shape, integer_attribute, string_attribute
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule

_Heads = tuple[int | None, int | None, int | None, int | None]
"""Batch, heads, sequence length, head size."""

_UNKNOWN: _Heads = (None, None, None, None)


@rule("attention")
def attention(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the result, which is packed like the query, and the caches and scores, which are 4-D."""
    query, key, value = (input_shape(node, position) for position in range(3))
    batch, heads, length, _ = _split(query, integer_attribute(node, "q_num_heads"))
    _, kv_heads, added, size = _split(key, integer_attribute(node, "kv_num_heads"))
    width = _split(value, integer_attribute(node, "kv_num_heads"))[3]
    total = added if node.input_count < 5 else plus(added, _past_length(node))
    if query is None or len(query) not in (3, 4):
        result: Shape | None = None
    else:
        result = (
            (batch, heads, length, width) if len(query) == 4 else (batch, length, product((heads, width)))
        )
    cache = (batch, kv_heads, total)
    return [result, (*cache, size), (*cache, width), (batch, heads, length, total)]


@rule("flex_attention")
def flex_attention(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the query's shape with the last dimension of the value."""
    query, value = _heads_of(input_shape(node, 0)), _heads_of(input_shape(node, 2))
    return [(*query[:3], value[3])]


@rule("linear_attention")
def linear_attention(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer a result that packs heads and value size, and a state with one matrix per head."""
    query, key, value = (input_shape(node, position) or unknown(3) for position in range(3))
    if not len(query) == len(key) == len(value) == 3:
        return [unknown(3), unknown(4)]
    heads, kv_heads = integer_attribute(node, "q_num_heads"), integer_attribute(node, "kv_num_heads")
    size, width = exact_quotient(key[2], kv_heads), exact_quotient(value[2], kv_heads)
    return [(*query[:2], product((heads, width))), (query[0], kv_heads, size, width)]


def _split(shape: Shape | None, heads: int | None) -> _Heads:
    if shape is not None and len(shape) == 3:
        return (shape[0], heads, shape[1], exact_quotient(shape[2], heads))
    return _heads_of(shape)


def _heads_of(shape: Shape | None) -> _Heads:
    if shape is None or len(shape) != 4:
        return _UNKNOWN
    batch, heads, length, size = shape
    return (batch, heads, length, size)


def _past_length(node: ShapeContext) -> int | None:
    return _heads_of(input_shape(node, 4))[2]


@rule("recurrent")
def recurrent(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the outputs of all steps, then the final states; with layout 1, the batch dimension is first."""
    data, recurrence = input_shape(node, 0), input_shape(node, 2)
    first, second = data[:2] if data is not None and len(data) == 3 else (None, None)
    hidden = integer_attribute(node, "hidden_size")
    if hidden is None and recurrence is not None and len(recurrence) == 3:
        hidden = recurrence[2]
    directions = 2 if string_attribute(node, "direction") == "bidirectional" else 1
    if integer_attribute(node, "layout", 0):
        state: Shape = (first, directions, hidden)
        return [(first, second, directions, hidden), state, state]
    state = (directions, second, hidden)
    return [(first, directions, second, hidden), state, state]
