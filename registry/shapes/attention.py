"""Attention, over heads in a dimension of their own or packed into the last one."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import plus, product, quotient, unknown
from opshift.registry.shapes.reading import input_shape, integer
from opshift.registry.shapes.table import rule

_Heads = tuple[int | None, int | None, int | None, int | None]
"""Batch, heads, sequence length, head size."""
_UNKNOWN: _Heads = (None, None, None, None)


@rule("attention")
def attention(node: ShapeContext) -> Sequence[Shape | None]:
    """The result is packed as the query is; caches and scores are not."""
    query, key, value = (input_shape(node, position) for position in range(3))
    batch, heads, steps, _ = _split(query, integer(node, "q_num_heads"))
    _, shared, new, size = _split(key, integer(node, "kv_num_heads"))
    width = _split(value, integer(node, "kv_num_heads"))[3]
    total = new if node.input_count < 5 else plus(new, _past_length(node))
    if query is None or len(query) not in (3, 4):
        result: Shape | None = None
    else:
        result = (batch, heads, steps, width) if len(query) == 4 else (batch, steps, product((heads, width)))
    cache = (batch, shared, total)
    return [result, (*cache, size), (*cache, width), (batch, heads, steps, total)]


@rule("flex_attention")
def flex_attention(node: ShapeContext) -> Sequence[Shape | None]:
    """All of the query's dimensions but the last, which is the value's."""
    query, value = _four(input_shape(node, 0)), _four(input_shape(node, 2))
    return [(*query[:3], value[3])]


@rule("linear_attention")
def linear_attention(node: ShapeContext) -> Sequence[Shape | None]:
    """The result packs the query's heads with the value's size; the state is a matrix a head."""
    query, key, value = (input_shape(node, position) or unknown(3) for position in range(3))
    if not len(query) == len(key) == len(value) == 3:
        return [unknown(3), unknown(4)]
    heads, shared = integer(node, "q_num_heads"), integer(node, "kv_num_heads")
    size, width = quotient(key[2], shared), quotient(value[2], shared)
    return [(*query[:2], product((heads, width))), (query[0], shared, size, width)]


def _split(shape: Shape | None, heads: int | None) -> _Heads:
    if shape is not None and len(shape) == 3:
        return (shape[0], heads, shape[1], quotient(shape[2], heads))
    return _four(shape)


def _four(shape: Shape | None) -> _Heads:
    if shape is None or len(shape) != 4:
        return _UNKNOWN
    batch, heads, steps, size = shape
    return (batch, heads, steps, size)


def _past_length(node: ShapeContext) -> int | None:
    return _four(input_shape(node, 4))[2]
