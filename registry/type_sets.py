"""Named sets of types, so that a definition can use `all_float_types` instead of a list of types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from opshift.model.element_types import BY_NAME, INTEGER_BITS
from opshift.model.errors import Place
from opshift.registry.definition_files import TYPES
from opshift.registry.errors import DefinitionFinding, InvalidDefinition
from opshift.registry.lint.rule_table import nearest
from opshift.registry.precompiled import load_precompiled

_ELEMENT = "|".join(BY_NAME)

TYPE = re.compile(
    rf"(?:sparse_)?tensor\((?:{_ELEMENT})\)|opaque\(.*\)"
    rf"|map\((?:{'|'.join(INTEGER_BITS)}|string), (?:{_ELEMENT}|tensor\((?:{_ELEMENT})\))\)"
)
"""Pattern of ONNX's types, except sequences and optional types."""

_NESTED = re.compile(r"(?:seq|optional)\((.*)\)")

_WRAPPED = re.compile(r"(seq|optional)\(([a-z]\w*)\)")


class TypeSets:
    """The sets of `types.yaml`; an entry is a type, a set, or `seq(...)` or `optional(...)` of a set."""

    def __init__(self, sets: Mapping[str, Iterable[str]], file: str = "types.yaml") -> None:
        self._entries = {name: tuple(entries) for name, entries in sets.items()}
        self._files = dict.fromkeys(self._entries, file)
        self._expanded: dict[str, frozenset[str]] = {}

    @classmethod
    def load(cls, path: Path) -> TypeSets:
        """Read a `types.yaml`, or raise `DefinitionError`; a missing file defines no sets."""
        return cls(
            load_precompiled(path, (), lambda: _read_type_sets(path)) if path.exists() else {}, str(path)
        )

    @classmethod
    def of_folders(cls, folders: Iterable[Path]) -> TypeSets:
        """Return the sets of all folders; for equal names, the set of the earliest folder counts."""
        found = cls({})
        for folder in folders:
            found = cls.load(folder / TYPES).merged(found)
        return found

    def names(self) -> tuple[str, ...]:
        """Return all names, in the order of the file."""
        return tuple(self._entries)

    def merged(self, other: TypeSets) -> TypeSets:
        """Return the sets of both; for equal names, the set of `other` counts."""
        both = TypeSets({**self._entries, **other._entries})
        both._files = {**self._files, **other._files}
        return both

    def expand(self, entries: str | Iterable[str]) -> tuple[str, ...]:
        """Return the types that `entries` expand to, sorted.

        Raises:
            DefinitionError: an entry is neither a type nor a set, or a set contains itself. The place is the
                set that contains the invalid entry, or empty if `entries` contains it.
        """
        listed = [entries] if isinstance(entries, str) else entries
        return tuple(sorted(frozenset().union(*(self._types_of_entry(entry, ()) for entry in listed))))

    def _types_of_entry(self, entry: str, enclosing: tuple[str, ...]) -> frozenset[str]:
        if entry in self._entries:
            return self._types_of_set(entry, enclosing)
        wrapped = _WRAPPED.fullmatch(entry)
        if wrapped and wrapped[2] in self._entries:
            return frozenset(f"{wrapped[1]}({item})" for item in self._types_of_set(wrapped[2], enclosing))
        if not is_type(entry):
            place = self._place_of(enclosing[-1]) if enclosing else Place()
            reason = f"{entry!r} is neither a type nor a set of types"
            remedy = nearest(entry, [*self._entries, *similar_types(entry)])
            raise InvalidDefinition([DefinitionFinding.of_rule("type.unknown", place, reason, remedy)])
        return frozenset((entry,))

    def _types_of_set(self, name: str, enclosing: tuple[str, ...]) -> frozenset[str]:
        if name in enclosing:
            reason = f"type set {name!r} contains itself"
            raise InvalidDefinition([DefinitionFinding.of_rule("type.set", self._place_of(name), reason)])
        if name not in self._expanded:
            parts = (self._types_of_entry(entry, (*enclosing, name)) for entry in self._entries[name])
            self._expanded[name] = frozenset().union(*parts)
        return self._expanded[name]

    def _place_of(self, name: str) -> Place:
        from opshift.registry.yaml_files import place_of

        path = Path(self._files[name])
        return place_of(path, (name,)) if path.exists() else Place(str(path))


def is_type(text: str) -> bool:
    """Return whether a text is a type of ONNX, such as `seq(tensor(float))`."""
    while (nested := _NESTED.fullmatch(text)) is not None:
        text = nested[1]
    return TYPE.fullmatch(text) is not None


def similar_types(text: str) -> Iterator[str]:
    """Yield valid types that may be the intended spelling of a text.

    Each candidate is the text with its last word replaced by an element type; if the result is not a type,
    `tensor(<element type>)`.
    """
    start, _, end = re.split(r"(\w+)(?=\W*$)", text, maxsplit=1) if re.search(r"\w", text) else ("", "", "")
    for name in BY_NAME:
        changed = f"{start}{name}{end}"
        yield changed if is_type(changed) else f"tensor({name})"


def _read_type_sets(path: Path) -> dict[str, list[str]]:
    # imported here: compiled sets need no YAML parser
    from opshift.registry.yaml_files import load_yaml, place_of

    sets = load_yaml(path) or {}
    if not isinstance(sets, dict):
        reason = "is not a mapping of names to lists of types"
        raise InvalidDefinition([DefinitionFinding.of_rule("type.set", Place(str(path), 1), reason)])
    findings = []
    for name, entries in sets.items():
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            reason = f"type set {name!r} is not a list of types and sets"
            findings.append(DefinitionFinding.of_rule("type.set", place_of(path, (name,)), reason))
    if findings:
        raise InvalidDefinition(findings)
    return sets
