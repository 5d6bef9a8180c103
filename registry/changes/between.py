"""What changed between two versions of an operator, or between two opsets of a domain."""

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
    """One operator on two sides, either of which may lack it."""

    domain: str
    op_type: str
    old: OperatorId | None
    new: OperatorId | None
    changes: tuple[Classified, ...]

    @property
    def change_class(self) -> ChangeClass:
        """The gravest class of the changes."""
        return class_of(self.changes)

    def __str__(self) -> str:
        ages = [str(each.since_version) if each else "none" for each in (self.old, self.new)]
        return f"{self.domain}.{self.op_type} {' -> '.join(ages)}"


def operator_difference(operator: Operator, old: OperatorVersion, new: OperatorVersion) -> Difference:
    """What changed between two versions of an operator, in either direction."""
    changes = changes_between(operator, old.since_version, new.since_version)
    return Difference(operator.domain, operator.name, old.id, new.id, changes)


def opset_differences(registry: Registry, domain: str, old: int, new: int) -> Iterator[Difference]:
    """Every operator of a domain that is not the same at two opsets, by name.

    Raises:
        UnknownDomain, UnknownOpset: there are no such.
    """
    domain = canonical_domain(domain)
    newest = registry.newest_opset(domain)
    for opset in (old, new):
        if not 1 <= opset <= newest:
            remedy = f"the registry knows opsets 1 to {newest}"
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
    """An operator that came or went."""
    kind = "operator_added" if after else "removal"
    version = after or before
    assert version is not None
    change = rule_for(Change(kind, operator.name, None, version.since_version if after else opset), version)
    old, new = before.id if before else None, after.id if after else None
    return Difference(operator.domain, operator.name, old, new, (change,))
