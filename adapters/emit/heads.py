"""Emit parts of multi-head attention: split and merge heads, append to caches, and compute scores."""

import math

from opshift.adapters import Rewriter
from opshift.adapters.emit.shapes import (
    Dimension,
    computed_dimension,
    dimension,
    divide_dimension,
    multiply_dimension,
    product_of_dimensions,
    reshape,
)


def split_heads(value: str, heads: int, out: Rewriter, hidden: int | None = None) -> str:
    """Rearrange a value of shape (batch, sequence, hidden size) to (batch, heads, sequence, head size).

    `hidden` is the hidden size; if it is `None`, the size is inferred or computed by nodes.
    """
    size = size_per_head(value, heads, out) if hidden is None else hidden // heads
    split = reshape(value, (0, 0, heads, size), out)
    return out.emit("Transpose", [split], perm=(0, 2, 1, 3))


def size_per_head(value: str, heads: int, out: Rewriter) -> Dimension:
    """Return the head size of a value whose last dimension holds all heads."""
    return divide_dimension(dimension(value, -1, out), heads, out)


def merged_size(value: str, heads: int, merged_heads: int, out: Rewriter) -> Dimension:
    """Return `merged_heads` times the head size of `value`, whose last dimension holds `heads` heads."""
    return multiply_dimension(size_per_head(value, heads, out), merged_heads, out)


def merge_heads(value: str, output: str, out: Rewriter, hidden: Dimension | None = None) -> None:
    """Emit the reverse of `split_heads` to `output`; if `hidden` is `None`, the hidden size is computed."""
    moved = out.emit("Transpose", [value], perm=(0, 2, 1, 3))
    size = product_of_dimensions(moved, (2, 3), out) if hidden is None else hidden
    reshape(moved, (0, 0, size), out, [output])


def append_to_past(past: str, new: str, present: str, out: Rewriter) -> str:
    """Return `past` (if not `""`) and `new` keys or values joined along axis 2, also as output `present`."""
    if not past:
        if out.is_used(present):
            out.emit("Identity", [new], [present])
        return new
    return out.emit("Concat", [past, new], [present] if present else 1, axis=2)


def cap_scores(scores: str, limit: float, element_type: str, out: Rewriter) -> str:
    """Return `limit * tanh(scores / limit)`, or the scores if the limit is not positive."""
    if not limit > 0:
        return scores
    cap = out.constant(limit, element_type)
    return out.emit("Mul", [out.emit("Tanh", [out.emit("Div", [scores, cap])]), cap])


def positions(count: Dimension, out: Rewriter) -> str:
    """Return the 1-D int64 tensor of the numbers from 0 to `count - 1`."""
    end = out.int64(count) if isinstance(count, int) else reshape(count, (), out)
    return out.emit("Range", [out.int64(0), end, out.int64(1)])


def scaled_scores(query: str, key: str, scale: str, out: Rewriter) -> str:
    """Return `query * scale` times the transposed `key`; scaling first keeps intermediate numbers small."""
    keys_last = out.emit("Transpose", [key], perm=(0, 1, 3, 2))
    return out.emit("MatMul", [out.emit("Mul", [query, scale]), keys_last])


def score_scale(scale: float, query: str, head_size: int | None, element_type: str, out: Rewriter) -> str:
    """Return the factor of the scores: `scale`, or `1 / sqrt(head size)` if `scale` is 0.

    If `head_size` is `None`, nodes compute the last dimension of `query`, which has rank 4.
    """
    if scale or head_size:
        return out.constant(scale or 1 / math.sqrt(head_size or 1), element_type)
    size = out.cast(computed_dimension(query, 3, out), "float")
    return out.cast(out.emit("Reciprocal", [out.emit("Sqrt", [size])]), element_type)
