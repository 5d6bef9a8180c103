"""Classes of definition changes, the rules of each class, and the classes that keep models compatible."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class ChangeClass(StrEnum):
    """The effect of a change on models, from the most harmless to the most severe."""

    DOCUMENTATION = "documentation"
    WIDENING = "widening"
    ADDS_BEHAVIOUR = "adds-behaviour"
    RE_ENCODES = "re-encodes"
    CHANGES_DEFAULT = "changes-default"
    NARROWS = "narrows"
    INCOMPATIBLE = "incompatible"
    REMOVAL = "removal"

    @property
    def meaning(self) -> str:
        """Sentence that describes the class."""
        return MEANINGS[self]


MEANINGS: Final = {
    ChangeClass.DOCUMENTATION: "Only the text changed; every node keeps its meaning.",
    ChangeClass.WIDENING: "More types or values are legal; every older node keeps its meaning.",
    ChangeClass.ADDS_BEHAVIOUR: "There are new features; every older node keeps its meaning, and a newer "
    "node can be downgraded if it uses none of them.",
    ChangeClass.RE_ENCODES: "The encoding of nodes changed; nodes are rewritten in both directions.",
    ChangeClass.CHANGES_DEFAULT: "A default changed; nodes that rely on it must set the value explicitly.",
    ChangeClass.NARROWS: "Some older nodes are no longer legal; every newer one is legal in the old version.",
    ChangeClass.INCOMPATIBLE: "Nodes of one version are not valid in the other.",
    ChangeClass.REMOVAL: "The operator must no longer be used.",
}

BACKWARD: Final = frozenset({ChangeClass.DOCUMENTATION, ChangeClass.WIDENING, ChangeClass.ADDS_BEHAVIOUR})
"""Classes under which a model of the old version is valid unchanged in the new version."""

FORWARD: Final = frozenset({ChangeClass.DOCUMENTATION, ChangeClass.NARROWS})
"""Classes under which a model of the new version is valid unchanged in the old version."""


class ChangeRule(NamedTuple):
    """A kind of change and its effect on models."""

    id: str
    change_class: ChangeClass
    purpose: str
    """One sentence that describes the change and its consequence."""


_PURPOSES: Final = {
    ChangeClass.DOCUMENTATION: {
        "parameter-renamed": "An input or output was renamed; nodes do not contain its name.",
        "determinism-stated": "Whether equal inputs produce equal outputs became known, or unknown.",
        "experiment-ended": "An experimental operator became stable.",
        "body-added": "The operator became a function: runtimes without a kernel can execute its body.",
        "body-rewritten": "The function body changed, and the step declares that the result is the same.",
        "description-changed": "A description, or the text about an absent attribute, changed.",
        "facts-changed": "Records of shapes, gradients or type variables changed; nodes keep their meaning.",
        "conversion-changed": "The conversion of nodes from the previous version or back changed.",
        "text-clarified": "A new version was published, and its nodes keep their meaning.",
    },
    ChangeClass.WIDENING: {
        "values-added": "The attribute accepts more values.",
        "types-added": "The input or output accepts more types.",
        "type-variables-split": "Inputs and outputs of one type variable may now have different types.",
        "attribute-group-removed": "The requirement to set exactly one attribute of a group was removed.",
    },
    ChangeClass.ADDS_BEHAVIOUR: {
        "attribute-added": "A new attribute is optional; nodes without it keep their meaning.",
        "attribute-became-optional": "The attribute became optional.",
        "input-added": "A new input is optional; nodes without it keep their meaning.",
        "output-added": "A new output is optional.",
        "parameter-demands-less": "The input or output became optional, or accepts more values.",
        "operator-restored": "The deprecation of the operator was withdrawn.",
        "removal-withdrawn": "The removal of an operator from its operator set was withdrawn.",
        "operator-added": "An operator was added to the operator set.",
        "type-rule-added": "An attribute can now set the type of an output.",
        "behaviour-added": "The signature allows nodes with a meaning that the old version cannot express.",
    },
    ChangeClass.RE_ENCODES: {
        "attribute-became-input": "An attribute became an input, so that its value can be computed.",
        "attribute-without-effect-removed": "An attribute without any effect was removed, also from nodes.",
        "attribute-renamed": "The attribute was renamed.",
        "attributes-replaced": "Attributes were replaced; the step rewrites nodes in both directions.",
        "input-became-attribute": "An input became an attribute, so its value must be constant.",
        "required-attribute-supplied": "A new attribute is required; the step provides it for older nodes.",
        "attribute-retyped": "The type of the attribute changed, and the step rewrites its value.",
        "values-renamed": "Values of the attribute were renamed.",
        "parameters-rearranged": "Inputs or outputs were moved or removed; the step rewrites nodes.",
        "required-input-supplied": "A new input is required; the step provides it for older nodes.",
        "meaning-re-encoded": "The meaning of a node changed; the new version can express the old one.",
    },
    ChangeClass.CHANGES_DEFAULT: {"default-changed": "The meaning of a node without the attribute changed."},
    ChangeClass.NARROWS: {
        "attribute-removed": "A node with the attribute is no longer legal.",
        "attribute-became-required": "A node without the attribute is no longer legal.",
        "values-removed": "A node with one of the removed values is no longer legal.",
        "input-removed": "A node with the input is no longer legal.",
        "output-removed": "A node with the output is no longer legal.",
        "parameter-demands-more": "A node without the parameter, or with too few values, is no longer legal.",
        "types-removed": "A node with one of the removed types is no longer legal.",
        "type-variables-merged": "A node with different types for one type variable is no longer legal.",
        "attribute-group-added": "A node that sets none or several attributes of a group is no longer legal.",
        "body-removed": "The operator is no longer a function: runtimes need a kernel.",
        "behaviour-removed": "The new version cannot express the meaning of some older nodes.",
    },
    ChangeClass.INCOMPATIBLE: {
        "required-attribute-added": "A new attribute is required, so every older node is illegal.",
        "attribute-type-changed": "The type of the attribute changed, and old values cannot be read.",
        "required-input-added": "A new input is required, so every older node is illegal.",
        "required-input-removed": "A required input was removed, so every older node is illegal.",
        "required-output-added": "A new output is required, so every older node is illegal.",
        "required-output-removed": "A required output was removed, so every older node is illegal.",
        "parameters-reordered": "An input or output was moved: older nodes bind it to a different value.",
        "determinism-changed": "A deterministic operator became non-deterministic, or the reverse.",
        "stability-lost": "A stable operator became experimental: its meaning may change.",
        "version-inserted": "A version was added to a released opset, where models use a different one.",
        "type-rule-changed": "The attribute that sets an output's type changed, or the type if it is absent.",
        "body-changed": "The function body, which defines the result of the operator, changed.",
        "meaning-changed": "The meaning changed, and nodes cannot be converted in either direction.",
    },
    ChangeClass.REMOVAL: {
        "operator-deprecated": "The operator was deprecated; models must use its replacement.",
        "operator-removed": "The operator was removed from its operator set.",
        "version-deleted": "A published version was deleted: models of its opsets become invalid.",
    },
}
"""The `purpose` of each `ChangeRule`, by class and rule id."""

CHANGE_RULES: Final = {
    rule: ChangeRule(rule, change_class, purpose)
    for change_class, purposes in _PURPOSES.items()
    for rule, purpose in purposes.items()
}
