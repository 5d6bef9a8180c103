"""Errors of proposals."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.proposals.findings import Finding
from opshift.registry.errors import OpshiftError


class InvalidProposal(OpshiftError):
    """Folder without a proposal, or a file of a proposal that cannot be read or executed."""


class NotAcceptable(OpshiftError):
    """Proposal with unresolved errors, which cannot be accepted.

    Attributes:
        findings: errors to resolve.
    """

    def __init__(self, reason: str, findings: Sequence[Finding], *, remedy: str = "") -> None:
        self.findings = tuple(findings)
        super().__init__(reason, remedy=remedy)
