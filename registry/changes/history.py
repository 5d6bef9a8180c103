"""Classify the changes between versions or opsets, and find the changes that a compatibility mode forbids.

A waiver permits a change that a policy or mode forbids.
"""

from collections.abc import Iterable, Iterator
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from opshift.model.operator_ids import OperatorId, canonical_domain
from opshift.model.plain_data import Json
from opshift.registry.changes.classes import CHANGE_RULES, ChangeClass
from opshift.registry.changes.classify import (
    ClassifiedChange,
    changes_between,
    classify,
    classify_single,
    most_severe_class,
)
from opshift.registry.changes.diff import Change
from opshift.registry.changes.policies import Mode
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import from_file_content
from opshift.registry.registry import Registry
from opshift.registry.yaml_files import load_yaml


class Waiver(BaseModel):
    """Permission for one operator to violate one rule until the end of a day."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str
    operator: str
    """`ai.onnx.Clip` for all versions, `ai.onnx.Clip:6` for one."""
    reason: Annotated[str, Field(min_length=10)]
    until: date

    @field_validator("rule")
    @classmethod
    def _check_rule(cls, rule: str) -> str:
        if rule not in CHANGE_RULES:
            raise ValueError(f"unknown rule {rule!r}")
        return rule

    def covers(self, rule: str, operator: str) -> bool:
        """Return whether the waiver applies to a rule and an operator version, even if it is expired."""
        return rule == self.rule and self.operator in (operator, operator.rpartition(":")[0])

    def is_expired(self, today: date) -> bool:
        """Return whether `today` is later than the last day of the waiver, `until`."""
        return today > self.until


class ChangeFinding(NamedTuple):
    """A change that a policy or mode does not allow."""

    operator: str
    """The operator version, such as `ai.onnx.Clip:6`."""
    change: ClassifiedChange
    reason: str
    remedy: str
    waiver: Waiver | None = None
    """The waiver that covers the finding, if any; an expired waiver is listed, but has no effect."""
    is_waived: bool = False

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON output."""
        return {
            "operator": self.operator,
            **self.change.as_dict(),
            "reason": self.reason,
            "remedy": self.remedy,
            "waiver": None if self.waiver is None else self.waiver.model_dump(mode="json"),
            "waived": self.is_waived,
        }


def apply_waivers(
    findings: Iterable[ChangeFinding], waivers: Iterable[Waiver], today: date
) -> Iterator[ChangeFinding]:
    """Yield each finding with its waiver: of all waivers that cover it, the one that expires last."""
    by_expiry = sorted(waivers, key=lambda each: each.until, reverse=True)
    for finding in findings:
        covering = (each for each in by_expiry if each.covers(finding.change.rule, finding.operator))
        waiver = next(covering, None)
        is_waived = waiver is not None and not waiver.is_expired(today)
        yield finding._replace(waiver=waiver, is_waived=is_waived)


def find_unused_waivers(findings: Iterable[ChangeFinding], waivers: Iterable[Waiver]) -> list[Waiver]:
    """Return the waivers that cover no finding."""
    found = [(each.change.rule, each.operator) for each in findings]
    return [waiver for waiver in waivers if not any(waiver.covers(*each) for each in found)]


def load_waivers(path: Path) -> tuple[Waiver, ...]:
    """Read a YAML list of waivers; raise `DefinitionError` if it is invalid or names an unknown rule."""
    return from_file_content(tuple[Waiver, ...], load_yaml(path) or [], path)


REMEDIES = {
    "backward": "keep all older models legal, with the same meaning",
    "forward": "define the new behaviour as an operator with a new name",
    "full": "change the text only",
}


class HistoryStep(NamedTuple):
    """The changes from one version to the next, or to the removal of the operator (then `new` is `None`)."""

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
    """Yield the step between any two adjacent versions, and each removal."""
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
    """Yield the changes to `version` that the mode does not allow.

    A transitive mode compares all earlier versions, other modes the previous one.
    """
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
