"""Added, removed, renamed and reordered inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opshift.converter.comparison.result import Change
from opshift.converter.comparison.signature import Role, Value

Values = Mapping[str, Value]


def name_changes(role: Role, old: Values, new: Values) -> Iterator[Change]:
    """Yield the changes of names and order."""
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
        suffix = "_WITH_DEFAULT" if value.default is not None else ""
        yield Change(f"{role}_ADDED{suffix}", value.place, "", value.type)
    yield from _order_changes(role, old, new, {one.name: other.name for one, other in renamed})


def _is_renamed(one: Value, other: Value) -> bool:
    """Return whether `other` seems to be `one` under a new name: it has the same position and type."""
    return (one.position, one.type) == (other.position, other.type)


def _order_changes(role: Role, old: Values, new: Values, renamed: Mapping[str, str]) -> Iterator[Change]:
    """Yield a change if the remaining values have a new order, or if a new value precedes some of them."""
    before = [renamed.get(name, name) for name in old]
    kept = [name for name in before if name in new]
    after = list(new)
    # if values were removed, positions change anyway, and the removal is reported
    if [name for name in after if name in kept] != kept or (
        len(kept) == len(before) and after[: len(kept)] != kept
    ):
        yield Change(f"{role}S_REORDERED", f"{role.lower()}s", ", ".join(old), ", ".join(new))
