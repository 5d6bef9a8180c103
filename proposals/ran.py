"""Proposal with the evidence from running it."""

from __future__ import annotations

from dataclasses import dataclass

from opshift.proposals.draft import Defined
from opshift.proposals.errors import InvalidProposal
from opshift.proposals.evidence.evidence import Evidence


@dataclass(frozen=True)
class Ran(Defined):
    """Proposal with its evidence.

    Its adapters are registered while the rules are evaluated.

    Attributes:
        evidence: results of running the reference, the body, the shape rule and the steps.
        adapters_error: error that prevents loading the adapters, or `None`.
    """

    evidence: Evidence
    adapters_error: InvalidProposal | None
