"""Convert an operator back to the content of its YAML file, with type sets expanded."""

from __future__ import annotations

from typing import Any, Final

from opshift.registry.models import Operator, OperatorVersion, Removal
from opshift.registry.record import to_plain_data
from opshift.registry.steps import Refuse, Step, StepAction, Verb

PlainData = dict[str, Any]
"""Plain data: mappings, lists, numbers and strings."""

SHARED_KEYS: Final = ("description", "shape", "bridge")
"""Keys at the top of a file, which apply to every version that does not override them."""


def operator_to_dict(operator: Operator) -> PlainData:
    """Return the content of `<domain>/<name>.yaml`, without default values."""
    shared = {key: getattr(operator, key) for key in SHARED_KEYS if getattr(operator, key)}
    versions = [version_to_dict(version, operator) for version in operator.versions]
    return {"domain": operator.domain, "name": operator.name, **shared, "versions": versions}


def version_to_dict(version: OperatorVersion, operator: Operator | None = None) -> PlainData:
    """Return an item of `versions`; keys that equal those of `operator` are omitted."""
    separate = {"domain", "name", "step", "before", "removal", *SHARED_KEYS}
    fields = to_plain_data(version, exclude=separate, exclude_defaults=True)
    fields["since_version"] = version.since_version
    fields |= {key: getattr(version, key) for key in SHARED_KEYS if _is_overridden(key, version, operator)}
    if version.step is not None:
        fields["step"] = step_to_dict(version.step)
    if version.before is not None:
        fields["before"] = action_to_data(version.before)
    if version.removal is not None:
        fields["removal"] = removal_to_dict(version.removal)
    return fields


def step_to_dict(step: Step) -> PlainData:
    """Return a step as YAML data, with verbs by name."""
    directions = {
        direction: action_to_data(getattr(step, direction))
        for direction in ("up", "down")
        if getattr(step, direction)
    }
    return {**({"change": step.change} if step.change else {}), **directions}


def action_to_data(answer: StepAction | str) -> str | PlainData | list[PlainData]:
    """Return one direction of a step as YAML data."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Refuse):
        return to_plain_data(answer, exclude_defaults=True)
    return [_verb(verb) for verb in answer]


def removal_to_dict(removal: Removal) -> PlainData:
    """Return a removal as YAML data."""
    return {**to_plain_data(removal, exclude={"up"}, exclude_defaults=True), "up": action_to_data(removal.up)}


def _verb(verb: Verb) -> PlainData:
    return {verb.name: to_plain_data(verb, exclude_defaults=True)}


def _is_overridden(key: str, version: OperatorVersion, operator: Operator | None) -> bool:
    own = getattr(version, key)
    return own != getattr(operator, key) if operator else bool(own)
