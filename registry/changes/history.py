"""Every step of a history, classified, and those that a mode does not allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.classify import Classified, changes_between, class_of, classify, rule_for
from opshift.registry.changes.findings import Finding
from opshift.registry.changes.policies import Mode
from opshift.registry.diff import Change
from opshift.registry.models import Operator, OperatorVersion

REMEDIES = {
    "backward": "leave what older models may hold legal, with the same meaning",
    "forward": "leave what newer models may hold to a version of another name",
    "full": "change the words only",
}


class HistoryStep(NamedTuple):
    """From one version to the next, or to the opset that the operator is taken out of."""

    old: OperatorVersion
    new: OperatorVersion | None
    opset: int
    changes: tuple[Classified, ...]

    @property
    def change_class(self) -> ChangeClass:
        """The gravest class of its changes."""
        return class_of(self.changes)

    @property
    def operator(self) -> str:
        """Where it arrives: `ai.onnx.Clip:6`."""
        return str(self.old.id._replace(since_version=self.opset))


def history_steps(operators: Iterable[Operator]) -> Iterator[HistoryStep]:
    """Every step between neighbouring versions, and every removal."""
    for operator in operators:
        for old, new in zip(operator.versions, operator.versions[1:], strict=False):
            yield HistoryStep(old, new, new.since_version, classify(old, new))
        for version in operator.versions:
            if version.removal:
                change = Change("removal", version.name, None, version.removal.removed_in)
                yield HistoryStep(version, None, version.removal.removed_in, (rule_for(change, version),))


def history_findings(operators: Iterable[Operator], mode: Mode) -> Iterator[Finding]:
    """Every change of a new version, or a removal, that the mode does not allow."""
    for operator in operators:
        for version in operator.versions[1:]:
            yield from version_findings(operator, version, mode)
        for step in history_steps((operator,)):
            if step.new is None:
                yield from _findings(step.operator, step.changes, mode, str(step.old.id))


def version_findings(operator: Operator, version: OperatorVersion, mode: Mode) -> Iterator[Finding]:
    """What one new version changes that the mode does not allow; nothing of a first version."""
    ages = [each.since_version for each in operator.versions if each.since_version < version.since_version]
    for age in ages if mode.is_transitive else ages[-1:]:
        changes = changes_between(operator, age, version.since_version)
        base = operator.versions[ages.index(age)]
        yield from _findings(str(version.id), changes, mode, str(base.id))


def _findings(operator: str, changes: Iterable[Classified], mode: Mode, base: str) -> Iterator[Finding]:
    way = mode.removesuffix("-transitive")
    for change in changes:
        if not mode.allows(change):
            reason = f"the mode {mode} does not allow this against {base}"
            yield Finding(operator, change, reason, REMEDIES[way])
