"""Changes between two versions of an operator, or between two opsets of a domain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from opshift.registry.catalogue import Registry
from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.classify import Classified, changes_between, class_of, rule_for
from opshift.registry.diff import Change
from opshift.registry.errors import UnknownOpset
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.names import OperatorId, canonical_domain


class Difference(NamedTuple):
    """The changes of one operator between two versions or opsets; either side may lack the operator."""

    domain: str
    op_type: str
    old: OperatorId | None
    new: OperatorId | None
    changes: tuple[Classified, ...]

    @property
    def change_class(self) -> ChangeClass:
        """The most severe class of the changes."""
        return class_of(self.changes)

    def __str__(self) -> str:
        versions = [str(each.since_version) if each else "none" for each in (self.old, self.new)]
        return f"{self.domain}.{self.op_type} {' -> '.join(versions)}"


def operator_difference(operator: Operator, old: OperatorVersion, new: OperatorVersion) -> Difference:
    """Return the changes between two versions of an operator, in either direction."""
    changes = changes_between(operator, old.since_version, new.since_version)
    return Difference(operator.domain, operator.name, old.id, new.id, changes)


def opset_differences(registry: Registry, domain: str, old: int, new: int) -> Iterator[Difference]:
    """Yield every operator of a domain with different versions at two opsets, sorted by name.

    Raises:
        UnknownDomain, UnknownOpset: the registry lacks the domain or one of the opsets.
    """
    domain = canonical_domain(domain)
    newest = registry.newest_opset(domain)
    for opset in (old, new):
        if not 1 <= opset <= newest:
            remedy = f"use an opset version from 1 to {newest}"
            raise UnknownOpset(f"there is no opset {opset} of {domain}", remedy=remedy)
    for operator in registry.operators(domain):
        before, after = operator.at(old), operator.at(new)
        if before is after:
            continue
        if before and after:
            yield operator_difference(operator, before, after)
        else:
            yield _one_sided(operator, before, after, new)


def _one_sided(
    operator: Operator, before: OperatorVersion | None, after: OperatorVersion | None, opset: int
) -> Difference:
    """Return the difference for an operator that was added or removed."""
    kind = "operator_added" if after else "removal"
    version = after or before
    assert version is not None
    change = rule_for(Change(kind, operator.name, None, version.since_version if after else opset), version)
    old, new = before.id if before else None, after.id if after else None
    return Difference(operator.domain, operator.name, old, new, (change,))
