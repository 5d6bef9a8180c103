"""Output shapes of com.microsoft's fused, quantized and pooling operators, and of ExpandDims and Unique."""

from functools import reduce

from opshift.model.types import Shape
from opshift.registry.shapes.dims import normalize_axis, of_rank, plus, unify, unknown, with_dims
from opshift.registry.shapes.math import matmul_shape
from opshift.registry.shapes.rule_table import Shapes, data_rule, rule
from opshift.registry.shapes.shape_context import ShapeContext
from opshift.registry.shapes.sliding_windows import pool


@rule("fused_matmul", rank_inputs=(0, 1))
def fused_matmul(node: ShapeContext) -> Shapes:
    """Infer the product of the transposed operands, see `transposed_operand`."""
    return [matmul_shape(transposed_operand(node, 0), transposed_operand(node, 1))]


def transposed_operand(node: ShapeContext, position: int) -> Shape | None:
    """Return the shape of an operand of FusedMatMul after its transpositions; vectors are not transposed."""
    shape, letter = node.shape(position), "AB"[position]
    if shape is None or len(shape) < 2:
        return shape
    if node.integer(f"transBatch{letter}", 0):
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if node.integer(f"trans{letter}", 0) else shape


@rule("quantized_gemm", rank=2)
def quantized_gemm(node: ShapeContext) -> Shapes:
    """Infer the rows of input 0 and the columns of input 3, after optional transposition."""
    first, second = of_rank(node.shape(0), 2), of_rank(node.shape(3), 2)
    return [(first[1 if node.integer("transA", 0) else 0], second[0 if node.integer("transB", 0) else 1])]


@data_rule("normalized_sum", keeps_rank=True)
def normalized_sum(node: ShapeContext, data: Shape) -> Shapes:
    """Infer the input's shape for outputs 0 and 3, and one mean and one inverse deviation per row."""
    statistics = (*data[:-1], 1)
    return [data, statistics, statistics, data]


@data_rule("normalized_embedding")
def normalized_embedding(node: ShapeContext, words: Shape) -> Shapes:
    """Infer one vector per word, one mask index per sequence, and for the sum one vector per word."""
    batch, length = of_rank(words, 2)
    rows = (batch, length, of_rank(node.shape(2), 2)[1])
    return [rows, (batch,), rows]


@rule("quantized_concat")
def quantized_concat(node: ShapeContext) -> Shapes:
    """Add up the sizes of the tensors along the axis; every third input from input 2 is a tensor."""
    shapes = [node.shape(position) for position in range(2, len(node.inputs), 3)]
    known = [shape for shape in shapes if shape is not None]
    if not known or len({len(shape) for shape in known}) != 1:
        return [None]
    axis = normalize_axis(node.integer("axis"), len(known[0]))
    merged = reduce(unify, known, None)
    if axis is None or merged is None:
        return [None]
    total = plus(*(None if shape is None else shape[axis] for shape in shapes))
    return [with_dims(merged, {axis: total})]


@rule("pool_in_layout", keeps_rank=True)
def pool_in_layout(node: ShapeContext) -> Shapes:
    """Infer the shape as for `pool`; with channels last, the spatial dimensions are unknown."""
    data = node.shape(0)
    if "channels_last" in node.version.attributes and not node.integer("channels_last", 0):
        return pool(node)
    return [None if data is None else _with_sizes(data, None)]


def _with_sizes(data: Shape, size: int | None) -> Shape:
    """Set all spatial dimensions to `size` in a shape whose last dimension is the channels."""
    return (data[0], *(size for _ in data[1:-1]), data[-1]) if len(data) > 1 else unknown(len(data))


@data_rule("global_pool_in_layout", keeps_rank=True)
def global_pool_in_layout(node: ShapeContext, data: Shape) -> Shapes:
    """Replace the spatial dimensions by 1."""
    if node.integer("channels_last", 0):
        return [_with_sizes(data, 1)]
    return [(*data[:2], *(1 for _ in data[2:]))]


@data_rule("expand_dims", rank_inputs=(0,))
def expand_dims(node: ShapeContext, data: Shape) -> Shapes:
    """Insert a dimension of 1 at the axis in input 1."""
    axis = normalize_axis(node.constant_integer(1), len(data) + 1)
    return [unknown(len(data) + 1) if axis is None else (*data[:axis], 1, *data[axis:])]


@data_rule("unique_with_positions")
def unique_with_positions(node: ShapeContext, data: Shape) -> Shapes:
    """Infer 1-D values and counts of unknown length, and one index per element of the input."""
    return [(None,), data, (None,)]
