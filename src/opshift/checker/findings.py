"""Results of a check: the violated rule, its level, the place, the reason and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

from opshift.model.errors import InvalidModel
from opshift.model.shared_data import FrozenRecord

KeyT = TypeVar("KeyT")


class Level(StrEnum):
    """Severity of a violation of a rule.

    `error`    the model has no defined meaning, or runtimes or ONNX's own checker reject it.
    `warning`  the specification forbids the model, but runtimes accept it.
    `info`     advice, for example about nodes that cannot be checked.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def includes(self, other: Level) -> bool:
        """Return whether `other` is at least as severe as this level."""
        return _MOST_SEVERE_FIRST.index(other) <= _MOST_SEVERE_FIRST.index(self)


_MOST_SEVERE_FIRST = tuple(Level)

ERROR, WARNING, INFO = _MOST_SEVERE_FIRST


class Problem(NamedTuple):
    """Violation of a rule; `remedy`, if set, replaces the rule's, and `place` that of the checked object."""

    reason: str
    remedy: str = ""
    place: str = ""


class Finding(FrozenRecord):
    """Violation of a rule by a part of a model.

    Attributes:
        rule: the rule's id, such as `node.input-count`.
        level: the rule's level.
        place: the graph or function, and the node, attribute, value or tensor in it.
        reason: the problem, in one sentence.
        remedy: how to fix it.
    """

    rule: str
    level: Level
    place: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level} {self.rule}: {self.place}: {self.reason} ({self.remedy})"

    def as_dict(self) -> dict[str, str]:
        """Return the fields, for `--format json`."""
        # A model may have many findings, and `dataclasses.asdict` takes ten times as long.
        return {name: getattr(self, name) for name in self.__match_args__}


class IllegalModel(InvalidModel):
    """Error for a model that breaks rules of level `error`.

    Attributes:
        findings: all findings of level `error`.
    """

    def __init__(self, findings: Sequence[Finding], when: str = "") -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        more = f", and {len(self.findings) - 1} more" if len(self.findings) > 1 else ""
        summary = f"{first.rule}: {first.reason}{more}"
        super().__init__(f"{when}: {summary}" if when else summary, place=first.place, remedy=first.remedy)


def repeated(keys: Iterable[KeyT]) -> Iterator[tuple[KeyT, int]]:
    """Yield each key that occurs more than once, and the number of its occurrences."""
    found = [*keys]
    if len(set(found)) == len(found):  # nearly always true, and faster than creating a Counter
        return iter(())
    return ((key, count) for key, count in Counter(found).items() if count > 1)


def duplicate_names(kind: str, names: Iterable[str]) -> Iterator[str]:
    """Yield a reason for each name that occurs more than once; empty names may repeat."""
    return (f"{count} {kind}s have the name {name!r}" for name, count in repeated(filter(None, names)))


def list_names(names: Sequence[str]) -> str:
    """Return the first three names, quoted, and the number of remaining names."""
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{', '.join(map(repr, names[:3]))}{more}"
