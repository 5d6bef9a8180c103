"""Classify every change between two versions of an operator by a rule."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from opshift.model.plain_data import Json
from opshift.registry.changes.attribute_rules import ATTRIBUTE_RULES
from opshift.registry.changes.classes import BACKWARD, FORWARD, ChangeClass, most_severe
from opshift.registry.changes.operator_rules import MEANING_RULES, OPERATOR_RULES
from opshift.registry.changes.parameter_rules import PARAMETER_RULES
from opshift.registry.changes.rule import ChangeRule, Versions
from opshift.registry.diff import Change, diff
from opshift.registry.models import Operator, OperatorVersion, Parameter

CHANGE_RULES = (*ATTRIBUTE_RULES, *PARAMETER_RULES, *OPERATOR_RULES, *MEANING_RULES)
"""All rules, in order of precedence: the first one that applies to a change classifies it."""


class ClassifiedChange(NamedTuple):
    """A change with its rule and its effect on models."""

    rule: str
    change_class: ChangeClass
    change: Change
    purpose: str

    @property
    def subject(self) -> str:
        """The attribute, parameter or operator that changed."""
        return self.change.subject

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON output."""
        return {
            "rule": self.rule,
            "class": str(self.change_class),
            "subject": self.subject,
            "change": str(self.change),
            "purpose": self.purpose,
        }


def classify(
    old: OperatorVersion, new: OperatorVersion, *, adjacent: bool = True
) -> tuple[ClassifiedChange, ...]:
    """Return every change from `old` to `new`, attributes first; empty if the definitions are identical.

    If both have the same number, the newer one is an edit in place, and changes of its steps count too.
    Otherwise the step of `new` is also considered, because it declares changes of meaning that definitions
    do not show; pass `adjacent=False` if there are versions in between.
    """
    is_edit = old.since_version == new.since_version
    step = new.step if adjacent and old.since_version < new.since_version else None
    versions = Versions(old, new, step)
    found = tuple(_apply_rule(change, versions) for change in (*diff(old, new), *text_changes(old, new)))
    if is_edit:
        return found + tuple(_apply_rule(change, versions) for change in in_place_changes(old, new))
    return found + tuple(
        _apply_rule(change, versions) for change in _declared_change(found, versions, adjacent)
    )


def changes_between(operator: Operator, start: int, goal: int) -> tuple[ClassifiedChange, ...]:
    """Return every change between two versions of an operator, adjacent or not, in either direction.

    Raises:
        KeyError: the operator has no such version.
    """
    numbers = [version.since_version for version in operator.versions]
    by_number = dict(zip(numbers, operator.versions, strict=True))
    old, new = by_number[start], by_number[goal]
    path = numbers[numbers.index(start) + 1 : numbers.index(goal) + 1]
    if len(path) == 1:
        return classify(old, new)
    hidden = (
        each
        for number in path
        for each in _step_changes(by_number[numbers[numbers.index(number) - 1]], by_number[number])
    )
    return (*classify(old, new, adjacent=False), *hidden)


def most_severe_class(changes: tuple[ClassifiedChange, ...]) -> ChangeClass:
    """Return the most severe class of some changes, or `documentation` if there are none."""
    return most_severe([each.change_class for each in changes])


def classify_single(change: Change, version: OperatorVersion) -> ClassifiedChange:
    """Classify a change that does not compare two definitions: a version was added or removed."""
    return _apply_rule(change, Versions(version, version, None))


@cache
def change_rules() -> dict[str, ChangeRule]:
    """Return every rule by id; rules with the same id have the same class and purpose."""
    return {rule.id: rule for rule in CHANGE_RULES}


def _step_changes(old: OperatorVersion, new: OperatorVersion) -> Iterator[ClassifiedChange]:
    """Yield the changes between adjacent versions that only their step declares."""
    return (each for each in classify(old, new) if each.change.kind in ("meaning", "behaviour"))


def _apply_rule(change: Change, versions: Versions) -> ClassifiedChange:
    rule = next(rule for rule in CHANGE_RULES if rule.applies(change, versions))
    return ClassifiedChange(rule.id, rule.change_class, change, rule.purpose)


def _declared_change(
    found: tuple[ClassifiedChange, ...], versions: Versions, adjacent: bool
) -> Iterator[Change]:
    """Yield the change that only the step declares, if there is one.

    Each published version changes something, so a text change is the fallback.
    """
    if not adjacent or versions.old.since_version > versions.new.since_version:
        return
    subject = versions.old.name
    if _are_all_in(found, BACKWARD) and versions.answer("up") != "compatible":
        yield Change("meaning", subject, None, None)
    elif _are_all_in(found, FORWARD) and versions.answer("down") != "compatible":
        yield Change("behaviour", subject, None, None)
    elif _are_all_in(found, frozenset({ChangeClass.DOCUMENTATION})):
        yield Change("text", subject, None, None)


def _are_all_in(found: tuple[ClassifiedChange, ...], classes: frozenset[ChangeClass]) -> bool:
    return all(each.change_class in classes for each in found)


TEXT_CHANGE_KINDS = (
    "description",
    "shape",
    "bridge",
    "body",
    "step",
    "before",
    "removal",
    "deprecation_text",
    "type_variable",
    "attribute_absent",
    *(f"{side}_{what}" for side in ("input", "output") for what in ("differentiation", "type_source")),
)
"""All kinds of change that this module reports."""


def text_changes(old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    """Yield every difference that `diff` does not report."""
    for field in ("description", "shape", "bridge", "body"):
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            yield Change(field, old.name, None, None)
    if old.deprecation and new.deprecation and old.deprecation != new.deprecation:
        yield Change("deprecation_text", old.name, old.deprecation.replaced_by, new.deprecation.replaced_by)
    for name in old.attributes.keys() & new.attributes.keys():
        before, after = old.attributes[name].absent, new.attributes[name].absent
        if before != after:
            yield Change("attribute_absent", name, before or None, after or None)
    yield from _parameters("input", old.inputs, new.inputs)
    yield from _parameters("output", old.outputs, new.outputs)


def in_place_changes(old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    """Yield differences between two copies of the same version: its steps and its removal."""
    if old.step != new.step:
        yield Change("step", old.name, None, None)
    if old.before != new.before:
        yield Change("before", old.name, None, None)
    if old.removal != new.removal:
        opsets = (each.removal and each.removal.removed_in for each in (old, new))
        yield Change("removal", old.name, *opsets)


def _parameters(side: str, old: tuple[Parameter, ...], new: tuple[Parameter, ...]) -> Iterator[Change]:
    for before, after in zip(old, new, strict=False):
        if before.type != after.type:
            yield Change("type_variable", after.name, before.type, after.type)
        if before.differentiation != after.differentiation:
            yield Change(f"{side}_differentiation", after.name, before.differentiation, after.differentiation)
        sources = [(each.type_attribute, each.absent_type) for each in (before, after)]
        if sources[0] != sources[1]:
            yield Change(f"{side}_type_source", after.name, *sources)
