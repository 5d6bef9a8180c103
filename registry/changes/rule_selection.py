"""Select the rule that classifies a change, by the kind of the change."""

from collections.abc import Callable
from typing import Final

from opshift.registry.changes.diff import Change
from opshift.registry.changes.versions import Versions
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.step_rules import is_stricter, loses_legal_values, min_values
from opshift.registry.steps import AddAttribute, IgnoreAttribute, Refuse, RenameValue


def select_rule(change: Change, versions: Versions) -> str:
    """Return the id of the rule that classifies a change."""
    selected = RULE_SELECTION[change.kind]
    return selected if isinstance(selected, str) else selected(change, versions)


def _attribute_removed(change: Change, versions: Versions) -> str:
    if change.subject in versions.converted_attributes:
        return "attribute-became-input"
    if change.subject in versions.attributes_of(IgnoreAttribute):
        return "attribute-without-effect-removed"
    return _replaced_attribute(change, versions) or "attribute-removed"


def _attribute_added(change: Change, versions: Versions) -> str:
    replaced = _replaced_attribute(change, versions)
    if replaced:
        return replaced
    if change.subject in versions.converted_attributes:
        return "input-became-attribute"
    if not versions.new.attributes[change.subject].required:
        return "attribute-added"
    is_supplied = versions.is_rewritten or change.subject in versions.attributes_of(AddAttribute)
    return "required-attribute-supplied" if is_supplied else "required-attribute-added"


def _replaced_attribute(change: Change, versions: Versions) -> str | None:
    if change.subject in versions.renamed:
        return "attribute-renamed"
    old, new = versions.old.attributes.keys(), versions.new.attributes.keys()
    removed = old - new - versions.attributes_of(IgnoreAttribute) - versions.converted_attributes
    return "attributes-replaced" if versions.is_rewritten and removed and new - old else None


def _attribute_type(_: Change, versions: Versions) -> str:
    return "attribute-retyped" if versions.is_rewritten else "attribute-type-changed"


def _attribute_default(change: Change, versions: Versions) -> str:
    renamed = (each.values.get(change.old) for each in versions.renamed_values(change.subject))
    if change.new in renamed:
        return "values-renamed"
    # an adapter does more than setting the old default, so that setting it is not enough
    is_adapted = change.old is not None and versions.is_adapted
    return _meaning(change, versions) if is_adapted else "default-changed"


def _node_fact(change: Change, versions: Versions) -> str:
    return _meaning(change, versions) if versions.is_adapted else "facts-changed"


def _attribute_required(change: Change, _: Versions) -> str:
    return "attribute-became-required" if change.new else "attribute-became-optional"


def _attribute_values(change: Change, versions: Versions) -> str:
    if change.subject in versions.attributes_of(RenameValue):
        return "values-renamed"
    return "values-removed" if loses_legal_values(change, (versions.old, versions.new)) else "values-added"


def _input_added(change: Change, versions: Versions) -> str:
    if change.subject in versions.converted_attributes:
        return "attribute-became-input"
    if not _is_required(change, versions.new):
        return "input-added"
    return "required-input-supplied" if versions.is_rewritten else "required-input-added"


def _input_removed(change: Change, versions: Versions) -> str:
    is_required = _is_required(change, versions.old)
    if is_required and versions.is_rewritten:
        return "parameters-rearranged"
    if change.subject in versions.converted_attributes:
        return "input-became-attribute"
    return "required-input-removed" if is_required else "input-removed"


def _output_added(change: Change, versions: Versions) -> str:
    return "required-output-added" if _is_required(change, versions.new) else "output-added"


def _output_removed(change: Change, versions: Versions) -> str:
    if not _is_required(change, versions.old):
        return "output-removed"
    return "parameters-rearranged" if versions.is_rewritten else "required-output-removed"


def _parameter_name(change: Change, versions: Versions) -> str:
    old, new = _names(change, versions.old), _names(change, versions.new)
    if change.old not in new and change.new not in old:
        return "parameter-renamed"
    return "parameters-rearranged" if versions.is_rewritten else "parameters-reordered"


def _parameter_option(change: Change, versions: Versions) -> str:
    if not is_stricter(change):
        return "parameter-demands-less"
    position = _names(change, versions.new).index(change.subject)
    is_moved = _names(change, versions.old)[position] != change.subject
    return "parameters-rearranged" if is_moved and versions.is_rewritten else "parameter-demands-more"


def _parameter_types(change: Change, _: Versions) -> str:
    return "types-removed" if change.old - change.new else "types-added"


def _parameters(change: Change, version: OperatorVersion) -> tuple[Parameter, ...]:
    return version.inputs if change.kind.startswith("input_") else version.outputs


def _names(change: Change, version: OperatorVersion) -> list[str]:
    return [each.name for each in _parameters(change, version)]


def _is_required(change: Change, version: OperatorVersion) -> bool:
    required = (each.name for each in _parameters(change, version) if min_values(each) > 0)
    return change.subject in required


def _determinism(change: Change, _: Versions) -> str:
    return "determinism-stated" if "unknown" in (change.old, change.new) else "determinism-changed"


def _status(change: Change, _: Versions) -> str:
    return "experiment-ended" if change.new == "STABLE" else "stability-lost"


def _deprecation(change: Change, _: Versions) -> str:
    return "operator-deprecated" if change.new else "operator-restored"


def _removal(change: Change, _: Versions) -> str:
    return "removal-withdrawn" if change.new is None else "operator-removed"


def _output_type_source(change: Change, _: Versions) -> str:
    (old, old_absent), (new, new_absent) = change.old, change.new
    is_added = set(old) < set(new) and old_absent in (None, new_absent)
    return "type-rule-added" if is_added else "type-rule-changed"


def _function(change: Change, _: Versions) -> str:
    return "body-added" if change.new else "body-removed"


def _body(_: Change, versions: Versions) -> str:
    step = versions.step
    is_same = step is not None and step.up == "compatible" and step.down in ("compatible", None)
    return "body-rewritten" if is_same else "body-changed"


def _meaning(_: Change, versions: Versions) -> str:
    if not isinstance(versions.answer("up"), Refuse):
        return "meaning-re-encoded"
    return "meaning-changed" if isinstance(versions.answer("down"), Refuse) else "behaviour-removed"


RULE_SELECTION: Final[dict[str, str | Callable[[Change, Versions], str]]] = {
    "attribute_removed": _attribute_removed,
    "attribute_added": _attribute_added,
    "attribute_type": _attribute_type,
    "attribute_default": _attribute_default,
    "attribute_required": _attribute_required,
    "attribute_values": _attribute_values,
    "attribute_absent": "description-changed",
    "input_added": _input_added,
    "input_removed": _input_removed,
    "output_added": _output_added,
    "output_removed": _output_removed,
    **dict.fromkeys(("input_name", "output_name"), _parameter_name),
    **dict.fromkeys(("input_option", "output_option"), _parameter_option),
    **dict.fromkeys(("input_types", "output_types"), _parameter_types),
    **dict.fromkeys(("input_differentiation", "output_differentiation"), "facts-changed"),
    "input_type_source": "type-rule-changed",
    "output_type_source": _output_type_source,
    "type_variable": "facts-changed",
    "determinism": _determinism,
    "status": _status,
    "deprecation": _deprecation,
    "deprecation_text": "description-changed",
    "removal": _removal,
    "version_deleted": "version-deleted",
    "version_inserted": "version-inserted",
    "operator_added": "operator-added",
    "has_function": _function,
    "body": _body,
    "description": "description-changed",
    "shape": _node_fact,
    "bridge": "facts-changed",
    "axes": _node_fact,
    "one_of": "facts-changed",
    "requires": "facts-changed",
    "step": "conversion-changed",
    "before": "conversion-changed",
    "meaning": _meaning,
    "behaviour": "behaviour-added",
    "text": "text-clarified",
}
"""Kind of change to the id of its rule, or to a function that selects one."""
