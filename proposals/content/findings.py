"""Findings of a proposal check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opshift.checker.findings import Level
from opshift.model.errors import OpshiftError, Place


@dataclass(frozen=True)
class ProposalFinding:
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


__all__ = ["Level", "ProposalFinding"]


class InvalidProposal(OpshiftError):
    """Folder without a proposal, or a file of a proposal that cannot be read or executed."""


class NotAcceptable(OpshiftError):
    """Proposal with unresolved errors, which cannot be accepted.

    Attributes:
        findings: errors to resolve.
    """

    def __init__(self, reason: str, findings: Sequence[ProposalFinding], *, remedy: str = "") -> None:
        self.findings = tuple(findings)
        super().__init__(reason, remedy=remedy)
