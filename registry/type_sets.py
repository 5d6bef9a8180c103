"""Named sets of types, so that a definition says `all_float_types` once instead of listing them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from opshift.registry.errors import DefinitionError, Place
from opshift.registry.yaml_files import load_yaml

_WRAPPED = re.compile(r"(seq|optional)\(([a-z]\w*)\)")


class TypeSets:
    """The sets of `types.yaml`; an entry is a type, the name of another set, or `seq(name)` of one."""

    def __init__(self, sets: Mapping[str, Iterable[str]], file: str = "types.yaml") -> None:
        self._entries = {name: tuple(entries) for name, entries in sets.items()}
        self._file = file
        self._expanded: dict[str, frozenset[str]] = {}

    @classmethod
    def load(cls, path: Path) -> TypeSets:
        """Read a `types.yaml`; a missing file holds no sets."""
        return cls(load_yaml(path) or {}, str(path)) if path.exists() else cls({}, str(path))

    def names(self) -> tuple[str, ...]:
        """All names, as the file orders them."""
        return tuple(self._entries)

    def merged(self, other: TypeSets) -> TypeSets:
        """Both; of two sets with one name the other's counts."""
        return TypeSets({**self._entries, **other._entries}, other._file)

    def expand(self, entries: str | Iterable[str]) -> tuple[str, ...]:
        """The types that `entries` stand for, sorted.

        Raises:
            DefinitionError: an entry is neither a type nor a set, or a set contains itself.
        """
        listed = [entries] if isinstance(entries, str) else entries
        return tuple(sorted(frozenset().union(*(self._types(entry, ()) for entry in listed))))

    def _types(self, entry: str, above: tuple[str, ...]) -> frozenset[str]:
        if entry in self._entries:
            return self._set(entry, above)
        wrapped = _WRAPPED.fullmatch(entry)
        if wrapped and wrapped[2] in self._entries:
            return frozenset(f"{wrapped[1]}({item})" for item in self._set(wrapped[2], above))
        if "(" not in entry:
            raise DefinitionError(f"{entry!r} is neither a type nor a set of types", place=Place(self._file))
        return frozenset((entry,))

    def _set(self, name: str, above: tuple[str, ...]) -> frozenset[str]:
        if name in above:
            raise DefinitionError(f"type set {name!r} contains itself", place=Place(self._file))
        if name not in self._expanded:
            parts = (self._types(entry, (*above, name)) for entry in self._entries[name])
            self._expanded[name] = frozenset().union(*parts)
        return self._expanded[name]
