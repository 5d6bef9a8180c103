"""Indices of the elements along a padded axis, computed at run time."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.core.rewriter import Rewriter
from opshift.model.node import Node

PADDING_OPSET = 11
"""Opset of the emitted nodes: the first with Range."""


class PaddedPositions(NamedTuple):
    """Positions along a padded axis, as names of int64 lists.

    Attributes:
        positions: Position of each output element relative to the first kept element: negative in the
            padding before, `length` or more in the padding after.
        first: Index of the first element that is not cropped; one element.
        length: Number of elements that are not cropped; one element.
    """

    positions: str
    first: str
    length: str


def pads_of_axis(pads: str, position: int, count: int, out: Rewriter) -> tuple[str, str]:
    """Return the pads before and after one of `count` axes, each as a list of one element."""
    indices = (out.constant([each], "int64") for each in (position, count + position))
    before, after = (out.emit("Gather", [pads, index], opset=PADDING_OPSET, axis=0) for index in indices)
    return before, after


def padded_positions(value: str, before: str, after: str, axis: int, out: Rewriter) -> PaddedPositions:
    """Return the positions along a padded axis of a value.

    Args:
        value: Value to pad.
        before: Pad at the start, a list of one element; a negative pad crops.
        after: Pad at the end, likewise.
        axis: Axis to pad, not negative.
        out: The rewriter to emit with.
    """
    first, last = (max_with_zero(_negate(pad, out), out) for pad in (before, after))
    size = out.emit(
        "Gather", [_shape(value, out), out.constant([axis], "int64")], opset=PADDING_OPSET, axis=0
    )
    count = subtract(subtract(size, first, out), last, out)
    start = _negate(max_with_zero(before, out), out)
    limit = add(count, max_with_zero(after, out), out)
    scalars = [out.emit("Squeeze", [each], opset=PADDING_OPSET, axes=[0]) for each in (start, limit)]
    numbers = out.emit("Range", [*scalars, out.constant(1, "int64")], opset=PADDING_OPSET)
    return PaddedPositions(numbers, first, count)


def wrapped_indices(padded: PaddedPositions, out: Rewriter) -> str:
    """Return the indices for the mode `wrap`: positions modulo the number of kept elements."""
    return add(out.emit("Mod", [padded.positions, padded.length], opset=PADDING_OPSET), padded.first, out)


def edge_indices(padded: PaddedPositions, out: Rewriter) -> str:
    """Return the indices for the mode `edge`: positions clamped to the kept elements."""
    last = subtract(padded.length, out.constant([1], "int64"), out)
    clamped = subtract(
        last, max_with_zero(subtract(last, max_with_zero(padded.positions, out), out), out), out
    )
    return add(clamped, padded.first, out)


def reflected_indices(padded: PaddedPositions, out: Rewriter) -> str:
    """Return the indices for the mode `reflect`: positions mirrored at the first and last kept element."""
    one = out.constant([1], "int64")
    last = subtract(padded.length, one, out)
    # The period is 2 * last, but at least 1: a single kept element must not lead to Mod by 0.
    period = add(max_with_zero(subtract(add(last, last, out), one, out), out), one, out)
    offset = subtract(last, out.emit("Mod", [padded.positions, period], opset=PADDING_OPSET), out)
    return add(subtract(last, out.emit("Abs", [offset], opset=PADDING_OPSET), out), padded.first, out)


def inside_mask(padded: PaddedPositions, out: Rewriter) -> str:
    """Return whether each position is a kept element and not padding."""
    is_before = out.emit("Less", [padded.positions, out.constant([0], "int64")], opset=PADDING_OPSET)
    is_below_length = out.emit("Less", [padded.positions, padded.length], opset=PADDING_OPSET)
    return out.emit(
        "And", [is_below_length, out.emit("Not", [is_before], opset=PADDING_OPSET)], opset=PADDING_OPSET
    )


def max_with_zero(value: str, out: Rewriter) -> str:
    """Return the maximum of an integer and 0."""
    # (x + |x|) / 2, because Max does not support integers before opset 12.
    doubled = add(value, out.emit("Abs", [value], opset=PADDING_OPSET), out)
    return out.emit("Div", [doubled, out.constant([2], "int64")], opset=PADDING_OPSET)


def add(first: str, second: str, out: Rewriter) -> str:
    """Emit an Add."""
    return out.emit("Add", [first, second], opset=PADDING_OPSET)


def subtract(first: str, second: str, out: Rewriter) -> str:
    """Emit a Sub."""
    return out.emit("Sub", [first, second], opset=PADDING_OPSET)


def _negate(value: str, out: Rewriter) -> str:
    return out.emit("Neg", [value], opset=PADDING_OPSET)


def _shape(value: str, out: Rewriter) -> str:
    return out.emit("Shape", [value], opset=PADDING_OPSET)


def gather_padded(node: Node, out: Rewriter) -> None:
    """Emit a Gather for each axis; for the mode `constant`, replace the padding with the value by Where."""
    mode = node.attribute("mode", b"constant")
    element_type = out.element_type(node.inputs[0])
    rank = out.rank(node.inputs[0])
    fill_value = node.input(2) or (
        out.constant(_zero(element_type), element_type) if mode == b"constant" else ""
    )
    value = node.inputs[0]
    for axis in range(rank):
        before, after = pads_of_axis(node.inputs[1], axis, rank, out)
        padded = padded_positions(value, before, after, axis, out)
        # The mode `constant` gathers edge elements, which Where then replaces.
        indices = reflected_indices(padded, out) if mode == b"reflect" else edge_indices(padded, out)
        value = out.emit("Gather", [value, indices], opset=PADDING_OPSET, axis=axis)
        if mode == b"constant":
            value = out.emit(
                "Where", [_mask(padded, rank - axis, out), value, fill_value], opset=PADDING_OPSET
            )
    out.emit("Identity", [value], node.outputs, opset=PADDING_OPSET)


def _zero(element_type: str) -> int | float:
    return 0.0 if element_type in ("float16", "float", "double") else 0


def _mask(padded: PaddedPositions, dimensions: int, out: Rewriter) -> str:
    """Return which positions are not padding, with `dimensions - 1` dimensions of 1 appended to broadcast."""
    shape = out.constant([-1, *[1] * (dimensions - 1)], "int64")
    return out.emit("Reshape", [inside_mask(padded, out), shape], opset=PADDING_OPSET)
