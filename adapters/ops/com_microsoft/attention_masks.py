"""Masks of Attention and MultiHeadAttention of onnxruntime.

Kernels add masks to the scores: `mask_filter_value` for a masked key, and the lowest finite
number for a key after a causal query.
"""

from typing import NamedTuple

from opshift.adapters import Node, Rewriter, UnknownShape
from opshift.adapters.emit.cast import LARGEST_FINITE
from opshift.adapters.emit.expression import fold
from opshift.adapters.emit.heads import positions
from opshift.adapters.emit.shapes import (
    Dimension,
    add_dimensions,
    dimension_tensor,
    reshape,
    shape_tensor,
)

MASK_FILTER_VALUE = -10000.0
"""Default of `mask_filter_value`."""


class Lengths(NamedTuple):
    """Numbers of queries, of past keys, and of all keys."""

    queries: Dimension
    past: Dimension
    keys: Dimension


def added_masks(node: Node, mask: str, lengths: Lengths, element_type: str, out: Rewriter) -> str:
    """Return the sum of the key mask and the causal mask, or `""` if there is none."""
    masks = []
    if mask:
        filtered = node.attribute("mask_filter_value", MASK_FILTER_VALUE)
        masks.append(_mask(_kept_keys(node, mask, lengths, out), filtered, element_type, out))
    if node.attribute("unidirectional", 0):
        kept = out.emit("Not", [out.emit("Greater", causal_positions(lengths, out))])
        masks.append(_mask(kept, -LARGEST_FINITE[element_type], element_type, out))
    return fold("Add", masks, out)


def _mask(kept: str, filtered: float, element_type: str, out: Rewriter) -> str:
    return out.emit("Where", [kept, *(out.constant(each, element_type) for each in (0.0, filtered))])


def causal_positions(lengths: Lengths, out: Rewriter) -> list[str]:
    """Return the positions of keys, in a row, and of queries, in a column."""
    queries = positions(lengths.queries, out)
    if lengths.past:
        queries = out.emit("Add", [queries, dimension_tensor(lengths.past, out)])
    return [positions(lengths.keys, out), reshape(queries, (-1, 1), out)]


def _kept_keys(node: Node, mask: str, lengths: Lengths, out: Rewriter) -> str:
    """Return whether keys are kept, of a shape that broadcasts to (batch, heads, queries, keys)."""
    rank = out.rank(mask)
    if rank == 1:
        return _kept_range(node.inputs[0], mask, lengths, out)
    if rank == 4:
        # A square mask of the longest sequence: take the rows of the queries and the columns of the keys.
        starts = [dimension_tensor(lengths.past, out), out.int64([0])]
        ends = [add_dimensions(lengths.past, lengths.queries, out), lengths.keys]
        bounds = [out.emit("Concat", starts, axis=0), shape_tensor(ends, out)]
        mask = out.emit("Slice", [mask, *bounds, out.int64([2, 3])])
    elif rank < 4:
        mask = out.emit("Unsqueeze", [mask, out.int64([1, 2][: 4 - rank])])
    return out.emit("Greater", [mask, out.constant(0, "int32")])


def _kept_range(data: str, mask: str, lengths: Lengths, out: Rewriter) -> str:
    """Return whether keys are before the end, and not before the start, of each batch entry.

    Raises:
        UnknownShape: the mask may or may not have starts after the ends.
    """
    shapes = out.comparable_shapes([data, mask])
    batch, size = ((shape or (None,))[0] for shape in shapes)
    keys = positions(lengths.keys, out)
    bounds = out.cast(mask, "int64")
    if size is not None and size == batch:
        return out.emit("Less", [keys, reshape(bounds, (-1, 1, 1, 1), out)])
    if size is None or batch is None or size < 0 or size != 2 * batch:
        reason = f"the mask {mask!r} may have one number or two for each batch entry"
        raise UnknownShape(reason, data, mask)
    ends, starts = (
        reshape(
            out.emit("Slice", [bounds, out.int64([start]), out.int64([start + batch])]), (-1, 1, 1, 1), out
        )
        for start in (0, batch)
    )
    is_started = out.emit("Not", [out.emit("Less", [keys, starts])])
    return out.emit("And", [out.emit("Less", [keys, ends]), is_started])
