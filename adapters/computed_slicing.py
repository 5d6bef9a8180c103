"""Slices by computed bounds, for opsets whose Slice wants them written out: elements are gathered.

Bounds are computed as doubles, which hold every size, and keep the order of all that is beyond one.
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
"""What the nodes here are written for, but for Range, which came in its plain form with 11."""


class Cut(NamedTuple):
    """What a Slice does to one axis."""

    axis: int
    start: Bound
    end: Bound
    step: Bound


class Reach(NamedTuple):
    """Of an axis: its size, and the places that a slice may end at, from `lowest` to `highest`."""

    size: str
    lowest: str
    highest: str


def pick_by_place(data: str, whole: str, cut: Cut, outputs: Sequence[str] | int, out: Rewriter) -> str:
    """The elements of `data` that a cut of `whole`, which has the same size along the axis, keeps."""
    reach = _reach(cast(size_of(whole, cut.axis, out), "double", out), cut.step, out)
    start, end = (_from_the_front(bound, reach.size, out) for bound in (cut.start, cut.end))
    start = _between(out.constant(0.0, "double"), start, reach.highest, out)
    end = _between(reach.lowest, end, reach.highest, out)
    places = out.emit("Range", [start, end, _name(cut.step, out)], opset=11)
    return out.emit("Gather", [data, cast(places, "int64", out)], outputs, opset=OPSET, axis=cut.axis)


def _reach(size: str, step: Bound, out: Rewriter) -> Reach:
    """A slice ends after the last element, or backwards before the first one."""
    if isinstance(step, int):
        if step > 0:
            return Reach(size, out.constant(0.0, "double"), size)
        return Reach(size, out.constant(-1.0, "double"), _of("Sub", size, out.constant(1.0, "double"), out))
    backward = _is_negative(step, out)
    return Reach(size, out.emit("Neg", [backward], opset=OPSET), _of("Sub", size, backward, out))


def _from_the_front(bound: Bound, size: str, out: Rewriter) -> str:
    """The size added to a negative bound."""
    name = _name(bound, out)
    if isinstance(bound, int) and bound >= 0:
        return name
    return _of("Add", name, _of("Mul", _is_negative(name, out), size, out), out)


def _between(lowest: str, value: str, highest: str, out: Rewriter) -> str:
    """The value, or the bound that it is beyond; runtimes take doubles for Relu where not for Min and Max."""
    above = out.emit("Relu", [_of("Sub", value, lowest, out)], opset=OPSET)
    below = out.emit("Relu", [_of("Sub", highest, _of("Add", lowest, above, out), out)], opset=OPSET)
    return _of("Sub", highest, below, out)


def _is_negative(value: str, out: Rewriter) -> str:
    """1 or 0."""
    return cast(_of("Less", value, out.constant(0.0, "double"), out), "double", out)


def _name(bound: Bound, out: Rewriter) -> str:
    return bound if isinstance(bound, str) else out.constant(float(bound), "double")


def _of(op_type: str, first: str, second: str, out: Rewriter) -> str:
    return out.emit(op_type, [first, second], opset=OPSET)
