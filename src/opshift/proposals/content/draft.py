"""Classes for the stages of reading a proposal; the rules check objects of these classes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from opshift.model.errors import OpshiftError
from opshift.model.operator_ids import OperatorId
from opshift.proposals.content.findings import ProposalProblem
from opshift.proposals.content.folder import OPERATOR, PROPOSAL, ProposalFolder
from opshift.proposals.content.models import INTRODUCING_KINDS, Proposal, SignOff
from opshift.proposals.content.reviewers import ReviewerList
from opshift.proposals.content.sign_off import valid_sign_offs
from opshift.proposals.content.staged_registry import is_preview, is_released, is_standard
from opshift.registry.models import Deprecation, Operator, OperatorVersion, Removal
from opshift.registry.registry import Registry


class InvalidFile(NamedTuple):
    """Invalid or missing file of a proposal. The check ends there, because later stages need the file."""

    folder: ProposalFolder
    name: str
    error: OpshiftError

    def problems_in(self, name: str) -> Iterator[ProposalProblem]:
        """Yield the error as a problem if `name`, such as `operator.yaml`, is the name of this file."""
        if self.name == name:
            yield ProposalProblem(self.error.reason, self.error.place, self.error.remedy)


@dataclass(frozen=True)
class Draft:
    """Proposal with a valid `proposal.yaml`, and the registry that it extends."""

    folder: ProposalFolder
    proposal: Proposal
    registry: Registry
    trusted: Path | None = field(default=None, kw_only=True)
    """Folder with the `reviewers.yaml` that applies; by default the last folder of the registry."""

    @cached_property
    def reviewers(self) -> ReviewerList:
        """The people whose sign-offs count, from `reviewers.yaml` of the trusted folder."""
        return ReviewerList(self.trusted or self.registry.folders[-1])

    @cached_property
    def sign_offs(self) -> tuple[SignOff, ...]:
        """The valid sign-offs: by reviewers other than the author, and of the current content."""
        return valid_sign_offs(self.folder, self.reviewers)

    @property
    def adds_operator(self) -> bool:
        """Whether the proposal adds an operator to its domain."""
        return self.proposal.kind in INTRODUCING_KINDS

    @property
    def adds_standard_operator(self) -> bool:
        """Whether the proposal adds an operator to a domain of ONNX."""
        return self.adds_operator and is_standard(self.proposal.operator.domain)

    @property
    def is_preview(self) -> bool:
        """Whether the operator belongs to a preview domain, whose operators are experimental."""
        return is_preview(self.proposal.operator.domain)

    @property
    def supersedes_preview(self) -> bool:
        """Whether the proposal promotes an operator of a preview domain, which acceptance then deprecates.

        Promoted operators of private domains stay unchanged: only their owners can deprecate them.
        """
        domain = OperatorId.parse(self.proposal.promotes).domain if self.proposal.promotes else ""
        return self.proposal.kind == "promotion" and is_preview(domain)

    def at_file(self, reason: str, name: str, remedy: str = "") -> ProposalProblem:
        """Return a problem that concerns a whole file of the proposal."""
        return ProposalProblem(reason, self.folder.locate(name), remedy)

    def at_answer(self, reason: str, *keys: int | str) -> ProposalProblem:
        """Return a problem at the path `keys` in `proposal.yaml`."""
        return ProposalProblem(reason, self.folder.locate(PROPOSAL, *keys))


@dataclass(frozen=True)
class DefinedDraft(Draft):
    """Proposal with a valid `proposal.yaml` and a valid `operator.yaml`."""

    operator: Operator

    @cached_property
    def published(self) -> Operator | None:
        """The operator as published in the registry; `None` if it is new."""
        return self.registry.operator(self.operator.name, self.operator.domain)

    @property
    def version(self) -> OperatorVersion:
        """The last version in `operator.yaml`, which the proposal adds, edits, deprecates or removes."""
        return self.operator.versions[-1]

    @property
    def position(self) -> int:
        """Index of the last version in the list `versions` of `operator.yaml`."""
        return len(self.operator.versions) - 1

    @property
    def previous(self) -> OperatorVersion | None:
        """The version before `version`; `None` if `operator.yaml` has only one version."""
        return self.operator.versions[-2] if self.position else None

    @property
    def opset(self) -> int:
        """The opset in which the proposal takes effect."""
        removal = self.version.removal
        return removal.removed_in if removal else self.version.since_version

    @cached_property
    def staged(self) -> Registry:
        """The registry with the proposed in place of the published definition of the operator."""
        return self.registry.with_operator(self.operator)

    @cached_property
    def is_recursive(self) -> bool:
        """Whether the function body contains the operator, directly or in bodies of the operators in it."""
        found: set[OperatorId] = set()
        pending = [self.version]
        while pending:
            body = pending.pop().body
            for node in body.nodes if body else ():
                assert body is not None
                operator = self.staged.known_at(
                    node.op_type, body.opset_imports.get(node.domain, 0), node.domain
                )
                if operator and operator.id not in found:
                    found.add(operator.id)
                    pending.append(operator)
        return self.version.id in found

    @property
    def adds_version(self) -> bool:
        """Whether the last version has a previous version, and is not released."""
        return self.previous is not None and not is_released(self.registry, self.version)

    @property
    def edits_version(self) -> bool:
        """Whether an update, deprecation or removal changes an accepted version that is not released yet."""
        accepted = self.published.versions if self.published and not self.adds_operator else ()
        ids = [each.id for each in accepted if not is_released(self.registry, each)]
        return self.version.id in ids

    @property
    def retirement(self) -> Deprecation | Removal | None:
        """The removal or deprecation that the last version declares; `None` if it declares neither."""
        return self.version.removal or self.version.deprecation

    def at_definition(self, reason: str, *keys: int | str) -> ProposalProblem:
        """Return a problem at the path `keys` in `operator.yaml`."""
        return ProposalProblem(reason, self.folder.locate(OPERATOR, *keys))

    def at_version(self, reason: str, *keys: int | str) -> ProposalProblem:
        """Return a problem at the path `keys` in the proposed version."""
        return self.at_definition(reason, "versions", self.position, *keys)
