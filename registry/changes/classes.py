"""The classes of change, and which way each lets models pass."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ChangeClass(StrEnum):
    """What a change does to models, from the most harmless to the gravest."""

    DOCUMENTATION = "documentation"
    WIDENING = "widening"
    ADDS_BEHAVIOUR = "adds-behaviour"
    RE_ENCODES = "re-encodes"
    CHANGES_DEFAULT = "changes-default"
    NARROWS = "narrows"
    INCOMPATIBLE = "incompatible"
    REMOVAL = "removal"

    @property
    def gravity(self) -> int:
        """Its place in the list, from 0."""
        return list(ChangeClass).index(self)

    @property
    def meaning(self) -> str:
        """What it says, in a sentence."""
        return MEANINGS[self]


MEANINGS: Final = {
    ChangeClass.DOCUMENTATION: "Every node means what it meant; only the words are others.",
    ChangeClass.WIDENING: "More types or values are legal; every older node stays and means the same.",
    ChangeClass.ADDS_BEHAVIOUR: "There is more to ask for; every older node stays and means the same, and a "
    "newer one goes back if it asks for nothing new.",
    ChangeClass.RE_ENCODES: "The same is said in another form; nodes are rewritten either way.",
    ChangeClass.CHANGES_DEFAULT: "What is left out means something else; nodes have to spell it out.",
    ChangeClass.NARROWS: "Some older nodes are legal no longer; every newer one is legal in the old version.",
    ChangeClass.INCOMPATIBLE: "Nodes of one version are no nodes of the other.",
    ChangeClass.REMOVAL: "The operator is no longer to be used.",
}
BACKWARD: Final = frozenset(
    {ChangeClass.DOCUMENTATION, ChangeClass.WIDENING, ChangeClass.ADDS_BEHAVIOUR},
)
"""Classes under which a model of the old version is one of the new, as it is."""
FORWARD: Final = frozenset({ChangeClass.DOCUMENTATION, ChangeClass.NARROWS})
"""Classes under which a model of the new version is one of the old, as it is."""


def gravest(classes: list[ChangeClass]) -> ChangeClass:
    """The gravest of some; `documentation` of none."""
    return max(classes, key=lambda each: each.gravity, default=ChangeClass.DOCUMENTATION)
