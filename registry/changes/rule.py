"""Change rules, and the information that they read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from opshift.registry.changes.classes import ChangeClass
from opshift.registry.diff import Change
from opshift.registry.models import OperatorVersion
from opshift.registry.steps import (
    AddAttribute,
    AnyVerb,
    AttributeToInput,
    IgnoreAttribute,
    InputToAttribute,
    Refuse,
    RenameAttribute,
    RenameValue,
    Step,
    StepAction,
)


@dataclass(frozen=True)
class Versions:
    """The two versions of a change, and the step between them if one is declared."""

    old: OperatorVersion
    new: OperatorVersion
    step: Step | None

    @cached_property
    def verbs(self) -> tuple[AnyVerb, ...]:
        """The verbs of the upgrade."""
        return self.step.up if self.step and isinstance(self.step.up, tuple) else ()

    def answer(self, way: Literal["up", "down"]) -> StepAction:
        """Return the step's conversion in a direction; an undeclared direction counts as `compatible`."""
        answer = getattr(self.step, way, None)
        return "compatible" if answer is None else answer

    @cached_property
    def is_rewritten(self) -> bool:
        """Whether the step rewrites nodes on upgrade and does not refuse a downgrade."""
        up, down = self.answer("up"), self.answer("down")
        return _rewrites(up) and not isinstance(down, Refuse)

    @cached_property
    def ignored(self) -> frozenset[str]:
        """Attributes without any effect on the result."""
        return frozenset(verb.attribute for verb in self.verbs if isinstance(verb, IgnoreAttribute))

    @cached_property
    def renamed(self) -> frozenset[str]:
        """Renamed attributes, under both names."""
        verbs = [verb for verb in self.verbs if isinstance(verb, RenameAttribute)]
        return frozenset(name for verb in verbs for name in (verb.attribute, verb.to))

    @cached_property
    def renamed_values(self) -> frozenset[str]:
        """Attributes with renamed values."""
        return frozenset(verb.attribute for verb in self.verbs if isinstance(verb, RenameValue))

    @cached_property
    def supplied_attributes(self) -> frozenset[str]:
        """Attributes that the step adds."""
        return frozenset(verb.attribute for verb in self.verbs if isinstance(verb, AddAttribute))

    @cached_property
    def converted_attributes(self) -> frozenset[str]:
        """Names, in both versions, of attributes that become inputs and of inputs that become attributes."""
        declared = {name for verb in self.verbs for name in _converted_names(verb)}
        return frozenset(declared | _matching_names(self.old, self.new) | _matching_names(self.new, self.old))


class ChangeRule(NamedTuple):
    """A kind of change and its effect on models."""

    id: str
    change_class: ChangeClass
    purpose: str
    """One sentence with the condition and its consequence."""
    applies: Callable[[Change, Versions], bool]


def of_kind(*kinds: str) -> Callable[[Change, Versions], bool]:
    """Return a predicate that accepts every change of some kinds."""
    return lambda change, _: change.kind in kinds


def _rewrites(answer: StepAction) -> bool:
    return answer == "adapter" or isinstance(answer, tuple)


def _converted_names(verb: AnyVerb) -> tuple[str, ...]:
    if isinstance(verb, AttributeToInput):
        return (verb.attribute, verb.input_name)
    if isinstance(verb, InputToAttribute):
        return (verb.input, verb.attribute_name)
    return ()


def _matching_names(old: OperatorVersion, new: OperatorVersion) -> set[str]:
    """Return the names of attributes of `old` that are inputs of `new`, and the names of these inputs."""
    removed = [name for name in old.attributes if name not in new.attributes]
    inputs = {each.name for each in old.inputs}
    added = [each.name for each in new.inputs if each.name not in inputs]
    return {
        name
        for attribute in removed
        for parameter in added
        if _is_same_name(attribute, parameter)
        for name in (attribute, parameter)
    }


def _is_same_name(attribute: str, parameter: str) -> bool:
    """Return whether the names match: `axes` and `axes`, `k` and `K`, `value` and `constant_value`."""
    one, other = attribute.lower(), parameter.lower()
    return one == other or other.endswith(f"_{one}") or one.endswith(f"_{other}")
