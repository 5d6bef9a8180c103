"""Slices by computed bounds, as masks over each axis, for opsets whose Slice wants them written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters.negative_indices import OPSET, shifted_if_negative, size_of
from opshift.adapters.ranges import positions_below
from opshift.adapters.rewriter import Rewriter

Bound = int | str
"""A number, or the name of an int64 scalar."""


class Cut(NamedTuple):
    """What a Slice does to one axis."""

    axis: int
    start: Bound
    end: Bound
    step: int


def pick_by_mask(data: str, whole: str, cut: Cut, outputs: Sequence[str] | int, out: Rewriter) -> str:
    """The elements of `data` that a cut of `whole`, which has the same size along the axis, keeps.

    A negative step turns the axis round first, and goes the other way.
    """
    size = size_of(whole, cut.axis, out)
    positions = positions_below(out.emit("Reshape", [size, out.constant([1], "int64")], opset=OPSET), out)
    start, end = (_from_the_front(bound, size, out) for bound in (cut.start, cut.end))
    if cut.step < 0:
        last = _of("Sub", size, out.constant(1, "int64"), out)
        backward = _of("Sub", last, positions, out)
        data = out.emit("Gather", [data, backward], opset=OPSET, axis=cut.axis)
        start, end = _of("Sub", last, start, out), _of("Sub", last, end, out)
    not_before = out.emit("Not", [_of("Less", positions, start, out)], opset=OPSET)
    mask = _of("And", not_before, _of("Less", positions, end, out), out)
    if abs(cut.step) > 1:
        mask = _of("And", mask, _on_step(positions, start, abs(cut.step), out), out)
    return out.emit("Compress", [data, mask], outputs, opset=OPSET, axis=cut.axis)


def _from_the_front(bound: Bound, size: str, out: Rewriter) -> str:
    """The size added to a negative bound; one that is beyond the axis stays so."""
    if isinstance(bound, int) and bound >= 0:
        return out.constant(bound, "int64")
    name = out.constant(bound, "int64") if isinstance(bound, int) else bound
    return shifted_if_negative(name, size, "int64", out)


def _on_step(positions: str, start: str, step: int, out: Rewriter) -> str:
    """Whether the distance to the first element is a multiple of the step."""
    to_zero = _of("Sub", out.constant(0, "int64"), start, out)
    first = shifted_if_negative(start, to_zero, "int64", out)
    distance = _of("Sub", positions, first, out)
    width = out.constant(step, "int64")
    return _of("Equal", distance, _of("Mul", _of("Div", distance, width, out), width, out), out)


def _of(op_type: str, first: str, second: str, out: Rewriter) -> str:
    return out.emit(op_type, [first, second], opset=OPSET)
