"""Inputs and outputs that came, went, have another name or stand elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opshift.converter.comparison.result import Change
from opshift.converter.comparison.signature import Role, Value

Values = Mapping[str, Value]


def name_changes(role: Role, old: Values, new: Values) -> Iterator[Change]:
    """The differences in names and order."""
    removed = [value for name, value in old.items() if name not in new]
    added = [value for name, value in new.items() if name not in old]
    renamed = [(one, other) for one in removed for other in added if _is_renamed(one, other)]
    for one, other in renamed:
        removed.remove(one)
        added.remove(other)
        yield Change(f"{role}_RENAMED", one.place, one.name, other.name)
    for value in removed:
        yield Change(f"{role}_REMOVED", value.place, value.type)
    for value in added:
        has_default = "_WITH_DEFAULT" if value.default is not None else ""
        yield Change(f"{role}_ADDED{has_default}", value.place, "", value.type)
    yield from _moved(role, old, new, {one.name: other.name for one, other in renamed})


def _is_renamed(one: Value, other: Value) -> bool:
    """Whether one of them seems to be the other: it stands where that stood, and has its type."""
    return (one.position, one.type) == (other.position, other.type)


def _moved(role: Role, old: Values, new: Values, renamed: Mapping[str, str]) -> Iterator[Change]:
    """Whether those that remain stand in another order, or behind others that came."""
    before = [renamed.get(name, name) for name in old]
    kept = [name for name in before if name in new]
    after = list(new)
    if [name for name in after if name in kept] != kept or (
        len(kept) == len(before) and after[: len(kept)] != kept
    ):
        yield Change(f"{role}S_REORDERED", f"{role.lower()}s", ", ".join(old), ", ".join(new))
