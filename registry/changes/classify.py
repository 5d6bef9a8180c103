"""Every change between two versions of an operator, each with the rule that classifies it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from opshift.registry.changes.attribute_rules import ATTRIBUTE_RULES
from opshift.registry.changes.classes import BACKWARD, FORWARD, ChangeClass, gravest
from opshift.registry.changes.meaning_rules import MEANING_RULES
from opshift.registry.changes.operator_rules import OPERATOR_RULES
from opshift.registry.changes.parameter_rules import PARAMETER_RULES
from opshift.registry.changes.rule import ChangeRule, Versions
from opshift.registry.changes.wording import in_place, wording
from opshift.registry.diff import Change, diff
from opshift.registry.models import Operator, OperatorVersion

RULES = (*ATTRIBUTE_RULES, *PARAMETER_RULES, *OPERATOR_RULES, *MEANING_RULES)
"""Of the rules that apply to a change the first one counts."""


class Classified(NamedTuple):
    """One change, and what it does to models."""

    rule: str
    change_class: ChangeClass
    change: Change
    purpose: str

    @property
    def subject(self) -> str:
        """The attribute, parameter or operator that changed."""
        return self.change.subject

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "rule": self.rule,
            "class": str(self.change_class),
            "subject": self.subject,
            "change": str(self.change),
            "purpose": self.purpose,
        }


def classify(old: OperatorVersion, new: OperatorVersion, *, adjacent: bool = True) -> tuple[Classified, ...]:
    """Every change from `old` to `new`, attributes first; nothing if they say the same.

    Of two versions with one number the newer is an edit in place, and how it is converted counts as well.
    Of versions with two numbers the step of `new` is heard too, which tells of changes that the
    definitions do not show; pass `adjacent=False` if others lie between.
    """
    is_edit = old.since_version == new.since_version
    step = new.step if adjacent and old.since_version < new.since_version else None
    versions = Versions(old, new, step)
    found = tuple(_ruled(change, versions) for change in (*diff(old, new), *wording(old, new)))
    if is_edit:
        return found + tuple(_ruled(change, versions) for change in in_place(old, new))
    return found + tuple(_ruled(change, versions) for change in _meaning(found, versions, adjacent))


def changes_between(operator: Operator, start: int, goal: int) -> tuple[Classified, ...]:
    """Every change between two versions of an operator, also if others lie between, in either direction.

    Raises:
        KeyError: the operator has no such version.
    """
    ages = [version.since_version for version in operator.versions]
    by_age = dict(zip(ages, operator.versions, strict=True))
    old, new = by_age[start], by_age[goal]
    way = ages[ages.index(start) + 1 : ages.index(goal) + 1]
    if len(way) == 1:
        return classify(old, new)
    hidden = (each for age in way for each in _hidden(by_age[ages[ages.index(age) - 1]], by_age[age]))
    return (*classify(old, new, adjacent=False), *hidden)


def class_of(changes: tuple[Classified, ...]) -> ChangeClass:
    """The gravest class of some changes; `documentation` of none."""
    return gravest([each.change_class for each in changes])


def rule_for(change: Change, version: OperatorVersion) -> Classified:
    """What a change does that is no matter of two definitions: a version came or went."""
    return _ruled(change, Versions(version, version, None))


@cache
def change_rules() -> dict[str, ChangeRule]:
    """Every rule by its id; rules that share one say the same of the two sides of a change."""
    return {rule.id: rule for rule in RULES}


def _hidden(old: OperatorVersion, new: OperatorVersion) -> Iterator[Classified]:
    """What only the step between neighbours tells."""
    return (each for each in classify(old, new) if each.change.kind in ("meaning", "behaviour"))


def _ruled(change: Change, versions: Versions) -> Classified:
    rule = next(rule for rule in RULES if rule.applies(change, versions))
    return Classified(rule.id, rule.change_class, change, rule.purpose)


def _meaning(found: tuple[Classified, ...], versions: Versions, adjacent: bool) -> Iterator[Change]:
    """The change that only the step declares, if there is one; each version changes something."""
    if not adjacent or versions.old.since_version > versions.new.since_version:
        return
    subject = versions.old.name
    if _passes(found, BACKWARD) and versions.answer("up") != "compatible":
        yield Change("meaning", subject, None, None)
    elif _passes(found, FORWARD) and versions.answer("down") != "compatible":
        yield Change("behaviour", subject, None, None)
    elif _passes(found, frozenset({ChangeClass.DOCUMENTATION})):
        yield Change("text", subject, None, None)


def _passes(found: tuple[Classified, ...], classes: frozenset[ChangeClass]) -> bool:
    return all(each.change_class in classes for each in found)
