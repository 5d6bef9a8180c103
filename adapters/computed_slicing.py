"""Slices with computed bounds as Range and Gather, for opsets in which the bounds of Slice are attributes.

Bounds are computed as doubles, which represent every dimension exactly and preserve the order of the
larger bounds that select all elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters.casts import cast
from opshift.adapters.negative_indices import size_of
from opshift.adapters.rewriter import Rewriter

Bound = int | str
"""A number, or the name of a double scalar."""
OPSET = 13
"""Opset of the emitted nodes, except Range, which is written for opset 11."""


class Cut(NamedTuple):
    """The slice of one axis."""

    axis: int
    start: Bound
    end: Bound
    step: Bound


class Reach(NamedTuple):
    """The size of an axis, and the lowest and highest end that a slice of it can have, as double scalars."""

    size: str
    lowest: str
    highest: str


def pick_by_place(data: str, whole: str, cut: Cut, outputs: Sequence[str] | int, out: Rewriter) -> str:
    """Gather the elements that a slice of one axis selects.

    Args:
        data: Value to gather from.
        whole: Value with the same size along the axis, from which the size is read.
        cut: Slice of the axis.
        outputs: Names of the outputs, or their number.
        out: The rewriter to emit with.
    """
    reach = _slice_reach(cast(size_of(whole, cut.axis, out), "double", out), cut.step, out)
    start, end = (_nonnegative_bound(bound, reach.size, out) for bound in (cut.start, cut.end))
    start = _clamp(out.constant(0.0, "double"), start, reach.highest, out)
    end = _clamp(reach.lowest, end, reach.highest, out)
    indices = out.emit("Range", [start, end, _as_value(cut.step, out)], opset=11)
    return out.emit("Gather", [data, cast(indices, "int64", out)], outputs, opset=OPSET, axis=cut.axis)


def _slice_reach(size: str, step: Bound, out: Rewriter) -> Reach:
    """Return the range of ends: 0 to the size for a forward slice, -1 to the size - 1 for a backward one."""
    if isinstance(step, int):
        if step > 0:
            return Reach(size, out.constant(0.0, "double"), size)
        return Reach(
            size, out.constant(-1.0, "double"), _binary("Sub", size, out.constant(1.0, "double"), out)
        )
    backward = _is_negative(step, out)
    return Reach(size, out.emit("Neg", [backward], opset=OPSET), _binary("Sub", size, backward, out))


def _nonnegative_bound(bound: Bound, size: str, out: Rewriter) -> str:
    """Return a bound with the size added if it is negative."""
    value = _as_value(bound, out)
    if isinstance(bound, int) and bound >= 0:
        return value
    return _binary("Add", value, _binary("Mul", _is_negative(value, out), size, out), out)


def _clamp(lowest: str, value: str, highest: str, out: Rewriter) -> str:
    """Return the value limited to the range from `lowest` to `highest`."""
    # Relu, because some runtimes implement it for doubles but not Min and Max.
    above = out.emit("Relu", [_binary("Sub", value, lowest, out)], opset=OPSET)
    below = out.emit("Relu", [_binary("Sub", highest, _binary("Add", lowest, above, out), out)], opset=OPSET)
    return _binary("Sub", highest, below, out)


def _is_negative(value: str, out: Rewriter) -> str:
    """Return 1 if the value is negative and 0 otherwise, as a double."""
    return cast(_binary("Less", value, out.constant(0.0, "double"), out), "double", out)


def _as_value(bound: Bound, out: Rewriter) -> str:
    return bound if isinstance(bound, str) else out.constant(float(bound), "double")


def _binary(op_type: str, first: str, second: str, out: Rewriter) -> str:
    return out.emit(op_type, [first, second], opset=OPSET)
