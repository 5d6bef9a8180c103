"""Why a proposal cannot be used."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.proposals.findings import Finding
from opshift.registry.errors import OpshiftError


class InvalidProposal(OpshiftError):
    """The folder is no proposal, or a file of it cannot be read."""


class NotAcceptable(OpshiftError):
    """Something is open that has to be settled before the proposal is accepted.

    Attributes:
        findings: all that stands in the way.
    """

    def __init__(self, reason: str, findings: Sequence[Finding], *, remedy: str = "") -> None:
        self.findings = tuple(findings)
        super().__init__(reason, remedy=remedy)
