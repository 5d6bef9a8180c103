"""A proposal that was run."""

from __future__ import annotations

from dataclasses import dataclass

from opshift.proposals.draft import Defined
from opshift.proposals.errors import InvalidProposal
from opshift.proposals.evidence.evidence import Evidence


@dataclass(frozen=True)
class Ran(Defined):
    """A proposal with the evidence; its adapters are in the table while rules judge it."""

    evidence: Evidence
    adapters_error: InvalidProposal | None
