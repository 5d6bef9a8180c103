"""Comparison of named dimensions: which of the dimensions without a fixed size have to be equal."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from opshift.analysis.comparison.result import ModelChange
from opshift.analysis.comparison.signature import SignatureValue
from opshift.model.types import Dim


class DimensionPosition(NamedTuple):
    """Position of a dimension in an input or output."""

    role: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}[{self.number}]"


DimensionKey = str | DimensionPosition
"""Identity of a dimension without a fixed size: its name, or its position if it is unnamed."""

DimensionKeys = Mapping[DimensionPosition, DimensionKey]


def dimension_name_changes(pairs: Sequence[tuple[SignatureValue, SignatureValue]]) -> Iterator[ModelChange]:
    """Yield changes of the equality constraints that shared dimension names express.

    Equal dimensions of inputs restrict callers, which narrows the shapes. Equal dimensions of outputs are a
    guarantee.
    """
    old_keys = _keys([(one, one.dims, other.dims) for one, other in pairs])
    new_keys = _keys([(one, other.dims, one.dims) for one, other in pairs])
    yield from _new_constraints(old_keys, new_keys, "NARROWED")
    yield from _new_constraints(new_keys, old_keys, "WIDENED")
    old_groups, new_groups = (list(_positions_by_key(each).values()) for each in (old_keys, new_keys))
    if old_groups == new_groups:
        for before, after in dict.fromkeys((old_keys[axis], new_keys[axis]) for axis in old_keys):
            if before != after and (isinstance(before, str) or isinstance(after, str)):
                yield ModelChange("DIMENSION_RENAMED", "dimension", _key_text(before), _key_text(after))


def _keys(
    rows: Sequence[tuple[SignatureValue, tuple[Dim, ...] | None, tuple[Dim, ...] | None]],
) -> dict[DimensionPosition, DimensionKey]:
    """Return the identity of each dimension that has no fixed size in either model."""
    keys: dict[DimensionPosition, DimensionKey] = {}
    for value, dims, other_dims in rows:
        if dims is None or other_dims is None or len(dims) != len(other_dims):
            continue
        for number, dim in enumerate(dims):
            if not isinstance(dim, int) and not isinstance(other_dims[number], int):
                axis = DimensionPosition(value.role, value.name, number)
                keys[axis] = axis if dim is None else dim
    return keys


def _new_constraints(before: DimensionKeys, after: DimensionKeys, kind: str) -> Iterator[ModelChange]:
    """Yield a change for each name that makes dimensions equal in `after` but not in `before`."""
    for name, axes in _positions_by_key(after).items():
        if not isinstance(name, str):
            continue
        inputs = [axis for axis in axes if axis.role == "INPUT"]
        positions = ", ".join(map(str, axes))
        texts = [f"{positions} may differ", f"{positions} are equal"]
        if kind == "WIDENED":
            texts.reverse()
        if len({before[axis] for axis in inputs}) > 1:
            yield ModelChange(f"INPUT_SHAPE_{kind}", f"dimension {name}", *texts)
        if len(inputs) < len(axes) and len({before[axis] for axis in axes}) > 1:
            yield ModelChange(f"OUTPUT_SHAPE_{kind}", f"dimension {name}", *texts)


def _positions_by_key(keys: DimensionKeys) -> dict[DimensionKey, list[DimensionPosition]]:
    positions: dict[DimensionKey, list[DimensionPosition]] = defaultdict(list)
    for axis, key in keys.items():
        positions[key].append(axis)
    return positions


def _key_text(key: DimensionKey) -> str:
    return key if isinstance(key, str) else f"{key} without a name"
