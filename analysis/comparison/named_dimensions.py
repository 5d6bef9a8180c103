"""Comparison of named dimensions: which of the dimensions without a fixed size have to be equal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from opshift.analysis.comparison.result import ModelChange
from opshift.analysis.comparison.signature import Dim, SignatureValue


class DimensionPosition(NamedTuple):
    """Position of a dimension in an input or output."""

    role: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}[{self.number}]"


DimensionKey = str | DimensionPosition
"""Identity of a dimension without a fixed size: its name, or its position if it is unnamed."""


def dimension_name_changes(pairs: Sequence[tuple[SignatureValue, SignatureValue]]) -> Iterator[ModelChange]:
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
            yield ModelChange("DIMENSION_RENAMED", "dimension", _key_text(before), _key_text(after))


def _keys(
    rows: Sequence[tuple[SignatureValue, tuple[Dim, ...] | None, tuple[Dim, ...] | None]],
) -> dict[DimensionPosition, DimensionKey]:
    """Return the identity of each dimension that has no fixed size in either model."""
    keys: dict[DimensionPosition, DimensionKey] = {}
    for value, dims, other_dims in rows:
        if dims is None or other_dims is None or len(dims) != len(other_dims):
            continue
        for number, (dim, other) in enumerate(zip(dims, other_dims, strict=True)):
            if not isinstance(dim, int) and not isinstance(other, int):
                axis = DimensionPosition(value.role, value.name, number)
                keys[axis] = axis if dim is None else dim
    return keys


def _new_constraints(
    before: Mapping[DimensionPosition, DimensionKey],
    after: Mapping[DimensionPosition, DimensionKey],
    kind: str,
) -> Iterator[ModelChange]:
    """Yield a change for each name that makes dimensions equal in `after` but not in `before`."""
    for symbol, axes in _positions_by_name(after).items():
        inputs = [axis for axis in axes if axis.role == "INPUT"]
        names = ", ".join(map(str, axes))
        if len({before[axis] for axis in inputs}) > 1:
            yield ModelChange(f"INPUT_SHAPE_{kind}", f"dimension {symbol}", *_constraint_texts(names, kind))
        if len(inputs) < len(axes) and len({before[axis] for axis in axes}) > 1:
            yield ModelChange(f"OUTPUT_SHAPE_{kind}", f"dimension {symbol}", *_constraint_texts(names, kind))


def _constraint_texts(axes: str, kind: str) -> tuple[str, str]:
    unequal, equal = f"{axes} may differ", f"{axes} are equal"
    return (unequal, equal) if kind == "NARROWED" else (equal, unequal)


def _positions_by_name(keys: Mapping[DimensionPosition, DimensionKey]) -> dict[str, list[DimensionPosition]]:
    positions: dict[str, list[DimensionPosition]] = defaultdict(list)
    for axis, key in keys.items():
        if isinstance(key, str):
            positions[key].append(axis)
    return positions


def _groups(keys: Mapping[DimensionPosition, DimensionKey]) -> set[frozenset[DimensionPosition]]:
    groups: dict[DimensionKey, set[DimensionPosition]] = defaultdict(set)
    for axis, key in keys.items():
        groups[key].add(axis)
    return set(map(frozenset, groups.values()))


def _key_text(key: DimensionKey) -> str:
    return key if isinstance(key, str) else f"{key} without a name"


def _is_renamed(before: DimensionKey, after: DimensionKey) -> bool:
    return before != after and (isinstance(before, str) or isinstance(after, str))
