"""Problems and findings of a proposal check, and its errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from opshift.checker.findings import Level
from opshift.model.errors import OpshiftError, Place


class ProposalProblem(NamedTuple):
    """Violation that a rule reports: reason and place. A `remedy` that is not empty replaces the rule's."""

    reason: str
    place: Place
    remedy: str = ""


@dataclass(frozen=True)
class ProposalFinding:
    """Violation of the rule with the id `rule`, such as `body.agrees`, at a line of a proposal's file."""

    rule: str
    level: Level
    place: Place
    reason: str
    remedy: str

    def as_dict(self) -> dict[str, str | int]:
        """Return the fields for JSON; the place becomes `file` and `line`."""
        return {
            "rule": self.rule,
            "level": str(self.level),
            "file": self.place.file,
            "line": self.place.line,
            "reason": self.reason,
            "remedy": self.remedy,
        }


class InvalidProposal(OpshiftError):
    """Error for a folder without a proposal, or a file of a proposal that cannot be read or executed."""


class NotAcceptable(OpshiftError):
    """Error for a proposal that cannot be accepted until the errors in `findings` are resolved."""

    def __init__(self, reason: str, findings: Sequence[ProposalFinding], *, remedy: str = "") -> None:
        self.findings = tuple(findings)
        super().__init__(reason, remedy=remedy)
