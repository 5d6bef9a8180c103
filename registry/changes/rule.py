"""What a change rule is, and what it may look at."""

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
    Answer,
    AnyVerb,
    AttributeToInput,
    IgnoreAttribute,
    InputToAttribute,
    Refuse,
    RenameAttribute,
    RenameValue,
    Step,
)


@dataclass(frozen=True)
class Versions:
    """The two sides of a change, and the step between them if one is declared."""

    old: OperatorVersion
    new: OperatorVersion
    step: Step | None

    @cached_property
    def verbs(self) -> tuple[AnyVerb, ...]:
        """What the step does on the way up."""
        return self.step.up if self.step and isinstance(self.step.up, tuple) else ()

    def answer(self, way: Literal["up", "down"]) -> Answer:
        """How the step answers a direction; what is not answered is taken to need nothing."""
        answer = getattr(self.step, way, None)
        return "compatible" if answer is None else answer

    @cached_property
    def is_rewritten(self) -> bool:
        """Whether the step rewrites nodes on the way up and has an answer for the way down."""
        up, down = self.answer("up"), self.answer("down")
        return _rewrites(up) and not isinstance(down, Refuse)

    @cached_property
    def ignored(self) -> frozenset[str]:
        """Attributes that never changed a result."""
        return frozenset(verb.attribute for verb in self.verbs if isinstance(verb, IgnoreAttribute))

    @cached_property
    def renamed(self) -> frozenset[str]:
        """Attributes that are renamed, by both names."""
        verbs = [verb for verb in self.verbs if isinstance(verb, RenameAttribute)]
        return frozenset(name for verb in verbs for name in (verb.attribute, verb.to))

    @cached_property
    def revalued(self) -> frozenset[str]:
        """Attributes whose values are renamed."""
        return frozenset(verb.attribute for verb in self.verbs if isinstance(verb, RenameValue))

    @cached_property
    def supplied(self) -> frozenset[str]:
        """Attributes that the step writes."""
        return frozenset(verb.attribute for verb in self.verbs if isinstance(verb, AddAttribute))

    @cached_property
    def crossing(self) -> frozenset[str]:
        """The names, on both sides, of attributes that become inputs and inputs that become attributes."""
        declared = {name for verb in self.verbs for name in _crossing(verb)}
        return frozenset(declared | _met(self.old, self.new) | _met(self.new, self.old))


class ChangeRule(NamedTuple):
    """One kind of change, and what it does to models."""

    id: str
    change_class: ChangeClass
    purpose: str
    """When it applies and what follows, in a sentence."""
    applies: Callable[[Change, Versions], bool]


def of_kind(*kinds: str) -> Callable[[Change, Versions], bool]:
    """Applies to every change of some kinds."""
    return lambda change, _: change.kind in kinds


def _rewrites(answer: Answer) -> bool:
    return answer == "adapter" or isinstance(answer, tuple)


def _crossing(verb: AnyVerb) -> tuple[str, ...]:
    if isinstance(verb, AttributeToInput):
        return (verb.attribute, verb.input_name)
    if isinstance(verb, InputToAttribute):
        return (verb.input, verb.attribute_name)
    return ()


def _met(old: OperatorVersion, new: OperatorVersion) -> set[str]:
    """The names of attributes of one version that the other has as an input, and of those inputs."""
    gone = [name for name in old.attributes if name not in new.attributes]
    inputs = {each.name for each in old.inputs}
    came = [each.name for each in new.inputs if each.name not in inputs]
    return {name for lost in gone for found in came if _same(lost, found) for name in (lost, found)}


def _same(attribute: str, parameter: str) -> bool:
    """`axes` and `axes`, `k` and `K`, `value` and `constant_value`."""
    one, other = attribute.lower(), parameter.lower()
    return one == other or other.endswith(f"_{one}") or one.endswith(f"_{other}")
