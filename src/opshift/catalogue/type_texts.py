"""Types and their changes as text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from opshift.registry.changes.diff import Change

if TYPE_CHECKING:
    from opshift.registry.type_sets import TypeSets

_WRAPPED = re.compile(r"((?:\w+\()*)([^()]*)(\)*)")

MAX_PLAIN_TYPES = 4
"""Maximum number of types that `summarize_types` lists without their number and the name of a set."""


def format_types(types: Iterable[str]) -> str:
    """Join types and share brackets, as in `tensor(double, float), seq(tensor(float))`."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for text in sorted(types):
        match = _WRAPPED.fullmatch(text)
        opening, element, closing = match.groups() if match else ("", text, "")
        kinds.setdefault((opening, closing), []).append(element)
    return ", ".join(f"{opening}{', '.join(each)}{closing}" for (opening, closing), each in kinds.items())


def summarize_types(types: tuple[str, ...], sets: TypeSets) -> str:
    """Join types; more than `MAX_PLAIN_TYPES` are preceded by their number and the name of their type set."""
    if len(types) <= MAX_PLAIN_TYPES:
        return format_types(types)
    name = next((name for name in sets.names() if sets.expand(name) == tuple(sorted(types))), None)
    return f"{len(types)} types{f', {name}' if name else ''}: {format_types(types)}"


def change_text(change: Change) -> str:
    """Return a change as one line; a change of types lists only the added and removed types.

    Example: `input types: X: also tensor(bfloat16)`.
    """
    if not change.kind.endswith("_types"):
        return str(change)
    types = types_change_text(change.new - change.old, change.old - change.new)
    return f"{change.kind.replace('_', ' ')}: {change.subject}: {types}"


def types_change_text(added: Iterable[str], removed: Iterable[str], verb: str = "") -> str:
    """Return a change of types, such as `also tensor(double), no longer tensor(float)`."""
    parts = [f"also {verb}{format_types(added)}"] if added else []
    parts += [f"no longer {verb}{format_types(removed)}"] if removed else []
    return ", ".join(parts)
