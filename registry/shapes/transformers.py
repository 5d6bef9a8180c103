"""Output shapes of com.microsoft's attention operators, and of operators with block-quantized weights."""

from opshift.model.types import Shape
from opshift.registry.shapes.dims import dim_at, exact_quotient, normalize_axis, of_rank, plus, product
from opshift.registry.shapes.rule_table import Shapes, data_rule, rule
from opshift.registry.shapes.shape_context import ShapeContext
from opshift.registry.shapes.sizes import ceil_quotient, floor_quotient


@data_rule("matmul_columns", keeps_rank=True)
def matmul_columns(node: ShapeContext, data: Shape) -> Shapes:
    """Replace the last dimension by the attribute `N`."""
    return [(*data[:-1], node.integer("N"))]


@data_rule("gather_blocks", rank_inputs=(0, 1))
def gather_blocks(node: ShapeContext, data: Shape) -> Shapes:
    """Replace the axis by the dimensions of the indices; a byte of the data may pack several numbers."""
    indices, axis = node.shape(1), normalize_axis(node.integer("gather_axis", 0), len(data))
    if indices is None or axis is None:
        return [None]
    dims = (*data[:-1], _unpacked_width(node, data[-1]))
    return [(*dims[:axis], *indices, *dims[axis + 1 :])]


def _unpacked_width(node: ShapeContext, width: int | None) -> int | None:
    """Return the last dimension of the dequantized data, if the number of scales determines it."""
    scales, bits, size = node.shape(2), node.integer("bits", 4), node.integer("block_size", 128)
    if width is None or not scales or not bits or not size:
        return None
    widths = {width, floor_quotient(width * 8, bits)}
    found = [each for each in widths if ceil_quotient(each, size) == scales[-1]]
    return found[0] if len(found) == 1 else None


@rule("projected_attention")
def projected_attention(node: ShapeContext) -> Shapes:
    """Infer a 3-D result that concatenates all heads, and a 5-D cache that stacks keys and values."""
    batch, length, _ = of_rank(node.shape(0), 3)
    heads, sizes = node.integer("num_heads"), node.integers("qkv_hidden_sizes")
    width = sizes[2] if sizes and len(sizes) == 3 else exact_quotient(of_rank(node.shape(1), 2)[1], 3)
    return [(batch, length, width), (2, batch, heads, None, exact_quotient(width, heads))]


@rule("multi_head_attention")
def multi_head_attention(node: ShapeContext) -> Shapes:
    """Infer a 3-D result that concatenates all heads, and 4-D caches and scores."""
    query, key, value = (node.shape(position) for position in range(3))
    heads = node.integer("num_heads")
    batch, length = dim_at(query, 0), dim_at(query, 1)
    size, added = _key_size_and_length(query, key, heads)
    width = size
    if value is not None:
        width = value[3] if len(value) == 4 else exact_quotient(of_rank(value, 3)[2], heads)
    total = plus(added, of_rank(node.shape(6), 4)[2]) if node.has_input(6) else added
    cache = (batch, heads, total)
    result = (batch, length, product((heads, width)))
    return [result, (*cache, size), (*cache, width), (batch, heads, length, total)]


def _key_size_and_length(
    query: Shape | None, key: Shape | None, heads: int | None
) -> tuple[int | None, int | None]:
    """Return the head size and the number of new keys; a 5-D input packs keys with queries or values."""
    source = query if key is None else key
    if source is not None and len(source) == 5:
        return source[4], source[1]
    if key is not None and len(key) == 4:
        return key[3], key[2]
    return exact_quotient(of_rank(query, 3)[2], heads), of_rank(key, 3)[1]


@rule("group_query_attention")
def group_query_attention(node: ShapeContext) -> Shapes:
    """Infer a 3-D result that concatenates all heads, and 4-D caches and scores of unknown total length."""
    batch, length, _ = of_rank(node.shape(0), 3)
    heads, shared = node.integer("num_heads"), node.integer("kv_num_heads")
    past_size, new_size = of_rank(node.shape(3), 4)[3], of_rank(node.shape(1), 3)[2]
    size = exact_quotient(new_size, shared) if past_size is None else past_size
    cache = (batch, shared, None, size)
    return [(batch, length, product((heads, size))), cache, cache, (batch, heads, length, None)]
