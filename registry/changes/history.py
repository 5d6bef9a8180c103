"""Classify the changes in each step of an operator's history, and find those that a mode forbids."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from opshift.model.operator_ids import OperatorId, canonical_domain
from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.classify import (
    ClassifiedChange,
    changes_between,
    classify,
    classify_single,
    most_severe_class,
)
from opshift.registry.changes.diff import Change
from opshift.registry.changes.findings import ChangeFinding
from opshift.registry.changes.policies import Mode
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry

REMEDIES = {
    "backward": "keep all older models legal, with the same meaning",
    "forward": "define the new behaviour as an operator with a new name",
    "full": "change the text only",
}


class HistoryStep(NamedTuple):
    """The changes from one version to the next, or to the opset that removes the operator."""

    old: OperatorVersion
    new: OperatorVersion | None
    opset: int
    changes: tuple[ClassifiedChange, ...]

    @property
    def change_class(self) -> ChangeClass:
        """The most severe class of the changes."""
        return most_severe_class(self.changes)

    @property
    def operator(self) -> str:
        """Domain, name and `opset` of the step, such as `ai.onnx.Clip:6`."""
        return str(self.old.id._replace(since_version=self.opset))


def history_steps(operators: Iterable[Operator]) -> Iterator[HistoryStep]:
    """Yield the step between each two adjacent versions, and every removal."""
    for operator in operators:
        for old, new in pairwise(operator.versions):
            yield HistoryStep(old, new, new.since_version, classify(old, new))
        for version in operator.versions:
            if version.removal:
                opset = version.removal.removed_in
                change = classify_single(Change("removal", version.name, None, opset), version)
                yield HistoryStep(version, None, opset, (change,))


def history_findings(operators: Iterable[Operator], mode: Mode) -> Iterator[ChangeFinding]:
    """Yield each change in a version after the first, and each removal, that the mode does not allow."""
    for operator in operators:
        for version in operator.versions[1:]:
            yield from version_findings(operator, version, mode)
        for step in history_steps((operator,)):
            if step.new is None:
                yield from _forbidden_changes(step.operator, step.changes, mode, str(step.old.id))


def version_findings(operator: Operator, version: OperatorVersion, mode: Mode) -> Iterator[ChangeFinding]:
    """Yield the changes from earlier versions to `version` that the mode does not allow."""
    earlier = [each for each in operator.versions if each.since_version < version.since_version]
    for base in earlier if mode.is_transitive else earlier[-1:]:
        changes = changes_between(operator, base.since_version, version.since_version)
        yield from _forbidden_changes(str(version.id), changes, mode, str(base.id))


def _forbidden_changes(
    operator: str, changes: Iterable[ClassifiedChange], mode: Mode, base: str
) -> Iterator[ChangeFinding]:
    direction = mode.removesuffix("-transitive")
    for change in changes:
        if not mode.allows(change):
            reason = f"mode {mode} does not allow this change from {base}"
            yield ChangeFinding(operator, change, reason, REMEDIES[direction])


class Difference(NamedTuple):
    """Changes of one operator between two versions or opsets; a missing version is `None`."""

    domain: str
    op_type: str
    old: OperatorId | None
    new: OperatorId | None
    changes: tuple[ClassifiedChange, ...]

    @property
    def change_class(self) -> ChangeClass:
        """The most severe class of the changes."""
        return most_severe_class(self.changes)

    def __str__(self) -> str:
        versions = [str(each.since_version) if each else "none" for each in (self.old, self.new)]
        return f"{self.domain}.{self.op_type} {' -> '.join(versions)}"


def operator_difference(operator: Operator, old: OperatorVersion, new: OperatorVersion) -> Difference:
    """Return the changes from `old` to `new`, two versions of an operator; `new` may be the older version."""
    changes = changes_between(operator, old.since_version, new.since_version)
    return Difference(operator.domain, operator.name, old.id, new.id, changes)


def opset_differences(registry: Registry, domain: str, old: int, new: int) -> Iterator[Difference]:
    """Yield the difference of each operator of a domain that has different versions at two opsets.

    Raises:
        UnknownDomain, UnknownOpset: the registry lacks the domain or one of the opsets.
    """
    domain = canonical_domain(domain)
    for opset in (old, new):
        registry.require_opset(opset, domain)
    for operator in registry.operators(domain):
        before, after = operator.at(old), operator.at(new)
        if before and after and before.id != after.id:
            yield operator_difference(operator, before, after)
        elif after and not before:
            added = Change("operator_added", operator.name, None, after.since_version)
            yield Difference(domain, operator.name, None, after.id, (classify_single(added, after),))
        elif before and not after:
            removed = Change("removal", operator.name, None, new)
            yield Difference(domain, operator.name, before.id, None, (classify_single(removed, before),))
