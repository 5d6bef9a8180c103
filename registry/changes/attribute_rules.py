"""Changes of attributes."""

from __future__ import annotations

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.rule import ChangeRule, Versions, of_kind
from opshift.registry.diff import Change
from opshift.registry.rules import legal_values_lost


def _is_replaced(change: Change, versions: Versions) -> bool:
    """Whether attributes went and others came, and the step rewrites one into the other."""
    old, new = versions.old.attributes.keys(), versions.new.attributes.keys()
    went = old - new - versions.ignored - versions.crossing
    return bool(versions.is_rewritten and went and new - old)


def _is_required(change: Change, versions: Versions) -> bool:
    return versions.new.attributes[change.subject].required


def _loses_values(change: Change, versions: Versions) -> bool:
    return legal_values_lost(change, (versions.old, versions.new))


ATTRIBUTE_RULES = (
    ChangeRule(
        "attribute-became-input",
        ChangeClass.RE_ENCODES,
        "What was an attribute is an input, so that it may be computed.",
        lambda change, versions: change.kind == "attribute_removed" and change.subject in versions.crossing,
    ),
    ChangeRule(
        "attribute-without-effect-removed",
        ChangeClass.RE_ENCODES,
        "An attribute that never changed a result is gone, and is taken off the nodes that state it.",
        lambda change, versions: change.kind == "attribute_removed" and change.subject in versions.ignored,
    ),
    ChangeRule(
        "attribute-renamed",
        ChangeClass.RE_ENCODES,
        "The attribute has another name.",
        lambda change, versions: (
            change.kind in ("attribute_removed", "attribute_added") and change.subject in versions.renamed
        ),
    ),
    ChangeRule(
        "attributes-replaced",
        ChangeClass.RE_ENCODES,
        "Attributes went and others came, and each way one is rewritten into the other.",
        lambda change, versions: (
            change.kind in ("attribute_removed", "attribute_added") and _is_replaced(change, versions)
        ),
    ),
    ChangeRule(
        "attribute-removed",
        ChangeClass.NARROWS,
        "A node that states the attribute is legal no longer.",
        of_kind("attribute_removed"),
    ),
    ChangeRule(
        "input-became-attribute",
        ChangeClass.RE_ENCODES,
        "What was an input is an attribute, and can be computed no longer.",
        lambda change, versions: change.kind == "attribute_added" and change.subject in versions.crossing,
    ),
    ChangeRule(
        "required-attribute-supplied",
        ChangeClass.RE_ENCODES,
        "Every node has to state a new attribute, and the step says what older nodes state.",
        lambda change, versions: (
            change.kind == "attribute_added"
            and _is_required(change, versions)
            and (change.subject in versions.supplied or versions.is_rewritten)
        ),
    ),
    ChangeRule(
        "required-attribute-added",
        ChangeClass.INCOMPATIBLE,
        "Every node has to state a new attribute, so that no older node is legal.",
        lambda change, versions: change.kind == "attribute_added" and _is_required(change, versions),
    ),
    ChangeRule(
        "attribute-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "A node may state a new attribute; one that does not means what it meant.",
        of_kind("attribute_added"),
    ),
    ChangeRule(
        "attribute-retyped",
        ChangeClass.RE_ENCODES,
        "The attribute is of another type, and the step rewrites one into the other.",
        lambda change, versions: change.kind == "attribute_type" and versions.is_rewritten,
    ),
    ChangeRule(
        "attribute-type-changed",
        ChangeClass.INCOMPATIBLE,
        "The attribute is of another type, and cannot be read as the old one.",
        of_kind("attribute_type"),
    ),
    ChangeRule(
        "default-changed",
        ChangeClass.CHANGES_DEFAULT,
        "A node that leaves the attribute out means something else.",
        of_kind("attribute_default"),
    ),
    ChangeRule(
        "attribute-became-required",
        ChangeClass.NARROWS,
        "A node that leaves the attribute out is legal no longer.",
        lambda change, _: change.kind == "attribute_required" and bool(change.new),
    ),
    ChangeRule(
        "attribute-became-optional",
        ChangeClass.ADDS_BEHAVIOUR,
        "A node may leave the attribute out.",
        of_kind("attribute_required"),
    ),
    ChangeRule(
        "values-renamed",
        ChangeClass.RE_ENCODES,
        "The attribute's values are spelled in another way.",
        lambda change, versions: change.kind == "attribute_values" and change.subject in versions.revalued,
    ),
    ChangeRule(
        "values-removed",
        ChangeClass.NARROWS,
        "A node that holds one of the values is legal no longer.",
        lambda change, versions: change.kind == "attribute_values" and _loses_values(change, versions),
    ),
    ChangeRule(
        "values-added",
        ChangeClass.WIDENING,
        "The attribute may hold more values.",
        of_kind("attribute_values"),
    ),
)
