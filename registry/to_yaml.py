"""Convert an operator back to the content of its YAML file, with type sets expanded."""

from __future__ import annotations

from typing import Any, Final

from opshift.registry.models import Operator, OperatorVersion, Removal
from opshift.registry.record import plain
from opshift.registry.steps import Answer, Refuse, Step, Verb

Written = dict[str, Any]
"""Plain data: mappings, lists, numbers and strings."""

STATED_ONCE: Final = ("description", "shape", "bridge")
"""Keys at the top of a file, which apply to every version that does not override them."""


def written_operator(operator: Operator) -> Written:
    """Return the content of `<domain>/<name>.yaml`, without default values."""
    shared = {key: getattr(operator, key) for key in STATED_ONCE if getattr(operator, key)}
    versions = [written_version(version, operator) for version in operator.versions]
    return {"domain": operator.domain, "name": operator.name, **shared, "versions": versions}


def written_version(version: OperatorVersion, operator: Operator | None = None) -> Written:
    """Return an item of `versions`; keys that equal those of `operator` are omitted."""
    separate = {"domain", "name", "step", "before", "removal", *STATED_ONCE}
    fields = plain(version, exclude=separate, exclude_defaults=True)
    fields["since_version"] = version.since_version
    fields |= {key: getattr(version, key) for key in STATED_ONCE if _is_overridden(key, version, operator)}
    if version.step is not None:
        fields["step"] = written_step(version.step)
    if version.before is not None:
        fields["before"] = written_answer(version.before)
    if version.removal is not None:
        fields["removal"] = written_removal(version.removal)
    return fields


def written_step(step: Step) -> Written:
    """Return a step as YAML data, with verbs by name."""
    directions = {
        direction: written_answer(getattr(step, direction))
        for direction in ("up", "down")
        if getattr(step, direction)
    }
    return {**({"change": step.change} if step.change else {}), **directions}


def written_answer(answer: Answer | str) -> str | Written | list[Written]:
    """Return one direction of a step as YAML data."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Refuse):
        return plain(answer, exclude_defaults=True)
    return [_verb(verb) for verb in answer]


def written_removal(removal: Removal) -> Written:
    """Return a removal as YAML data."""
    return {**plain(removal, exclude={"up"}, exclude_defaults=True), "up": written_answer(removal.up)}


def _verb(verb: Verb) -> Written:
    return {verb.name: plain(verb, exclude_defaults=True)}


def _is_overridden(key: str, version: OperatorVersion, operator: Operator | None) -> bool:
    own = getattr(version, key)
    return own != getattr(operator, key) if operator else bool(own)
