"""Stages of reading a proposal; the subjects of the rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from opshift.proposals.content.folder import ProposalFolder
from opshift.proposals.content.models import INTRODUCING_KINDS, Proposal
from opshift.registry.errors import DefinitionError
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry


class InvalidFile(NamedTuple):
    """File of a proposal that cannot be read, which ends the check: later rules have no subject."""

    folder: ProposalFolder
    name: str
    error: DefinitionError


@dataclass(frozen=True)
class Draft:
    """Proposal with a valid `proposal.yaml`, and the registry that it extends."""

    folder: ProposalFolder
    proposal: Proposal
    registry: Registry

    @property
    def adds_operator(self) -> bool:
        """Whether the proposal adds an operator to its domain."""
        return self.proposal.kind in INTRODUCING_KINDS


@dataclass(frozen=True)
class DefinedDraft(Draft):
    """Proposal with a valid `operator.yaml` as well."""

    operator: Operator

    @cached_property
    def published(self) -> Operator | None:
        """The operator as published in the registry; `None` if it is new."""
        return self.registry.operator(self.operator.name, self.operator.domain)

    @property
    def version(self) -> OperatorVersion:
        """The last version in the file: the one that is proposed or removed."""
        return self.operator.versions[-1]

    @property
    def position(self) -> int:
        """Index of the proposed version in the file."""
        return len(self.operator.versions) - 1

    @property
    def previous(self) -> OperatorVersion | None:
        """The version before the proposed one; `None` if there is only one version."""
        return self.operator.versions[-2] if self.position else None

    @property
    def opset(self) -> int:
        """The opset in which the proposal takes effect."""
        removal = self.version.removal
        return removal.removed_in if removal else self.version.since_version

    @cached_property
    def staged(self) -> Registry:
        """The registry with the proposed operator added."""
        return self.registry.with_operator(self.operator)
