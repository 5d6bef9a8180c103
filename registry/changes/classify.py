"""Assign a rule and a class to every change between two versions of an operator."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from opshift.model.errors import UsageError
from opshift.model.plain_data import Json
from opshift.registry.changes.classes import BACKWARD, CHANGE_RULES, FORWARD, ChangeClass
from opshift.registry.changes.diff import Change, diff, fact_changes, field_changes, unmet_groups
from opshift.registry.descriptions import texts_of
from opshift.registry.models import Operator, OperatorVersion, Parameter
from opshift.registry.step_rules import adds_type_source, is_stricter, loses_legal_values, min_values
from opshift.registry.steps import (
    AddAttribute,
    AnyVerb,
    AttributeInputVerb,
    IgnoreAttribute,
    Refuse,
    RenameAttribute,
    RenameValue,
    Step,
    StepAction,
)


@dataclass(frozen=True)
class Versions:
    """The two versions of a change, and the step between them if one is declared."""

    old: OperatorVersion
    new: OperatorVersion
    step: Step | None

    @property
    def _upgrade_verbs(self) -> tuple[AnyVerb, ...]:
        return self.step.up if self.step and isinstance(self.step.up, tuple) else ()

    def declared_action(self, way: Literal["up", "down"]) -> StepAction:
        """Return the declared conversion in a direction, or else `compatible`."""
        answer = getattr(self.step, way, None)
        return "compatible" if answer is None else answer

    @property
    def is_rewritten(self) -> bool:
        """Whether the step rewrites nodes on upgrade and does not refuse a downgrade."""
        up = self.declared_action("up")
        return (up == "adapter" or isinstance(up, tuple)) and not isinstance(
            self.declared_action("down"), Refuse
        )

    @property
    def is_adapted(self) -> bool:
        """Whether an adapter rewrites nodes on upgrade."""
        return self.declared_action("up") == "adapter"

    def renamed_values(self, attribute: str) -> tuple[RenameValue, ...]:
        """Return the verbs of the upgrade that rename values of an attribute."""
        verbs = (verb for verb in self._upgrade_verbs if isinstance(verb, RenameValue))
        return tuple(verb for verb in verbs if verb.attribute == attribute)

    def attributes_of(self, kind: type[IgnoreAttribute | AddAttribute | RenameValue]) -> frozenset[str]:
        """Return the attributes that verbs of class `kind` name in the upgrade."""
        return frozenset(verb.attribute for verb in self._upgrade_verbs if isinstance(verb, kind))

    @property
    def renamed(self) -> frozenset[str]:
        """The old and the new name of each attribute that the upgrade renames."""
        verbs = [verb for verb in self._upgrade_verbs if isinstance(verb, RenameAttribute)]
        return frozenset(name for verb in verbs for name in (verb.attribute, verb.to))

    @cached_property
    def converted_attributes(self) -> frozenset[str]:
        """Old and new names of attributes that become inputs, and of inputs that become attributes."""
        verbs = [verb for verb in self._upgrade_verbs if isinstance(verb, AttributeInputVerb)]
        declared = {name for verb in verbs for name in (verb.attribute_name, verb.input_name)}
        return frozenset(declared | _matching_names(self.old, self.new) | _matching_names(self.new, self.old))


def _matching_names(old: OperatorVersion, new: OperatorVersion) -> set[str]:
    """Return the names of attributes that only `old` has and of matching inputs that only `new` has."""
    inputs = {each.name for each in old.inputs}
    pairs = [
        (attribute, parameter.name)
        for attribute in old.attributes.keys() - new.attributes.keys()
        for parameter in new.inputs
        if parameter.name not in inputs and _is_same_name(attribute, parameter.name)
    ]
    return {name for pair in pairs for name in pair}


def _is_same_name(attribute: str, parameter: str) -> bool:
    """Return whether the names match: `axes` and `axes`, `k` and `K`, `value` and `constant_value`."""
    one, other = attribute.lower(), parameter.lower()
    return one == other or other.endswith(f"_{one}") or one.endswith(f"_{other}")


class ClassifiedChange(NamedTuple):
    """A change, the rule that classifies it, and the class."""

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
    """Return every change from `old` to `new`, attributes first.

    If both have the same `since_version`, `new` is an edited copy of `old`, and changed texts, steps and
    removals count too. Otherwise the step between the versions is also read, because it can declare a change
    of meaning that the definitions do not show. Pass `adjacent=False` if other versions are in between.

    Raises:
        UsageError: the arguments are not two versions of an operator.
    """
    pair: tuple[object, ...] = (old, new)
    if not all(isinstance(each, OperatorVersion) for each in pair) or old.name != new.name:
        reason = f"expected two versions of an operator, got {_label_of(old)} and {_label_of(new)}"
        raise UsageError(reason, remedy="pass two results of Registry.get_schema for one operator")
    versions = Versions(old, new, _step_between(old, new) if adjacent else None)
    found = _apply_rules((*diff(old, new), *fact_changes(old, new)), versions)
    is_edit = old.since_version == new.since_version
    hidden = in_place_changes(old, new) if is_edit else _declared_change(found, versions, adjacent)
    return found + _apply_rules(hidden, versions)


def _label_of(version: object) -> str:
    return str(version.id) if isinstance(version, OperatorVersion) else type(version).__name__


def _step_between(old: OperatorVersion, new: OperatorVersion) -> Step | None:
    """Return the step of the newer version, with `up` and `down` swapped if `old` is the newer version.

    Return `None` for equal versions, and if the newer version declares no step.
    """
    if old.since_version < new.since_version:
        return new.step
    if old.since_version == new.since_version or old.step is None:
        return None
    return Step(change=old.step.change, up=old.step.down, down=old.step.up)


def changes_between(operator: Operator, start: int, goal: int) -> tuple[ClassifiedChange, ...]:
    """Return every change from version `start` to version `goal`, which may be older, or not adjacent.

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
    # Classify the single steps, too: only steps between adjacent versions declare changes of meaning.
    steps = [change for pair in pairwise(path) for change in classify(*pair)]
    by_change = {(each.change.kind, each.subject): each for each in steps}
    found = (
        _with_rule_of(each, by_change.get((each.change.kind, each.subject)))
        for each in classify(old, new, adjacent=False)
    )
    hidden = (each for each in steps if each.change.kind in ("meaning", "behaviour"))
    return (*found, *hidden)


def _with_rule_of(change: ClassifiedChange, step: ClassifiedChange | None) -> ClassifiedChange:
    """Return `change`, but with the rule and class of `step` if `step` is RE_ENCODES or INCOMPATIBLE."""
    if step is None or step.change_class not in (ChangeClass.RE_ENCODES, ChangeClass.INCOMPATIBLE):
        return change
    return step._replace(change=change.change)


def most_severe_class(changes: Iterable[ClassifiedChange]) -> ChangeClass:
    """Return the most severe class of some changes, or `documentation` if there are none."""
    classes = {each.change_class for each in changes} or {ChangeClass.DOCUMENTATION}
    return max(classes, key=list(ChangeClass).index)


def classify_single(change: Change, version: OperatorVersion) -> ClassifiedChange:
    """Classify a change that does not compare two definitions: an added or removed operator or version."""
    (classified,) = _apply_rules((change,), Versions(version, version, None))
    return classified


def _apply_rules(changes: Iterable[Change], versions: Versions) -> tuple[ClassifiedChange, ...]:
    rules = ((CHANGE_RULES[select_rule(change, versions)], change) for change in changes)
    return tuple(ClassifiedChange(rule.id, rule.change_class, change, rule.purpose) for rule, change in rules)


def _declared_change(
    found: tuple[ClassifiedChange, ...], versions: Versions, adjacent: bool
) -> Iterator[Change]:
    """Yield at most one change: a change of meaning or behaviour that the step declares and `found` lacks.

    Otherwise, if `found` has only documentation changes, yield a text change: each version changes something.
    Yield nothing for versions that are not `adjacent`, or if `versions.old` is the newer one.
    """
    if not adjacent or versions.old.since_version > versions.new.since_version:
        return
    subject, classes = versions.old.name, {each.change_class for each in found}
    if classes <= BACKWARD and versions.declared_action("up") != "compatible":
        yield Change("meaning", subject, None, None)
    elif classes <= FORWARD and versions.declared_action("down") != "compatible":
        yield Change("behaviour", subject, None, None)
    elif classes <= {ChangeClass.DOCUMENTATION}:
        yield Change("text", subject, None, None)


def in_place_changes(old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    """Yield differences in texts, steps and removal between two copies of the same version."""
    if texts_of(old).items() - texts_of(new).items():
        yield Change("description", old.name, None, None)
    for change in field_changes(old.name, old, new, ("step", "before")):
        yield Change(change.kind, old.name, None, None)
    if old.removal != new.removal:
        opsets = (each.removal and each.removal.removed_in for each in (old, new))
        yield Change("removal", old.name, *opsets)


def select_rule(change: Change, versions: Versions) -> str:
    """Return the id of the rule that classifies a change."""
    selected = RULE_SELECTION[change.kind]
    return selected if isinstance(selected, str) else selected(change, versions)


def _removed_attribute_rule(change: Change, versions: Versions) -> str:
    if change.subject in versions.converted_attributes:
        return "attribute-became-input"
    if change.subject in versions.attributes_of(IgnoreAttribute):
        return "attribute-without-effect-removed"
    return _replaced_attribute_rule(change, versions) or "attribute-removed"


def _added_attribute_rule(change: Change, versions: Versions) -> str:
    replaced = _replaced_attribute_rule(change, versions)
    if replaced:
        return replaced
    if change.subject in versions.converted_attributes:
        return "input-became-attribute"
    if not versions.new.attributes[change.subject].required:
        return "attribute-added"
    is_supplied = versions.is_rewritten or change.subject in versions.attributes_of(AddAttribute)
    return "required-attribute-supplied" if is_supplied else "required-attribute-added"


def _replaced_attribute_rule(change: Change, versions: Versions) -> str | None:
    if change.subject in versions.renamed:
        return "attribute-renamed"
    old, new = versions.old.attributes.keys(), versions.new.attributes.keys()
    removed = old - new - versions.attributes_of(IgnoreAttribute) - versions.converted_attributes
    return "attributes-replaced" if versions.is_rewritten and removed and new - old else None


def _attribute_type_rule(_: Change, versions: Versions) -> str:
    return "attribute-retyped" if versions.is_rewritten else "attribute-type-changed"


def _default_rule(change: Change, versions: Versions) -> str:
    renamed = (each.values.get(change.old) for each in versions.renamed_values(change.subject))
    if change.new in renamed:
        return "values-renamed"
    # A verb can set the old default, so an adapter indicates that the meaning changed, too.
    is_adapted = change.old is not None and versions.is_adapted
    return _meaning_rule(change, versions) if is_adapted else "default-changed"


def _node_fact_rule(change: Change, versions: Versions) -> str:
    return _meaning_rule(change, versions) if versions.is_adapted else "facts-changed"


def _merged_types_rule(change: Change, versions: Versions) -> str:
    return _meaning_rule(change, versions) if versions.is_adapted else "type-variables-merged"


def _one_of_rule(change: Change, versions: Versions) -> str:
    if unmet_groups(versions.old, versions.new):
        return _meaning_rule(change, versions) if versions.is_adapted else "attribute-group-added"
    return "attribute-group-removed" if unmet_groups(versions.new, versions.old) else "facts-changed"


def _required_attribute_rule(change: Change, _: Versions) -> str:
    return "attribute-became-required" if change.new else "attribute-became-optional"


def _attribute_values_rule(change: Change, versions: Versions) -> str:
    if change.subject in versions.attributes_of(RenameValue):
        return "values-renamed"
    return "values-removed" if loses_legal_values(change, (versions.old, versions.new)) else "values-added"


def _added_input_rule(change: Change, versions: Versions) -> str:
    if change.subject in versions.converted_attributes:
        return "attribute-became-input"
    if not _is_required(change, versions.new):
        return "input-added"
    return "required-input-supplied" if versions.is_rewritten else "required-input-added"


def _removed_input_rule(change: Change, versions: Versions) -> str:
    is_required = _is_required(change, versions.old)
    if is_required and versions.is_rewritten:
        return "parameters-rearranged"
    if change.subject in versions.converted_attributes:
        return "input-became-attribute"
    return "required-input-removed" if is_required else "input-removed"


def _added_output_rule(change: Change, versions: Versions) -> str:
    return "required-output-added" if _is_required(change, versions.new) else "output-added"


def _removed_output_rule(change: Change, versions: Versions) -> str:
    if not _is_required(change, versions.old):
        return "output-removed"
    return "parameters-rearranged" if versions.is_rewritten else "required-output-removed"


def _parameter_name_rule(change: Change, versions: Versions) -> str:
    old, new = _names_on_changed_side(change, versions.old), _names_on_changed_side(change, versions.new)
    if change.old not in new and change.new not in old:
        return "parameter-renamed"
    return "parameters-rearranged" if versions.is_rewritten else "parameters-reordered"


def _parameter_option_rule(change: Change, versions: Versions) -> str:
    if not is_stricter(change):
        return "parameter-demands-less"
    position = _names_on_changed_side(change, versions.new).index(change.subject)
    is_moved = _names_on_changed_side(change, versions.old)[position] != change.subject
    return "parameters-rearranged" if is_moved and versions.is_rewritten else "parameter-demands-more"


def _parameter_types_rule(change: Change, _: Versions) -> str:
    return "types-removed" if change.old - change.new else "types-added"


def _changed_side(change: Change, version: OperatorVersion) -> tuple[Parameter, ...]:
    return version.inputs if change.kind.startswith("input_") else version.outputs


def _names_on_changed_side(change: Change, version: OperatorVersion) -> list[str]:
    return [each.name for each in _changed_side(change, version)]


def _is_required(change: Change, version: OperatorVersion) -> bool:
    required = (each.name for each in _changed_side(change, version) if min_values(each) > 0)
    return change.subject in required


def _determinism_rule(change: Change, _: Versions) -> str:
    return "determinism-stated" if "unknown" in (change.old, change.new) else "determinism-changed"


def _status_rule(change: Change, _: Versions) -> str:
    return "experiment-ended" if change.new == "STABLE" else "stability-lost"


def _deprecation_rule(change: Change, _: Versions) -> str:
    return "operator-deprecated" if change.new else "operator-restored"


def _removal_rule(change: Change, _: Versions) -> str:
    return "removal-withdrawn" if change.new is None else "operator-removed"


def _type_source_rule(change: Change, _: Versions) -> str:
    return "type-rule-added" if adds_type_source(change) else "type-rule-changed"


def _function_rule(change: Change, _: Versions) -> str:
    return "body-added" if change.new else "body-removed"


def _body_rule(_: Change, versions: Versions) -> str:
    step = versions.step
    is_same = step is not None and step.up == "compatible" and step.down in ("compatible", None)
    return "body-rewritten" if is_same else "body-changed"


def _meaning_rule(_: Change, versions: Versions) -> str:
    if not isinstance(versions.declared_action("up"), Refuse):
        return "meaning-re-encoded"
    return "meaning-changed" if isinstance(versions.declared_action("down"), Refuse) else "behaviour-removed"


RULE_SELECTION: Final[dict[str, str | Callable[[Change, Versions], str]]] = {
    "attribute_removed": _removed_attribute_rule,
    "attribute_added": _added_attribute_rule,
    "attribute_type": _attribute_type_rule,
    "attribute_default": _default_rule,
    "attribute_required": _required_attribute_rule,
    "attribute_values": _attribute_values_rule,
    "attribute_absent": "description-changed",
    "input_added": _added_input_rule,
    "input_removed": _removed_input_rule,
    "output_added": _added_output_rule,
    "output_removed": _removed_output_rule,
    **dict.fromkeys(("input_name", "output_name"), _parameter_name_rule),
    **dict.fromkeys(("input_option", "output_option"), _parameter_option_rule),
    **dict.fromkeys(("input_types", "output_types"), _parameter_types_rule),
    **dict.fromkeys(("input_differentiation", "output_differentiation"), "facts-changed"),
    "input_type_source": "type-rule-changed",
    "output_type_source": _type_source_rule,
    "type_variable": "facts-changed",
    "types_merged": _merged_types_rule,
    "types_split": "type-variables-split",
    "determinism": _determinism_rule,
    "status": _status_rule,
    "deprecation": _deprecation_rule,
    "deprecation_text": "description-changed",
    "removal": _removal_rule,
    "version_deleted": "version-deleted",
    "version_inserted": "version-inserted",
    "operator_added": "operator-added",
    "has_function": _function_rule,
    "body": _body_rule,
    "description": "description-changed",
    "shape": _node_fact_rule,
    "bridge": "facts-changed",
    "axes": _node_fact_rule,
    "one_of": _one_of_rule,
    "requires": "facts-changed",
    "step": "conversion-changed",
    "before": "conversion-changed",
    "meaning": _meaning_rule,
    "behaviour": "behaviour-added",
    "text": "text-clarified",
}
"""For each kind of change, the id of its rule, or a function that selects the rule."""
