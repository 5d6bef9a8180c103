"""Types as short text: `tensor(double, float)`, with the name of their set if there are many."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opshift.registry.catalogue import Registry
    from opshift.registry.type_sets import TypeSets

_WRAPPED = re.compile(r"((?:\w+\()*)([^()]*)(\)*)")
FEW = 4
"""Maximum number of types that are listed without their number and the name of their set."""


def type_sets(registry: Registry) -> TypeSets:
    """Return the named type sets of all folders of a registry."""
    from opshift.registry.type_sets import TypeSets

    sets = TypeSets({})
    for folder in registry.folders:
        sets = sets.merged(TypeSets.load(folder / "types.yaml"))
    return sets


def short(types: Iterable[str]) -> str:
    """Join types; those of one kind share its brackets, as in `tensor(double, float), seq(tensor(float))`."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for text in sorted(types):
        match = _WRAPPED.fullmatch(text)
        opening, element, closing = match.groups() if match else ("", text, "")
        kinds.setdefault((opening, closing), []).append(element)
    return ", ".join(
        f"{opening}{', '.join(elements)}{closing}" for (opening, closing), elements in kinds.items()
    )


def summed_up(types: tuple[str, ...], sets: TypeSets) -> str:
    """Join types; more than `MAX_PLAIN_TYPES` are preceded by their number and the name of an equal set."""
    if len(types) <= FEW:
        return short(types)
    name = next((name for name in sets.names() if sets.expand(name) == tuple(sorted(types))), None)
    return f"{len(types)} types{f', {name}' if name else ''}: {short(types)}"
