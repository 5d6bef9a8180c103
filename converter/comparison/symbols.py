"""Named dimensions: which of them have to be alike, of those that are open in both models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from opshift.converter.comparison.result import Change
from opshift.converter.comparison.signature import Dim, Value


class Axis(NamedTuple):
    """One dimension of an input or output."""

    role: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}[{self.number}]"


Key = str | Axis
"""The name of a dimension; where it has none, that of no other."""


def symbol_changes(pairs: Sequence[tuple[Value, Value]]) -> Iterator[Change]:
    """The differences between what two models ask to be alike.

    Inputs that have to be alike are a narrower shape for callers; outputs that are alike are a promise.
    """
    old = _keys([(one, one.dims, other.dims) for one, other in pairs])
    new = _keys([(one, other.dims, one.dims) for one, other in pairs])
    yield from _joined(old, new, "NARROWED")
    yield from _joined(new, old, "WIDENED")
    if _groups(old) == _groups(new):
        renamed = {(old[axis], new[axis]): None for axis in old if _are_other_names(old[axis], new[axis])}
        for before, after in renamed:
            yield Change("DIMENSION_RENAMED", "dimension", _text(before), _text(after))


def _keys(rows: Sequence[tuple[Value, tuple[Dim, ...] | None, tuple[Dim, ...] | None]]) -> dict[Axis, Key]:
    """What decides each dimension that is open here and in the other model."""
    found: dict[Axis, Key] = {}
    for value, dims, others in rows:
        if dims is None or others is None or len(dims) != len(others):
            continue
        for number, (dim, other) in enumerate(zip(dims, others, strict=True)):
            if not isinstance(dim, int) and not isinstance(other, int):
                axis = Axis(value.role, value.name, number)
                found[axis] = axis if dim is None else dim
    return found


def _joined(before: Mapping[Axis, Key], after: Mapping[Axis, Key], kind: str) -> Iterator[Change]:
    """For each name in `after` the dimensions that it holds together and `before` did not."""
    for symbol, axes in _members(after).items():
        inputs = [axis for axis in axes if axis.role == "INPUT"]
        told = ", ".join(map(str, axes))
        if len({before[axis] for axis in inputs}) > 1:
            yield Change(f"INPUT_SHAPE_{kind}", f"dimension {symbol}", *_told(told, kind))
        if len(inputs) < len(axes) and len({before[axis] for axis in axes}) > 1:
            yield Change(f"OUTPUT_SHAPE_{kind}", f"dimension {symbol}", *_told(told, kind))


def _told(axes: str, kind: str) -> tuple[str, str]:
    apart, alike = f"{axes} may differ", f"{axes} are alike"
    return (apart, alike) if kind == "NARROWED" else (alike, apart)


def _members(keys: Mapping[Axis, Key]) -> dict[str, list[Axis]]:
    found: dict[str, list[Axis]] = defaultdict(list)
    for axis, key in keys.items():
        if isinstance(key, str):
            found[key].append(axis)
    return found


def _groups(keys: Mapping[Axis, Key]) -> set[frozenset[Axis]]:
    found: dict[Key, set[Axis]] = defaultdict(set)
    for axis, key in keys.items():
        found[key].add(axis)
    return set(map(frozenset, found.values()))


def _text(key: Key) -> str:
    return key if isinstance(key, str) else f"{key} without a name"


def _are_other_names(before: Key, after: Key) -> bool:
    return before != after and (isinstance(before, str) or isinstance(after, str))
