"""Comparison of named dimensions: which of the dimensions without a fixed size have to be equal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from opshift.analysis.comparison.result import Change
from opshift.analysis.comparison.signature import Dim, Value


class Axis(NamedTuple):
    """Position of a dimension in an input or output."""

    role: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}[{self.number}]"


Key = str | Axis
"""Identity of a dimension without a fixed size: its name, or its position if it is unnamed."""


def symbol_changes(pairs: Sequence[tuple[Value, Value]]) -> Iterator[Change]:
    """Yield changes of the equality constraints that shared dimension names express.

    Equal dimensions of inputs restrict callers, which narrows the shapes. Equal dimensions of outputs are a
    guarantee.
    """
    old_keys = _keys([(one, one.dims, other.dims) for one, other in pairs])
    new_keys = _keys([(one, other.dims, one.dims) for one, other in pairs])
    yield from _new_constraints(old_keys, new_keys, "NARROWED")
    yield from _new_constraints(new_keys, old_keys, "WIDENED")
    if _groups(old_keys) == _groups(new_keys):
        renamed = {
            (old_keys[axis], new_keys[axis]): None
            for axis in old_keys
            if _is_renamed(old_keys[axis], new_keys[axis])
        }
        for before, after in renamed:
            yield Change("DIMENSION_RENAMED", "dimension", _key_text(before), _key_text(after))


def _keys(rows: Sequence[tuple[Value, tuple[Dim, ...] | None, tuple[Dim, ...] | None]]) -> dict[Axis, Key]:
    """Return the identity of each dimension that has no fixed size in either model."""
    found: dict[Axis, Key] = {}
    for value, dims, others in rows:
        if dims is None or others is None or len(dims) != len(others):
            continue
        for number, (dim, other) in enumerate(zip(dims, others, strict=True)):
            if not isinstance(dim, int) and not isinstance(other, int):
                axis = Axis(value.role, value.name, number)
                found[axis] = axis if dim is None else dim
    return found


def _new_constraints(before: Mapping[Axis, Key], after: Mapping[Axis, Key], kind: str) -> Iterator[Change]:
    """Yield a change for each name that makes dimensions equal in `after` but not in `before`."""
    for symbol, axes in _positions_by_name(after).items():
        inputs = [axis for axis in axes if axis.role == "INPUT"]
        listed = ", ".join(map(str, axes))
        if len({before[axis] for axis in inputs}) > 1:
            yield Change(f"INPUT_SHAPE_{kind}", f"dimension {symbol}", *_constraint_texts(listed, kind))
        if len(inputs) < len(axes) and len({before[axis] for axis in axes}) > 1:
            yield Change(f"OUTPUT_SHAPE_{kind}", f"dimension {symbol}", *_constraint_texts(listed, kind))


def _constraint_texts(axes: str, kind: str) -> tuple[str, str]:
    unequal, equal = f"{axes} may differ", f"{axes} are equal"
    return (unequal, equal) if kind == "NARROWED" else (equal, unequal)


def _positions_by_name(keys: Mapping[Axis, Key]) -> dict[str, list[Axis]]:
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


def _key_text(key: Key) -> str:
    return key if isinstance(key, str) else f"{key} without a name"


def _is_renamed(before: Key, after: Key) -> bool:
    return before != after and (isinstance(before, str) or isinstance(after, str))
