"""Output shapes of recurrent operators, and of ONNX's attention operators."""

from opshift.model.types import Shape
from opshift.registry.shapes.dims import exact_quotient, of_rank, plus, product, unknown
from opshift.registry.shapes.rule_table import Shapes, rule
from opshift.registry.shapes.shape_context import ShapeContext


@rule("attention")
def attention(node: ShapeContext) -> Shapes:
    """Infer the result, which has the rank of the query, and the caches and scores, which are 4-D."""
    query, kv_heads = node.shape(0), node.integer("kv_num_heads")
    batch, heads, length, _ = _split(query, node.integer("q_num_heads"))
    _, cached_heads, added, size = _split(node.shape(1), kv_heads)
    width = _split(node.shape(2), kv_heads)[3]
    total = plus(added, of_rank(node.shape(4), 4)[2]) if node.has_input(4) else added
    result: Shape | None = None
    if query is not None and len(query) == 4:
        result = (batch, heads, length, width)
    elif query is not None and len(query) == 3:
        result = (batch, length, product((heads, width)))
    cache = (batch, cached_heads, total)
    return [result, (*cache, size), (*cache, width), (batch, heads, length, total)]


@rule("flex_attention")
def flex_attention(node: ShapeContext) -> Shapes:
    """Infer the shape of the query, with the last dimension of input 2, the value."""
    return [(*of_rank(node.shape(0), 4)[:3], of_rank(node.shape(2), 4)[3])]


@rule("linear_attention")
def linear_attention(node: ShapeContext) -> Shapes:
    """Infer a 3-D result, whose last dimension packs the heads, and a state with one matrix per head."""
    query, key, value = (node.shape(position) or unknown(3) for position in range(3))
    if not len(query) == len(key) == len(value) == 3:
        return [unknown(3), unknown(4)]
    heads, kv_heads = node.integer("q_num_heads"), node.integer("kv_num_heads")
    size, width = exact_quotient(key[2], kv_heads), exact_quotient(value[2], kv_heads)
    return [(*query[:2], product((heads, width))), (query[0], kv_heads, size, width)]


def _split(shape: Shape | None, heads: int | None) -> Shape:
    """Return batch, heads, length and head size of a 4-D input, or of a 3-D input with packed heads."""
    if shape is not None and len(shape) == 3:
        return (shape[0], heads, shape[1], exact_quotient(shape[2], heads))
    return of_rank(shape, 4)


@rule("recurrent")
def recurrent(node: ShapeContext) -> Shapes:
    """Infer the outputs of all steps, then the final states; with layout 1, the batch dimension is first."""
    first, second, _ = of_rank(node.shape(0), 3)
    hidden = node.integer("hidden_size", of_rank(node.shape(2), 3)[2])
    directions = 2 if node.string("direction") == "bidirectional" else 1
    if node.integer("layout", 0):
        return [(first, second, directions, hidden), *[(first, directions, hidden)] * 2]
    return [(first, directions, second, hidden), *[(directions, second, hidden)] * 2]
