"""Rules for changes of attributes."""

from __future__ import annotations

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.rule import ChangeRule, Versions, of_kind
from opshift.registry.diff import Change
from opshift.registry.step_rules import loses_legal_values


def _is_replaced(change: Change, versions: Versions) -> bool:
    """Return whether attributes were replaced by other attributes and the step rewrites them."""
    old, new = versions.old.attributes.keys(), versions.new.attributes.keys()
    removed = old - new - versions.ignored - versions.converted_attributes
    return bool(versions.is_rewritten and removed and new - old)


def _is_required(change: Change, versions: Versions) -> bool:
    return versions.new.attributes[change.subject].required


def _loses_values(change: Change, versions: Versions) -> bool:
    return loses_legal_values(change, (versions.old, versions.new))


ATTRIBUTE_RULES = (
    ChangeRule(
        "attribute-became-input",
        ChangeClass.RE_ENCODES,
        "An attribute became an input, so that its value can be computed.",
        lambda change, versions: (
            change.kind == "attribute_removed" and change.subject in versions.converted_attributes
        ),
    ),
    ChangeRule(
        "attribute-without-effect-removed",
        ChangeClass.RE_ENCODES,
        "An attribute without any effect was removed; the step removes it from nodes.",
        lambda change, versions: change.kind == "attribute_removed" and change.subject in versions.ignored,
    ),
    ChangeRule(
        "attribute-renamed",
        ChangeClass.RE_ENCODES,
        "The attribute was renamed.",
        lambda change, versions: (
            change.kind in ("attribute_removed", "attribute_added") and change.subject in versions.renamed
        ),
    ),
    ChangeRule(
        "attributes-replaced",
        ChangeClass.RE_ENCODES,
        "Attributes were replaced by other attributes, and the step rewrites nodes in both directions.",
        lambda change, versions: (
            change.kind in ("attribute_removed", "attribute_added") and _is_replaced(change, versions)
        ),
    ),
    ChangeRule(
        "attribute-removed",
        ChangeClass.NARROWS,
        "A node with the attribute is no longer legal.",
        of_kind("attribute_removed"),
    ),
    ChangeRule(
        "input-became-attribute",
        ChangeClass.RE_ENCODES,
        "An input became an attribute, so that its value can no longer be computed.",
        lambda change, versions: (
            change.kind == "attribute_added" and change.subject in versions.converted_attributes
        ),
    ),
    ChangeRule(
        "required-attribute-supplied",
        ChangeClass.RE_ENCODES,
        "A new attribute is required, and the step provides its value for older nodes.",
        lambda change, versions: (
            change.kind == "attribute_added"
            and _is_required(change, versions)
            and (change.subject in versions.supplied_attributes or versions.is_rewritten)
        ),
    ),
    ChangeRule(
        "required-attribute-added",
        ChangeClass.INCOMPATIBLE,
        "A new attribute is required, so every older node is illegal.",
        lambda change, versions: change.kind == "attribute_added" and _is_required(change, versions),
    ),
    ChangeRule(
        "attribute-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "A new attribute is optional; nodes without it keep their meaning.",
        of_kind("attribute_added"),
    ),
    ChangeRule(
        "attribute-retyped",
        ChangeClass.RE_ENCODES,
        "The type of the attribute changed, and the step rewrites its value.",
        lambda change, versions: change.kind == "attribute_type" and versions.is_rewritten,
    ),
    ChangeRule(
        "attribute-type-changed",
        ChangeClass.INCOMPATIBLE,
        "The type of the attribute changed, and old values cannot be read.",
        of_kind("attribute_type"),
    ),
    ChangeRule(
        "default-changed",
        ChangeClass.CHANGES_DEFAULT,
        "The meaning of a node without the attribute changed.",
        of_kind("attribute_default"),
    ),
    ChangeRule(
        "attribute-became-required",
        ChangeClass.NARROWS,
        "A node without the attribute is no longer legal.",
        lambda change, _: change.kind == "attribute_required" and bool(change.new),
    ),
    ChangeRule(
        "attribute-became-optional",
        ChangeClass.ADDS_BEHAVIOUR,
        "The attribute became optional.",
        of_kind("attribute_required"),
    ),
    ChangeRule(
        "values-renamed",
        ChangeClass.RE_ENCODES,
        "Values of the attribute were renamed.",
        lambda change, versions: (
            change.kind == "attribute_values" and change.subject in versions.renamed_values
        ),
    ),
    ChangeRule(
        "values-removed",
        ChangeClass.NARROWS,
        "A node with one of the removed values is no longer legal.",
        lambda change, versions: change.kind == "attribute_values" and _loses_values(change, versions),
    ),
    ChangeRule(
        "values-added",
        ChangeClass.WIDENING,
        "The attribute accepts more values.",
        of_kind("attribute_values"),
    ),
)
