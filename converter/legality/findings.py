"""What a check finds: which rule, how grave, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import NamedTuple

from opshift.converter.errors import InvalidModel


class Level(StrEnum):
    """How grave it is to break a rule.

    `error`    the model has no meaning, or runtimes or ONNX's own checker reject it.
    `warning`  the specification forbids it; runtimes take it.
    `info`     the specification advises against it.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def includes(self, other: Level) -> bool:
        """Whether `other` is at least as grave as this level."""
        return _GRAVEST_FIRST.index(other) <= _GRAVEST_FIRST.index(self)


_GRAVEST_FIRST = tuple(Level)
ERROR, WARNING, INFO = _GRAVEST_FIRST


class Flaw(NamedTuple):
    """One way in which something breaks a rule, where that is more than a reason.

    Attributes:
        reason: what is wrong, in one sentence.
        remedy: what to do, if not what the rule says.
        place: where, if not where the thing is that was judged.
    """

    reason: str
    remedy: str = ""
    place: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing in a model that breaks a rule.

    Attributes:
        rule: the rule's name, as `node.input-count`.
        level: the rule's level.
        place: the graph or function, and the node, attribute, value or tensor in it.
        reason: what is wrong, in one sentence.
        remedy: what to do about it.
    """

    rule: str
    level: Level
    place: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level} {self.rule}: {self.place}: {self.reason} ({self.remedy})"

    def as_dict(self) -> dict[str, str]:
        """The fields, for `--format json`."""
        return asdict(self)


class IllegalModel(InvalidModel):
    """The model breaks rules of the specification without which it has no meaning.

    Attributes:
        findings: every finding of level error.
    """

    def __init__(self, findings: Sequence[Finding], when: str = "") -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        more = f", and {len(self.findings) - 1} more" if len(self.findings) > 1 else ""
        told = f"{first.rule}: {first.reason}{more}"
        super().__init__(f"{when}: {told}" if when else told, place=first.place, remedy=first.remedy)
