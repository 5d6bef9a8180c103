"""Types as short text: `tensor(double, float)` for many, or the name of their set."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opshift.registry.catalogue import Registry
    from opshift.registry.type_sets import TypeSets

_WRAPPED = re.compile(r"((?:\w+\()*)([^()]*)(\)*)")
FEW = 4
"""So many types are written out without the name of their set."""


def type_sets(registry: Registry) -> TypeSets:
    """The named sets of all of a registry's folders."""
    from opshift.registry.type_sets import TypeSets

    found = TypeSets({})
    for folder in registry.folders:
        found = found.merged(TypeSets.load(folder / "types.yaml"))
    return found


def short(types: Iterable[str]) -> str:
    """`tensor(double, float), seq(tensor(float))`: types of one kind share its brackets."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for each in sorted(types):
        found = _WRAPPED.fullmatch(each)
        opening, element, closing = found.groups() if found else ("", each, "")
        kinds.setdefault((opening, closing), []).append(element)
    return ", ".join(f"{opening}{', '.join(each)}{closing}" for (opening, closing), each in kinds.items())


def summed_up(types: tuple[str, ...], sets: TypeSets) -> str:
    """The types; of many first their number, and the name of the set that has just these."""
    if len(types) <= FEW:
        return short(types)
    name = next((name for name in sets.names() if sets.expand(name) == tuple(sorted(types))), None)
    return f"{len(types)} types{f', {name}' if name else ''}: {short(types)}"
