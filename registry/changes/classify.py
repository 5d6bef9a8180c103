"""Classify every change between two versions of an operator by a rule."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from opshift.model.plain_data import Json
from opshift.registry.changes.classes import BACKWARD, CHANGE_RULES, FORWARD, ChangeClass
from opshift.registry.changes.diff import Change, diff, field_changes
from opshift.registry.changes.rule_selection import select_rule
from opshift.registry.changes.versions import Versions
from opshift.registry.descriptions import texts_of
from opshift.registry.models import Operator, OperatorVersion, Parameter
from opshift.registry.steps import Step


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
    versions = Versions(old, new, _step_between(old, new) if adjacent else None)
    found = _apply_rules((*diff(old, new), *text_changes(old, new)), versions)
    is_edit = old.since_version == new.since_version
    hidden = in_place_changes(old, new) if is_edit else _declared_change(found, versions, adjacent)
    return found + _apply_rules(hidden, versions)


def _step_between(old: OperatorVersion, new: OperatorVersion) -> Step | None:
    """Return the step of the newer version, with exchanged directions if it is the old one of a change."""
    if old.since_version < new.since_version:
        return new.step
    if old.since_version == new.since_version or old.step is None:
        return None
    return Step(change=old.step.change, up=old.step.down, down=old.step.up)


def changes_between(operator: Operator, start: int, goal: int) -> tuple[ClassifiedChange, ...]:
    """Return every change between two versions of an operator, adjacent or not, in either direction.

    Raises:
        KeyError: the operator has no such version.
    """
    by_number = {version.since_version: version for version in operator.versions}
    old, new = by_number[start], by_number[goal]
    low, high = sorted((start, goal))
    path = [version for number, version in by_number.items() if low <= number <= high]
    path = path if start <= goal else path[::-1]
    if len(path) == 2:
        return classify(old, new)
    # Only the steps declare changes of meaning.
    steps = [change for pair in pairwise(path) for change in classify(*pair)]
    by_change = {(each.change.kind, each.subject): each for each in steps}
    found = (
        _with_rule_of(each, by_change.get((each.change.kind, each.subject)))
        for each in classify(old, new, adjacent=False)
    )
    hidden = (each for each in steps if each.change.kind in ("meaning", "behaviour"))
    return (*found, *hidden)


def _with_rule_of(change: ClassifiedChange, step: ClassifiedChange | None) -> ClassifiedChange:
    """Return a change with the rule of the same change in a step, which may declare a change of meaning."""
    if step is None or step.change_class not in (ChangeClass.RE_ENCODES, ChangeClass.INCOMPATIBLE):
        return change
    return step._replace(change=change.change)


def most_severe_class(changes: Iterable[ClassifiedChange]) -> ChangeClass:
    """Return the most severe class of some changes, or `documentation` if there are none."""
    classes = {each.change_class for each in changes} or {ChangeClass.DOCUMENTATION}
    return max(classes, key=list(ChangeClass).index)


def classify_single(change: Change, version: OperatorVersion) -> ClassifiedChange:
    """Classify a change that does not compare two definitions: a version was added or removed."""
    (classified,) = _apply_rules((change,), Versions(version, version, None))
    return classified


def _apply_rules(changes: Iterable[Change], versions: Versions) -> tuple[ClassifiedChange, ...]:
    rules = ((CHANGE_RULES[select_rule(change, versions)], change) for change in changes)
    return tuple(ClassifiedChange(rule.id, rule.change_class, change, rule.purpose) for rule, change in rules)


def _declared_change(
    found: tuple[ClassifiedChange, ...], versions: Versions, adjacent: bool
) -> Iterator[Change]:
    """Yield the change that only the step declares, if there is one.

    Each published version changes something, so a text change is the fallback.
    """
    if not adjacent or versions.old.since_version > versions.new.since_version:
        return
    subject, classes = versions.old.name, {each.change_class for each in found}
    if classes <= BACKWARD and versions.answer("up") != "compatible":
        yield Change("meaning", subject, None, None)
    elif classes <= FORWARD and versions.answer("down") != "compatible":
        yield Change("behaviour", subject, None, None)
    elif classes <= {ChangeClass.DOCUMENTATION}:
        yield Change("text", subject, None, None)


def text_changes(old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    """Yield every difference that `diff` does not report."""
    for change in field_changes(old.name, old, new, ("shape", "bridge", "axes", "one_of", "requires")):
        yield Change(change.kind, old.name, None, None)
    yield from field_changes(old.name, old, new, ("has_function",))
    if old.body and new.body and old.body != new.body:
        yield Change("body", old.name, None, None)
    if old.deprecation and new.deprecation and old.deprecation != new.deprecation:
        replacements = (", ".join(each.replacements) or None for each in (old.deprecation, new.deprecation))
        yield Change("deprecation_text", old.name, *replacements)
    for name in filter(old.attributes.__contains__, new.attributes):
        before, after = old.attributes[name].absent, new.attributes[name].absent
        if before != after:
            yield Change("attribute_absent", name, before or None, after or None)
    yield from _parameters("input", old.inputs, new.inputs)
    yield from _parameters("output", old.outputs, new.outputs)


def in_place_changes(old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    """Yield differences between two copies of the same version: its texts, its steps and its removal."""
    if texts_of(old).items() - texts_of(new).items():
        yield Change("description", old.name, None, None)
    for change in field_changes(old.name, old, new, ("step", "before")):
        yield Change(change.kind, old.name, None, None)
    if old.removal != new.removal:
        opsets = (each.removal and each.removal.removed_in for each in (old, new))
        yield Change("removal", old.name, *opsets)


def _parameters(side: str, old: tuple[Parameter, ...], new: tuple[Parameter, ...]) -> Iterator[Change]:
    for before, after in zip(old, new, strict=False):
        if before.type != after.type:
            yield Change("type_variable", after.name, before.type, after.type)
        yield from field_changes(after.name, before, after, ("differentiation",), f"{side}_")
        sources = [(each.type_attributes, each.absent_type) for each in (before, after)]
        if sources[0] != sources[1]:
            yield Change(f"{side}_type_source", after.name, *sources)
