"""Masks of Attention and MultiHeadAttention of onnxruntime.

Kernels add masks to the scores, in float32: `mask_filter_value` for a masked key, and the lowest
finite number for a key after a causal query.
"""

from typing import NamedTuple

from opshift.adapters import Node, Rewriter
from opshift.adapters.emit.cast import LARGEST_FINITE
from opshift.adapters.emit.heads import positions
from opshift.adapters.emit.shapes import (
    Dimension,
    add_dimensions,
    dimension,
    dimension_tensor,
    reshape,
    shape_tensor,
)

MASK_FILTER_VALUE = -10000.0
"""Default of `mask_filter_value`."""


class Lengths(NamedTuple):
    """Numbers of queries, of past keys, and of all keys.

    Attributes:
        has_later_keys: whether there may be more new keys than queries.
    """

    queries: Dimension
    past: Dimension
    keys: Dimension
    has_later_keys: bool = False


def added_masks(node: Node, mask: str, lengths: Lengths, out: Rewriter) -> str:
    """Return the float32 sum of the key mask and the causal mask, or `""` if there is none."""
    masks = ""
    if mask:
        filtered = node.attribute("mask_filter_value", MASK_FILTER_VALUE)
        masks = _mask(_kept_keys(node, mask, lengths, out), out.constant(0.0, "float"), filtered, out)
    if node.attribute("unidirectional", 0):
        # The lowest number replaces that of the key mask: their sum would be minus infinity.
        others = masks or out.constant(0.0, "float")
        masks = _mask(_kept_past(lengths, out), others, -LARGEST_FINITE["float"], out)
    return masks


def _mask(kept: str, others: str, filtered: float, out: Rewriter) -> str:
    return out.emit("Where", [kept, others, out.constant(filtered, "float")])


def _kept_past(lengths: Lengths, out: Rewriter) -> str:
    """Return which keys are not after a query, of shape (queries, keys)."""
    numbers = queries = positions(lengths.queries, out)
    if lengths.past:
        queries = out.emit("Add", [queries, dimension_tensor(lengths.past, out)])
    operands = [positions(lengths.keys, out), reshape(queries, (-1, 1), out)]
    kept = out.emit("Not", [out.emit("Greater", operands)])
    if not lengths.has_later_keys:
        return kept
    # Kernels never mask keys of the last query.
    last = out.emit("Sub", [dimension_tensor(lengths.queries, out), out.int64(1)])
    is_last = out.emit("Equal", [reshape(numbers, (-1, 1), out), last])
    return out.emit("Or", [kept, is_last])


def _kept_keys(node: Node, mask: str, lengths: Lengths, out: Rewriter) -> str:
    """Return whether keys are kept, of a shape that broadcasts to (batch, heads, queries, keys)."""
    rank = out.rank(mask)
    if rank == 1:
        return _kept_range(node, mask, lengths, out)
    if rank == 4:
        # A square mask of the longest sequence: take the rows of the queries and the columns of the keys.
        starts = [dimension_tensor(lengths.past, out), out.int64([0])]
        ends = [add_dimensions(lengths.past, lengths.queries, out), lengths.keys]
        bounds = [out.emit("Concat", starts, axis=0), shape_tensor(ends, out)]
        mask = out.emit("Slice", [mask, *bounds, out.int64([2, 3])])
    elif rank < 4:
        mask = out.emit("Unsqueeze", [mask, out.int64([1, 2][: 4 - rank])])
    return out.emit("Greater", [mask, out.constant(0, "int32")])


def _kept_range(node: Node, mask: str, lengths: Lengths, out: Rewriter) -> str:
    """Return whether keys are before the end, and not before the start, of each batch entry.

    Of MultiHeadAttention, the mask has ends, which offsets may follow.
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
    if node.op_type == "MultiHeadAttention":
        return out.emit("Less", [keys, ends])
    # Without starts, those are 0.
    starts = out.emit("Expand", [zero, count])
    padded = out.emit("Concat", [bounds, starts], axis=0)
    both = dimension_tensor(add_dimensions(count, count, out), out)
    starts = reshape(out.emit("Slice", [padded, count, both, zero]), (-1, 1, 1, 1), out)
    is_started = out.emit("Not", [out.emit("Less", [keys, starts])])
    return out.emit("And", [out.emit("Less", [keys, ends]), is_started])
