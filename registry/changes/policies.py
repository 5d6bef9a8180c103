"""Policies, which define the changes that require a new operator version, and compatibility modes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from opshift.registry.changes.classes import BACKWARD, FORWARD, ChangeClass

if TYPE_CHECKING:
    from opshift.registry.changes.classify import ClassifiedChange


class Policy(NamedTuple):
    """A named set of changes that are allowed in a published version; all others require a new version."""

    name: str
    purpose: str
    free_classes: frozenset[ChangeClass]
    free_rules: frozenset[str] = frozenset()

    def allows(self, change: ClassifiedChange) -> bool:
        """Return whether a published version may have this change."""
        return self.allows_rule(change.rule, change.change_class)

    def allows_rule(self, rule: str, change_class: ChangeClass) -> bool:
        """Return whether changes with this rule and class are allowed in a published version."""
        return change_class in self.free_classes or rule in self.free_rules


POLICIES: Final = {
    policy.name: policy
    for policy in (
        Policy(
            "onnx-strict",
            "ONNX's versioning rules: any change that affects nodes needs a new version, even an addition.",
            frozenset({ChangeClass.DOCUMENTATION}),
        ),
        Policy(
            "types-free",
            "Same as onnx-strict, but a published version may accept more input and output types.",
            frozenset({ChangeClass.DOCUMENTATION}),
            frozenset({"types-added"}),
        ),
        Policy(
            "additive-free",
            "A published version may change if every older node stays legal with the same meaning.",
            BACKWARD,
        ),
    )
}


class Mode(StrEnum):
    """The direction in which models must stay compatible between versions, named as in schema registries.

    Backward: a model of the older version is valid in the newer one. Forward: a model of the newer version is
    valid in the older one. Full: both. Transitive: across the whole history, not only adjacent versions.
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
        """Whether each version is compared with all earlier versions."""
        return self.endswith("-transitive")

    def allows(self, change: ClassifiedChange) -> bool:
        """Return whether a new version may have this change compared with an earlier version."""
        direction = self.removesuffix("-transitive")
        passes_up = direction not in ("backward", "full") or change.change_class in BACKWARD
        return passes_up and (direction not in ("forward", "full") or change.change_class in FORWARD)


def needs_new_version(changes: Iterable[ClassifiedChange], policy: Policy) -> bool:
    """Return whether the policy requires a new operator version for any of the changes."""
    return not all(policy.allows(each) for each in changes)
