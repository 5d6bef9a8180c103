"""What rules judge: a proposal as far as it could be read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from opshift.proposals.folder import Folder
from opshift.proposals.models import INTRODUCING, Proposal
from opshift.proposals.staging import StagedRegistry
from opshift.registry.catalogue import Registry
from opshift.registry.models import Operator, OperatorVersion


@dataclass(frozen=True)
class Written:
    """A proposal whose `proposal.yaml` can be read, and the registry that it is made for."""

    folder: Folder
    proposal: Proposal
    registry: Registry

    @property
    def introduces(self) -> bool:
        """Whether it brings an operator that its domain has not."""
        return self.proposal.kind in INTRODUCING


@dataclass(frozen=True)
class Defined(Written):
    """A proposal whose operator can be read too."""

    operator: Operator

    @cached_property
    def published(self) -> Operator | None:
        """The operator as the registry has it."""
        return self.registry.operator(self.operator.name, self.operator.domain)

    @property
    def version(self) -> OperatorVersion:
        """The version that is proposed, or removed: the last one."""
        return self.operator.versions[-1]

    @property
    def position(self) -> int:
        """Where it stands in the file."""
        return len(self.operator.versions) - 1

    @property
    def previous(self) -> OperatorVersion | None:
        """The version before it."""
        return self.operator.versions[-2] if self.position else None

    @property
    def opset(self) -> int:
        """The opset that the proposal enters."""
        removal = self.version.removal
        return removal.removed_in if removal else self.version.since_version

    @cached_property
    def staged(self) -> Registry:
        """The registry with the proposal in it."""
        return StagedRegistry(self.registry, self.operator)
