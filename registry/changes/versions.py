"""Facts about two versions and the step between them, for the classification of changes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from opshift.registry.models import OperatorVersion
from opshift.registry.steps import (
    AddAttribute,
    AnyVerb,
    AttributeInputVerb,
    IgnoreAttribute,
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

    @property
    def _upgrade_verbs(self) -> tuple[AnyVerb, ...]:
        return self.step.up if self.step and isinstance(self.step.up, tuple) else ()

    def answer(self, way: Literal["up", "down"]) -> StepAction:
        """Return the declared conversion in a direction, or else `compatible`."""
        answer = getattr(self.step, way, None)
        return "compatible" if answer is None else answer

    @property
    def is_rewritten(self) -> bool:
        """Whether the step rewrites nodes on upgrade and does not refuse a downgrade."""
        up = self.answer("up")
        return (up == "adapter" or isinstance(up, tuple)) and not isinstance(self.answer("down"), Refuse)

    @property
    def is_adapted(self) -> bool:
        """Whether an adapter rewrites nodes on upgrade."""
        return self.answer("up") == "adapter"

    def renamed_values(self, attribute: str) -> tuple[RenameValue, ...]:
        """Return the verbs of the upgrade that rename values of an attribute."""
        verbs = (verb for verb in self._upgrade_verbs if isinstance(verb, RenameValue))
        return tuple(verb for verb in verbs if verb.attribute == attribute)

    def attributes_of(self, kind: type[IgnoreAttribute | AddAttribute | RenameValue]) -> frozenset[str]:
        """Return the names of the attributes in the verbs of class `kind` of the upgrade."""
        return frozenset(verb.attribute for verb in self._upgrade_verbs if isinstance(verb, kind))

    @property
    def renamed(self) -> frozenset[str]:
        """The old and the new name of each attribute that the upgrade renames."""
        verbs = [verb for verb in self._upgrade_verbs if isinstance(verb, RenameAttribute)]
        return frozenset(name for verb in verbs for name in (verb.attribute, verb.to))

    @cached_property
    def converted_attributes(self) -> frozenset[str]:
        """Old and new names of attributes that become inputs, and of inputs that become attributes."""
        verbs = [verb for verb in self._upgrade_verbs if isinstance(verb, AttributeInputVerb)]
        declared = {name for verb in verbs for name in (verb.attribute_name, verb.input_name)}
        return frozenset(declared | _matching_names(self.old, self.new) | _matching_names(self.new, self.old))


def _matching_names(old: OperatorVersion, new: OperatorVersion) -> set[str]:
    """Return the attributes that only `old` has and the inputs that only `new` has, if their names match."""
    inputs = {each.name for each in old.inputs}
    pairs = [
        (attribute, parameter.name)
        for attribute in old.attributes.keys() - new.attributes.keys()
        for parameter in new.inputs
        if parameter.name not in inputs and _is_same_name(attribute, parameter.name)
    ]
    return {name for pair in pairs for name in pair}


def _is_same_name(attribute: str, parameter: str) -> bool:
    """Return whether the names match: `axes` and `axes`, `k` and `K`, `value` and `constant_value`."""
    one, other = attribute.lower(), parameter.lower()
    return one == other or other.endswith(f"_{one}") or one.endswith(f"_{other}")
