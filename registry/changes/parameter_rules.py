"""Changes of inputs and outputs."""

from __future__ import annotations

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.rule import ChangeRule, Versions, of_kind
from opshift.registry.diff import Change
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.rules import demands_more, least_values


def _named(version: OperatorVersion, side: str, name: str) -> Parameter:
    formals = version.inputs if side == "input" else version.outputs
    return next(each for each in formals if each.name == name)


def _is_demanded(change: Change, version: OperatorVersion) -> bool:
    side = change.kind.partition("_")[0]
    return least_values(_named(version, side, change.subject)) > 0


def _is_added(change: Change, side: str) -> bool:
    return change.kind == f"{side}_added"


def _is_moved(change: Change, versions: Versions) -> bool:
    """Whether a name stands at another place: it was not renamed, parameters were put in or reordered."""
    if change.kind not in ("input_name", "output_name"):
        return False
    side = change.kind.partition("_")[0]
    old, new = ({each.name for each in _formals(v, side)} for v in (versions.old, versions.new))
    return change.old in new or change.new in old


def _is_rearranged(change: Change, versions: Versions) -> bool:
    """Whether nodes of the old version cannot be meant, and the step rewrites them."""
    if not versions.is_rewritten:
        return False
    if change.kind in ("input_removed", "output_removed"):
        return _is_demanded(change, versions.old)
    if change.kind in ("input_option", "output_option"):
        return demands_more(change) and _has_moved(change, versions)
    return _is_moved(change, versions)


def _has_moved(change: Change, versions: Versions) -> bool:
    """Whether the parameter at this place was another."""
    side = change.kind.partition("_")[0]
    old, new = ([each.name for each in _formals(v, side)] for v in (versions.old, versions.new))
    return old[new.index(change.subject)] != change.subject


def _formals(version: OperatorVersion, side: str) -> tuple[Parameter, ...]:
    return version.inputs if side == "input" else version.outputs


PARAMETER_RULES = (
    ChangeRule(
        "attribute-became-input",
        ChangeClass.RE_ENCODES,
        "What was an attribute is an input, so that it may be computed.",
        lambda change, versions: _is_added(change, "input") and change.subject in versions.crossing,
    ),
    ChangeRule(
        "parameters-rearranged",
        ChangeClass.RE_ENCODES,
        "Inputs or outputs stand at other places or are gone, and nodes are rewritten either way.",
        _is_rearranged,
    ),
    ChangeRule(
        "required-input-supplied",
        ChangeClass.RE_ENCODES,
        "Every node has to feed a new input, and the step says what older nodes feed it.",
        lambda change, versions: (
            _is_added(change, "input") and _is_demanded(change, versions.new) and versions.is_rewritten
        ),
    ),
    ChangeRule(
        "required-input-added",
        ChangeClass.INCOMPATIBLE,
        "Every node has to feed a new input, so that no older node is legal.",
        lambda change, versions: _is_added(change, "input") and _is_demanded(change, versions.new),
    ),
    ChangeRule(
        "input-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "A node may feed a new input; one that does not means what it meant.",
        of_kind("input_added"),
    ),
    ChangeRule(
        "input-became-attribute",
        ChangeClass.RE_ENCODES,
        "What was an input is an attribute, and can be computed no longer.",
        lambda change, versions: change.kind == "input_removed" and change.subject in versions.crossing,
    ),
    ChangeRule(
        "required-input-removed",
        ChangeClass.INCOMPATIBLE,
        "Every older node feeds an input that there is no more, so that none is legal.",
        lambda change, versions: change.kind == "input_removed" and _is_demanded(change, versions.old),
    ),
    ChangeRule(
        "input-removed",
        ChangeClass.NARROWS,
        "A node that feeds the input is legal no longer.",
        of_kind("input_removed"),
    ),
    ChangeRule(
        "required-output-added",
        ChangeClass.INCOMPATIBLE,
        "Every node has to name a new output, so that no older node is legal.",
        lambda change, versions: _is_added(change, "output") and _is_demanded(change, versions.new),
    ),
    ChangeRule(
        "output-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "A node may ask for a new output.",
        of_kind("output_added"),
    ),
    ChangeRule(
        "required-output-removed",
        ChangeClass.INCOMPATIBLE,
        "Every older node names an output that there is no more, so that none is legal.",
        lambda change, versions: change.kind == "output_removed" and _is_demanded(change, versions.old),
    ),
    ChangeRule(
        "output-removed",
        ChangeClass.NARROWS,
        "A node that asks for the output is legal no longer.",
        of_kind("output_removed"),
    ),
    ChangeRule(
        "parameters-reordered",
        ChangeClass.INCOMPATIBLE,
        "An input or output stands at another place, where a node means another one by it.",
        _is_moved,
    ),
    ChangeRule(
        "parameter-renamed",
        ChangeClass.DOCUMENTATION,
        "An input or output has another name, which no node states.",
        of_kind("input_name", "output_name"),
    ),
    ChangeRule(
        "parameter-demands-more",
        ChangeClass.NARROWS,
        "A node that leaves the input or output out, or gives it fewer values, is legal no longer.",
        lambda change, _: change.kind in ("input_option", "output_option") and demands_more(change),
    ),
    ChangeRule(
        "parameter-demands-less",
        ChangeClass.ADDS_BEHAVIOUR,
        "A node may leave the input or output out, or give it more values.",
        of_kind("input_option", "output_option"),
    ),
    ChangeRule(
        "types-added",
        ChangeClass.WIDENING,
        "The input or output may have more types.",
        lambda change, _: change.kind in ("input_types", "output_types") and not change.old - change.new,
    ),
    ChangeRule(
        "types-removed",
        ChangeClass.NARROWS,
        "A node with one of the types is legal no longer.",
        of_kind("input_types", "output_types"),
    ),
)
