"""Attention of several heads: layouts of queries, keys and values, and steps that several operators share."""

import math

from opshift.adapters import Rewriter
from opshift.adapters.emit.shapes import Dimension, computed_dimension, product_or_inferred, reshape


def split_heads(value: str, heads: int, out: Rewriter) -> str:
    """Return a value of shape (batch, sequence, hidden size) as (batch, heads, sequence, head size)."""
    split = reshape(value, (0, 0, heads, size_per_head(value, heads, out)), out)
    return out.emit("Transpose", [split], perm=(0, 2, 1, 3))


def size_per_head(value: str, heads: int, out: Rewriter) -> int:
    """Return the head size of a value whose last dimension holds all heads, or -1 to infer it."""
    hidden = product_or_inferred(value, (-1,), out)
    return hidden if hidden < 0 else hidden // heads


def merged_size(value: str, heads: int, merged_heads: int, out: Rewriter) -> int:
    """Return the size of merged heads, each as large as one of `value`, or -1 to infer it."""
    size = size_per_head(value, heads, out)
    return size if size < 0 else size * merged_heads


def merge_heads(value: str, output: str, out: Rewriter, hidden: int = -1) -> None:
    """Emit the reverse of `split_heads`; the hidden size -1 is inferred."""
    reshape(out.emit("Transpose", [value], perm=(0, 2, 1, 3)), (0, 0, hidden), out, [output])


def append_to_past(past: str, new: str, present: str, out: Rewriter) -> str:
    """Concatenate past and new keys or values; the result is also an output of the node."""
    if not past:
        if out.is_used(present):
            out.emit("Identity", [new], [present])
        return new
    return out.emit("Concat", [past, new], [present] if present else 1, axis=2)


def cap_scores(scores: str, limit: float, element_type: str, out: Rewriter) -> str:
    """Return `limit * tanh(scores / limit)`, or the scores if the limit is 0."""
    if not limit > 0:
        return scores
    cap = out.constant(limit, element_type)
    return out.emit("Mul", [out.emit("Tanh", [out.emit("Div", [scores, cap])]), cap])


def positions(count: Dimension, out: Rewriter) -> str:
    """Return the int64 numbers 0, 1, 2 and so on."""
    end = out.int64(count) if isinstance(count, int) else reshape(count, (), out)
    return out.emit("Range", [out.int64(0), end, out.int64(1)])


def scaled_scores(query: str, key: str, scale: str, out: Rewriter) -> str:
    """Return the product of queries, which are scaled first to keep it small, and keys."""
    keys_last = out.emit("Transpose", [key], perm=(0, 1, 3, 2))
    return out.emit("MatMul", [out.emit("Mul", [query, scale]), keys_last])


def score_scale(scale: float, query: str, head_size: int | None, element_type: str, out: Rewriter) -> str:
    """Return the factor of the scores: 0 means one over the square root of the head size."""
    if scale or head_size:
        return out.constant(scale or 1 / math.sqrt(head_size or 1), element_type)
    size = out.cast(computed_dimension(query, 3, out), "float")
    return out.cast(out.emit("Reciprocal", [out.emit("Sqrt", [size])]), element_type)
