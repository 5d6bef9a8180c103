"""Where a proposal stands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opshift.proposals.check import check_proposal
from opshift.proposals.findings import Finding
from opshift.proposals.fingerprint import fingerprint
from opshift.proposals.folder import Folder
from opshift.proposals.models import Proposal, SignOff
from opshift.proposals.signing import NEEDED, valid_sign_offs
from opshift.registry.catalogue import Registry


@dataclass(frozen=True)
class Status:
    """What is known of a proposal without running it.

    Attributes:
        fingerprint: of its content.
        valid: the sign-offs that count.
        open: the errors of the rules that need no evidence, and of acceptance.
    """

    proposal: Proposal
    fingerprint: str
    valid: tuple[SignOff, ...]
    open: tuple[Finding, ...]

    @property
    def title(self) -> str:
        """What it proposes."""
        return f"{self.proposal.operator.domain}.{self.proposal.operator.name}: {self.proposal.title}"

    @property
    def state(self) -> str:
        """As it is written, or `signed-off` once enough have signed off the content."""
        is_signed = len(self.valid) >= NEEDED and self.proposal.state not in ("accepted", "withdrawn")
        return "signed-off" if is_signed else self.proposal.state

    def facts(self) -> dict[str, str]:
        """For people."""
        void = len(self.proposal.sign_offs) - len(self.valid)
        names = ", ".join(each.name for each in self.valid) or "none"
        return {
            "kind": self.proposal.kind,
            "state": self.state,
            "author": self.proposal.author.name,
            "sign-offs": f"{len(self.valid)} of {NEEDED}: {names}"
            + (f"; {void} do not count" if void else ""),
            "fingerprint": self.fingerprint,
        }

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **self.facts(),
            "sign-offs": [each.model_dump() for each in self.valid],
            "open": [each.as_dict() for each in self.open],
        }


def status_of(path: Path, registry: Registry) -> Status:
    """The status of a proposal; none of its code is run.

    Raises:
        InvalidProposal, DefinitionError: the folder holds no proposal that can be read.
    """
    folder = Folder(path)
    proposal = folder.proposal
    checked = check_proposal(path, registry, gate="accept", run=False)
    return Status(proposal, fingerprint(folder), valid_sign_offs(folder), checked.errors)
