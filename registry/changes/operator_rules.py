"""Changes of an operator as a whole, and of its words."""

from __future__ import annotations

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.rule import ChangeRule, Versions, of_kind
from opshift.registry.diff import Change


def _is_declared_same(change: Change, versions: Versions) -> bool:
    """Whether a person said that nodes need no change either way."""
    step = versions.step
    return step is not None and step.up == "compatible" and step.down in ("compatible", None)


OPERATOR_RULES = (
    ChangeRule(
        "determinism-stated",
        ChangeClass.DOCUMENTATION,
        "Whether equal inputs give equal outputs is said, or is said no longer.",
        lambda change, _: change.kind == "determinism" and "unknown" in (change.old, change.new),
    ),
    ChangeRule(
        "determinism-changed",
        ChangeClass.INCOMPATIBLE,
        "Equal inputs gave equal outputs and do so no longer, or the other way round.",
        of_kind("determinism"),
    ),
    ChangeRule(
        "experiment-ended",
        ChangeClass.DOCUMENTATION,
        "An experimental operator is stable.",
        lambda change, _: change.kind == "status" and change.new == "STABLE",
    ),
    ChangeRule(
        "stability-lost",
        ChangeClass.INCOMPATIBLE,
        "A stable operator is experimental, and may change under the models that use it.",
        of_kind("status"),
    ),
    ChangeRule(
        "operator-deprecated",
        ChangeClass.REMOVAL,
        "The operator is deprecated: its replacement is to be used.",
        lambda change, _: change.kind == "deprecation" and bool(change.new),
    ),
    ChangeRule(
        "operator-restored",
        ChangeClass.ADDS_BEHAVIOUR,
        "The operator was deprecated and may be used again.",
        of_kind("deprecation"),
    ),
    ChangeRule(
        "operator-removed",
        ChangeClass.REMOVAL,
        "The operator is taken out of its set.",
        lambda change, _: change.kind == "removal" and change.new is not None,
    ),
    ChangeRule(
        "removal-withdrawn",
        ChangeClass.ADDS_BEHAVIOUR,
        "An operator that was taken out of its set is in it again.",
        of_kind("removal"),
    ),
    ChangeRule(
        "version-deleted",
        ChangeClass.REMOVAL,
        "A published version is not there any more, and models of its opsets name nothing.",
        of_kind("version_deleted"),
    ),
    ChangeRule(
        "version-inserted",
        ChangeClass.INCOMPATIBLE,
        "A version came into an opset that was released without it, where models mean another one.",
        of_kind("version_inserted"),
    ),
    ChangeRule(
        "operator-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "The set has an operator that it had not.",
        of_kind("operator_added"),
    ),
    ChangeRule(
        "type-rule-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "An attribute may name the type of an output.",
        lambda change, _: change.kind == "output_type_source" and change.old == (None, None),
    ),
    ChangeRule(
        "type-rule-changed",
        ChangeClass.INCOMPATIBLE,
        "An output takes its type from another attribute, or has another without it.",
        of_kind("input_type_source", "output_type_source"),
    ),
    ChangeRule(
        "body-rewritten",
        ChangeClass.DOCUMENTATION,
        "The function's body is another, and computes the same, as the step declares.",
        lambda change, versions: change.kind == "body" and _is_declared_same(change, versions),
    ),
    ChangeRule(
        "body-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "The operator is a function: what has no kernel of its own can run its body.",
        lambda change, versions: change.kind == "body" and versions.old.body is None,
    ),
    ChangeRule(
        "body-removed",
        ChangeClass.NARROWS,
        "The operator is a function no longer: what ran its body has to know it.",
        lambda change, versions: change.kind == "body" and versions.new.body is None,
    ),
    ChangeRule(
        "body-changed",
        ChangeClass.INCOMPATIBLE,
        "The function's body, which says what the operator computes, is another.",
        of_kind("body"),
    ),
    ChangeRule(
        "description-changed",
        ChangeClass.DOCUMENTATION,
        "The description, or what leaving an attribute out means, is said in other words.",
        of_kind("description", "attribute_absent", "deprecation_text"),
    ),
    ChangeRule(
        "facts-changed",
        ChangeClass.DOCUMENTATION,
        "What the registry adds is another: shape rule, types of equal results, differentiation, variables.",
        of_kind("shape", "bridge", "type_variable", "input_differentiation", "output_differentiation"),
    ),
    ChangeRule(
        "conversion-changed",
        ChangeClass.DOCUMENTATION,
        "How nodes are converted from the version before, or back, is answered in another way.",
        of_kind("step", "before"),
    ),
)
