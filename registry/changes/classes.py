"""Classes of changes, and the direction in which models stay compatible under each."""

from enum import StrEnum
from typing import Final


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
        """A sentence that describes the class."""
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
