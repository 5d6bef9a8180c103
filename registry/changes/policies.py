"""Which changes ask for a new version, and which way models have to pass: both are chosen, not given."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from opshift.registry.changes.classes import BACKWARD, FORWARD, ChangeClass

if TYPE_CHECKING:
    from opshift.registry.changes.classify import Classified


class Policy(NamedTuple):
    """A named set of changes that a published version may take in place; all others ask for a new one."""

    name: str
    purpose: str
    free_classes: frozenset[ChangeClass]
    free_rules: frozenset[str] = frozenset()

    def allows(self, change: Classified) -> bool:
        """Whether a published version may change like this."""
        return self.frees(change.rule, change.change_class)

    def frees(self, rule: str, change_class: ChangeClass) -> bool:
        """Whether changes that a rule classifies are free."""
        return change_class in self.free_classes or rule in self.free_rules


POLICIES: Final = {
    policy.name: policy
    for policy in (
        Policy(
            "onnx-strict",
            "ONNX's versioning page: whatever a node can tell asks for a new version, also what only adds.",
            frozenset({ChangeClass.DOCUMENTATION}),
        ),
        Policy(
            "types-free",
            "As onnx-strict, but inputs and outputs may take more types in place.",
            frozenset({ChangeClass.DOCUMENTATION}),
            frozenset({"types-added"}),
        ),
        Policy(
            "additive-free",
            "Whatever leaves every older node legal with the same meaning may change in place.",
            BACKWARD,
        ),
    )
}


class Mode(StrEnum):
    """Which way models have to pass between versions, as schema registries name it.

    Backward: a model of the older version is one of the newer. Forward: a model of the newer version is one
    of the older. Full: both. Transitive: not only between neighbours, but over the whole history.
    """

    NONE = "none"
    BACKWARD = "backward"
    FORWARD = "forward"
    FULL = "full"
    BACKWARD_TRANSITIVE = "backward-transitive"
    FORWARD_TRANSITIVE = "forward-transitive"
    FULL_TRANSITIVE = "full-transitive"

    @property
    def is_transitive(self) -> bool:
        """Whether each version is compared with all before it."""
        return self.endswith("-transitive")

    def allows(self, change: Classified) -> bool:
        """Whether a new version may differ like this from the one that it is compared with."""
        way = self.removesuffix("-transitive")
        passes_up = way not in ("backward", "full") or change.change_class in BACKWARD
        return passes_up and (way not in ("forward", "full") or change.change_class in FORWARD)


def needs_new_version(changes: Iterable[Classified], policy: Policy) -> bool:
    """Whether some of the changes ask for a new version."""
    return not all(policy.allows(each) for each in changes)
