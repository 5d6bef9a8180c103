"""Findings of a proposal check."""

from __future__ import annotations

from dataclasses import dataclass

from opshift.converter.legality.findings import Level
from opshift.registry.errors import Place


@dataclass(frozen=True)
class Finding:
    """Violation of a rule in a proposal.

    Attributes:
        rule: id of the rule, such as `body.agrees`.
        level: severity.
        place: file in the proposal's folder, and the line.
        reason: description of the problem in one sentence.
        remedy: how to fix it.
    """

    rule: str
    level: Level
    place: Place
    reason: str
    remedy: str

    def as_dict(self) -> dict[str, str | int]:
        """Return the finding as plain data."""
        return {
            "rule": self.rule,
            "level": str(self.level),
            "file": self.place.file,
            "line": self.place.line,
            "reason": self.reason,
            "remedy": self.remedy,
        }


__all__ = ["Finding", "Level"]
