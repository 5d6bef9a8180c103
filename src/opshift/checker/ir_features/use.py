"""Use of an IR feature by a model, and the obstacle to rewriting it for an older IR version."""

from typing import NamedTuple

from opshift.registry.ir_versions import ir_versions
from opshift.registry.steps import Allow

FIRST_IR_WITH_STANDALONE_INITIALIZERS = 4
"""First IR version in which an initializer does not have to be a graph input."""

STANDALONE = "standalone_initializers"


def since(feature: str) -> int:
    """Return the first IR version with a feature or an element type."""
    versions = ir_versions()
    return versions.features.get(feature) or versions.element_types[feature]


class Use(NamedTuple):
    """One use of a feature of `ir_versions.yaml` or an element type, with the remedy of the obstacle.

    Attributes:
        obstacle: the reason why it cannot be rewritten for an older IR version; empty if it can.
        allowance: the value of `allow` with which it is dropped.
    """

    feature: str
    place: str
    obstacle: str = ""
    remedy: str = ""
    allowance: Allow | None = None
