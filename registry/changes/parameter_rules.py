"""Rules for changes of inputs and outputs."""

from __future__ import annotations

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.rule import ChangeRule, Versions, of_kind
from opshift.registry.diff import Change
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.step_rules import is_stricter, min_values


def _parameter_named(version: OperatorVersion, side: str, name: str) -> Parameter:
    parameters = version.inputs if side == "input" else version.outputs
    return next(each for each in parameters if each.name == name)


def _is_required(change: Change, version: OperatorVersion) -> bool:
    side = change.kind.partition("_")[0]
    return min_values(_parameter_named(version, side, change.subject)) > 0


def _is_added(change: Change, side: str) -> bool:
    return change.kind == f"{side}_added"


def _is_moved(change: Change, versions: Versions) -> bool:
    """Return whether a parameter was moved, by an insertion or a reordering, and not renamed."""
    if change.kind not in ("input_name", "output_name"):
        return False
    side = change.kind.partition("_")[0]
    old, new = ({each.name for each in _parameters(v, side)} for v in (versions.old, versions.new))
    return change.old in new or change.new in old


def _is_rearranged(change: Change, versions: Versions) -> bool:
    """Return whether nodes of the old version are invalid in the new one, and the step rewrites them."""
    if not versions.is_rewritten:
        return False
    if change.kind in ("input_removed", "output_removed"):
        return _is_required(change, versions.old)
    if change.kind in ("input_option", "output_option"):
        return is_stricter(change) and _has_other_at_position(change, versions)
    return _is_moved(change, versions)


def _has_other_at_position(change: Change, versions: Versions) -> bool:
    """Return whether the old version has a different parameter at this position."""
    side = change.kind.partition("_")[0]
    old, new = ([each.name for each in _parameters(v, side)] for v in (versions.old, versions.new))
    return old[new.index(change.subject)] != change.subject


def _parameters(version: OperatorVersion, side: str) -> tuple[Parameter, ...]:
    return version.inputs if side == "input" else version.outputs


PARAMETER_RULES = (
    ChangeRule(
        "attribute-became-input",
        ChangeClass.RE_ENCODES,
        "An attribute became an input, so that its value can be computed.",
        lambda change, versions: (
            _is_added(change, "input") and change.subject in versions.converted_attributes
        ),
    ),
    ChangeRule(
        "parameters-rearranged",
        ChangeClass.RE_ENCODES,
        "Inputs or outputs were moved or removed, and nodes are rewritten in both directions.",
        _is_rearranged,
    ),
    ChangeRule(
        "required-input-supplied",
        ChangeClass.RE_ENCODES,
        "A new input is required, and the step provides its value for older nodes.",
        lambda change, versions: (
            _is_added(change, "input") and _is_required(change, versions.new) and versions.is_rewritten
        ),
    ),
    ChangeRule(
        "required-input-added",
        ChangeClass.INCOMPATIBLE,
        "A new input is required, so every older node is illegal.",
        lambda change, versions: _is_added(change, "input") and _is_required(change, versions.new),
    ),
    ChangeRule(
        "input-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "A new input is optional; nodes without it keep their meaning.",
        of_kind("input_added"),
    ),
    ChangeRule(
        "input-became-attribute",
        ChangeClass.RE_ENCODES,
        "An input became an attribute, so that its value can no longer be computed.",
        lambda change, versions: (
            change.kind == "input_removed" and change.subject in versions.converted_attributes
        ),
    ),
    ChangeRule(
        "required-input-removed",
        ChangeClass.INCOMPATIBLE,
        "A required input was removed, so every older node is illegal.",
        lambda change, versions: change.kind == "input_removed" and _is_required(change, versions.old),
    ),
    ChangeRule(
        "input-removed",
        ChangeClass.NARROWS,
        "A node with the input is no longer legal.",
        of_kind("input_removed"),
    ),
    ChangeRule(
        "required-output-added",
        ChangeClass.INCOMPATIBLE,
        "A new output is required, so every older node is illegal.",
        lambda change, versions: _is_added(change, "output") and _is_required(change, versions.new),
    ),
    ChangeRule(
        "output-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "A new output is optional.",
        of_kind("output_added"),
    ),
    ChangeRule(
        "required-output-removed",
        ChangeClass.INCOMPATIBLE,
        "A required output was removed, so every older node is illegal.",
        lambda change, versions: change.kind == "output_removed" and _is_required(change, versions.old),
    ),
    ChangeRule(
        "output-removed",
        ChangeClass.NARROWS,
        "A node with the output is no longer legal.",
        of_kind("output_removed"),
    ),
    ChangeRule(
        "parameters-reordered",
        ChangeClass.INCOMPATIBLE,
        "An input or output was moved, so that older nodes would bind it to a different value.",
        _is_moved,
    ),
    ChangeRule(
        "parameter-renamed",
        ChangeClass.DOCUMENTATION,
        "An input or output was renamed; nodes do not contain its name.",
        of_kind("input_name", "output_name"),
    ),
    ChangeRule(
        "parameter-demands-more",
        ChangeClass.NARROWS,
        "A node without the input or output, or with too few values for it, is no longer legal.",
        lambda change, _: change.kind in ("input_option", "output_option") and is_stricter(change),
    ),
    ChangeRule(
        "parameter-demands-less",
        ChangeClass.ADDS_BEHAVIOUR,
        "The input or output became optional, or accepts more values.",
        of_kind("input_option", "output_option"),
    ),
    ChangeRule(
        "types-added",
        ChangeClass.WIDENING,
        "The input or output accepts more types.",
        lambda change, _: change.kind in ("input_types", "output_types") and not change.old - change.new,
    ),
    ChangeRule(
        "types-removed",
        ChangeClass.NARROWS,
        "A node with one of the removed types is no longer legal.",
        of_kind("input_types", "output_types"),
    ),
)
