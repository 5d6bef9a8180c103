"""Status of a proposal: state, sign-offs and open problems, for `opshift proposal status`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opshift.proposals.check import check_proposal
from opshift.proposals.content.draft import Draft
from opshift.proposals.content.findings import ProposalFinding
from opshift.proposals.content.folder import ProposalFolder, fingerprint
from opshift.proposals.content.models import Proposal, SignOff
from opshift.proposals.content.sign_off import REQUIRED_SIGN_OFFS
from opshift.registry.registry import Registry


@dataclass(frozen=True)
class Status:
    """Status of a proposal, determined without running its code."""

    proposal: Proposal
    fingerprint: str
    valid: tuple[SignOff, ...]
    open: tuple[ProposalFinding, ...]
    """Errors that block acceptance, from the rules that run no code, and findings of `sign-off.trust`."""

    @property
    def title(self) -> str:
        """Operator and title of the proposal."""
        operator, title = self.proposal.operator, self.proposal.title
        return f"{operator.domain}.{operator.name}" + (f": {title}" if title else "")

    @property
    def state(self) -> str:
        """State from the file, or `signed-off` once the content has enough valid sign-offs."""
        state = self.proposal.state
        is_signed = len(self.valid) >= REQUIRED_SIGN_OFFS and state not in ("accepted", "withdrawn")
        return "signed-off" if is_signed else state

    def facts(self) -> dict[str, str]:
        """Return kind, state, author, sign-offs and fingerprint for text output."""
        invalid = len(self.proposal.sign_offs) - len(self.valid)
        names = ", ".join(each.name for each in self.valid) or "none"
        count = f"{len(self.valid)} of {REQUIRED_SIGN_OFFS}: {names}"
        return {
            "kind": self.proposal.kind,
            "state": self.state,
            "author": self.proposal.author.name,
            "sign-offs": f"{count}; {invalid} invalid" if invalid else count,
            "fingerprint": self.fingerprint,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return `facts`, with sign-offs as lists and with the open findings, for JSON output."""
        return {
            **self.facts(),
            "sign-offs": [each.model_dump() for each in self.valid],
            "open": [each.as_dict() for each in self.open],
        }


def status_of(path: Path, registry: Registry, trusted: Path | None = None) -> Status:
    """Return the status of a proposal without executing its code; see `check_proposal` for `trusted`.

    Raises:
        InvalidProposal: the folder does not contain a proposal.
        DefinitionError: `proposal.yaml` is invalid.
        UsageError: the folder does not exist, or numpy is not installed.
    """
    folder = ProposalFolder(path)
    draft = Draft(folder, folder.proposal, registry, trusted=trusted)
    checked = check_proposal(path, registry, gate="accept", run=False, trusted=trusted)
    changes = tuple(each for each in checked.findings if each.rule == "sign-off.trust")
    return Status(draft.proposal, fingerprint(folder), draft.sign_offs, (*checked.errors, *changes))
