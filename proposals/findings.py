"""What a check of a proposal finds."""

from __future__ import annotations

from dataclasses import dataclass

from opshift.converter.legality.findings import Level
from opshift.registry.errors import Place


@dataclass(frozen=True)
class Finding:
    """One thing in a proposal that breaks a rule.

    Attributes:
        rule: the rule's id, as `body.agrees`.
        level: how grave it is.
        place: the file of the proposal's folder, and the line.
        reason: what is wrong, in one sentence.
        remedy: what to do about it.
    """

    rule: str
    level: Level
    place: Place
    reason: str
    remedy: str

    def as_dict(self) -> dict[str, str | int]:
        """Plain data."""
        return {
            "rule": self.rule,
            "level": str(self.level),
            "file": self.place.file,
            "line": self.place.line,
            "reason": self.reason,
            "remedy": self.remedy,
        }


__all__ = ["Finding", "Level"]
