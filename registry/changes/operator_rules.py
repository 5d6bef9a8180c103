"""Rules for changes of a whole operator, and of its texts."""

from __future__ import annotations

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.rule import ChangeRule, Versions, of_kind
from opshift.registry.diff import Change
from opshift.registry.steps import Refuse


def _is_declared_same(change: Change, versions: Versions) -> bool:
    """Return whether the step declares that nodes need no conversion in either direction."""
    step = versions.step
    return step is not None and step.up == "compatible" and step.down in ("compatible", None)


OPERATOR_RULES = (
    ChangeRule(
        "determinism-stated",
        ChangeClass.DOCUMENTATION,
        "The definition now specifies whether equal inputs produce equal outputs, or no longer does.",
        lambda change, _: change.kind == "determinism" and "unknown" in (change.old, change.new),
    ),
    ChangeRule(
        "determinism-changed",
        ChangeClass.INCOMPATIBLE,
        "A deterministic operator became non-deterministic, or the reverse.",
        of_kind("determinism"),
    ),
    ChangeRule(
        "experiment-ended",
        ChangeClass.DOCUMENTATION,
        "An experimental operator became stable.",
        lambda change, _: change.kind == "status" and change.new == "STABLE",
    ),
    ChangeRule(
        "stability-lost",
        ChangeClass.INCOMPATIBLE,
        "A stable operator became experimental, so that its meaning may change for existing models.",
        of_kind("status"),
    ),
    ChangeRule(
        "operator-deprecated",
        ChangeClass.REMOVAL,
        "The operator was deprecated; models must use its replacement.",
        lambda change, _: change.kind == "deprecation" and bool(change.new),
    ),
    ChangeRule(
        "operator-restored",
        ChangeClass.ADDS_BEHAVIOUR,
        "The deprecation of the operator was withdrawn.",
        of_kind("deprecation"),
    ),
    ChangeRule(
        "operator-removed",
        ChangeClass.REMOVAL,
        "The operator was removed from its operator set.",
        lambda change, _: change.kind == "removal" and change.new is not None,
    ),
    ChangeRule(
        "removal-withdrawn",
        ChangeClass.ADDS_BEHAVIOUR,
        "The removal of an operator from its operator set was withdrawn.",
        of_kind("removal"),
    ),
    ChangeRule(
        "version-deleted",
        ChangeClass.REMOVAL,
        "A published version was deleted, so models of its opsets have an undefined operator.",
        of_kind("version_deleted"),
    ),
    ChangeRule(
        "version-inserted",
        ChangeClass.INCOMPATIBLE,
        "A version was added to a released opset, where models refer to a different version.",
        of_kind("version_inserted"),
    ),
    ChangeRule(
        "operator-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "An operator was added to the operator set.",
        of_kind("operator_added"),
    ),
    ChangeRule(
        "type-rule-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "An attribute can now set the type of an output.",
        lambda change, _: change.kind == "output_type_source" and change.old == (None, None),
    ),
    ChangeRule(
        "type-rule-changed",
        ChangeClass.INCOMPATIBLE,
        "The attribute that sets an output's type changed, or the type without this attribute did.",
        of_kind("input_type_source", "output_type_source"),
    ),
    ChangeRule(
        "body-rewritten",
        ChangeClass.DOCUMENTATION,
        "The function body changed, and the step declares that the result is the same.",
        lambda change, versions: change.kind == "body" and _is_declared_same(change, versions),
    ),
    ChangeRule(
        "body-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "The operator became a function: runtimes without a kernel can execute its body.",
        lambda change, versions: change.kind == "body" and versions.old.body is None,
    ),
    ChangeRule(
        "body-removed",
        ChangeClass.NARROWS,
        "The operator is no longer a function: runtimes that executed its body need a kernel.",
        lambda change, versions: change.kind == "body" and versions.new.body is None,
    ),
    ChangeRule(
        "body-changed",
        ChangeClass.INCOMPATIBLE,
        "The function body changed, which defines the result of the operator.",
        of_kind("body"),
    ),
    ChangeRule(
        "description-changed",
        ChangeClass.DOCUMENTATION,
        "The text of the description or of the meaning of an absent attribute changed.",
        of_kind("description", "attribute_absent", "deprecation_text"),
    ),
    ChangeRule(
        "facts-changed",
        ChangeClass.DOCUMENTATION,
        "Data that the registry adds changed: shape rule, bridge, differentiation or type variables.",
        of_kind("shape", "bridge", "type_variable", "input_differentiation", "output_differentiation"),
    ),
    ChangeRule(
        "conversion-changed",
        ChangeClass.DOCUMENTATION,
        "The conversion of nodes from the previous version or back changed.",
        of_kind("step", "before"),
    ),
)


def _is_upgrade_refused(change: Change, versions: Versions) -> bool:
    return change.kind == "meaning" and isinstance(versions.answer("up"), Refuse)


MEANING_RULES = (
    ChangeRule(
        "meaning-changed",
        ChangeClass.INCOMPATIBLE,
        "The meaning of a node changed, and nodes cannot be converted in either direction.",
        lambda change, versions: (
            _is_upgrade_refused(change, versions) and isinstance(versions.answer("down"), Refuse)
        ),
    ),
    ChangeRule(
        "behaviour-removed",
        ChangeClass.NARROWS,
        "The new version cannot express the meaning of some older nodes.",
        _is_upgrade_refused,
    ),
    ChangeRule(
        "meaning-re-encoded",
        ChangeClass.RE_ENCODES,
        "The meaning of a node changed, and the step expresses the old meaning in the new version.",
        of_kind("meaning"),
    ),
    ChangeRule(
        "behaviour-added",
        ChangeClass.ADDS_BEHAVIOUR,
        "The same signature allows nodes with a meaning that the old version cannot express.",
        of_kind("behaviour"),
    ),
    ChangeRule(
        "text-clarified",
        ChangeClass.DOCUMENTATION,
        "A new version was published, and its nodes keep their meaning.",
        of_kind("text"),
    ),
)
