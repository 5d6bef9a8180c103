"""Emit arithmetic on values: one node for each operation."""

from __future__ import annotations

from collections.abc import Iterable

from opshift.adapters import Rewriter

CLIP_OPSET = 6
"""Opset of the emitted Clip, in which the bounds are attributes."""


def add(first: str, second: str, out: Rewriter) -> str:
    """Emit the sum."""
    return out.emit("Add", [first, second])


def subtract(first: str, second: str, out: Rewriter) -> str:
    """Emit the difference."""
    return out.emit("Sub", [first, second])


def multiply(first: str, second: str, out: Rewriter) -> str:
    """Emit the product."""
    return out.emit("Mul", [first, second])


def divide(first: str, second: str, out: Rewriter) -> str:
    """Emit the quotient; Div truncates that of integers towards zero."""
    return out.emit("Div", [first, second])


def fold(op_type: str, values: Iterable[str], out: Rewriter) -> str:
    """Combine values from left to right with a binary operator, such as Add.

    A generator is consumed lazily, so each value can be emitted right before it is combined.

    Returns:
        The name of the result; `""` if there are no values.
    """
    total = ""
    for value in values:
        total = out.emit(op_type, [total, value]) if total else value
    return total


def clip(value: str, low: float, high: float, out: Rewriter) -> str:
    """Emit a Clip of floating-point numbers to constant bounds."""
    return out.emit("Clip", [value], opset=CLIP_OPSET, min=low, max=high)
