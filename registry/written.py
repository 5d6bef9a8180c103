"""An operator as its file has it: the inverse of the loader, type sets spelled out."""

from __future__ import annotations

from typing import Any, Final

from opshift.registry.models import Operator, OperatorVersion, Removal
from opshift.registry.record import plain
from opshift.registry.steps import Answer, Refuse, Step, Verb

Written = dict[str, Any]
"""Plain data: mappings, lists, numbers, texts."""
STATED_ONCE: Final = ("description", "shape", "bridge")
"""What a file says at its top for all versions that do not say otherwise."""


def written_operator(operator: Operator) -> Written:
    """The content of `<domain>/<name>.yaml`, without what is at its default."""
    shared = {key: getattr(operator, key) for key in STATED_ONCE if getattr(operator, key)}
    versions = [written_version(version, operator) for version in operator.versions]
    return {"domain": operator.domain, "name": operator.name, **shared, "versions": versions}


def written_version(version: OperatorVersion, operator: Operator | None = None) -> Written:
    """One item of `versions`; with its operator, only what it says otherwise than the top of the file."""
    apart = {"domain", "name", "step", "before", "removal", *STATED_ONCE}
    fields = plain(version, exclude=apart, exclude_defaults=True)
    fields["since_version"] = version.since_version
    fields |= {key: getattr(version, key) for key in STATED_ONCE if _is_said(key, version, operator)}
    if version.step is not None:
        fields["step"] = written_step(version.step)
    if version.before is not None:
        fields["before"] = written_answer(version.before)
    if version.removal is not None:
        fields["removal"] = written_removal(version.removal)
    return fields


def written_step(step: Step) -> Written:
    """A step as YAML has it, verbs by their names."""
    answers = {way: written_answer(getattr(step, way)) for way in ("up", "down") if getattr(step, way)}
    return {**({"change": step.change} if step.change else {}), **answers}


def written_answer(answer: Answer | str) -> str | Written | list[Written]:
    """One direction of a step as YAML has it."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Refuse):
        return plain(answer, exclude_defaults=True)
    return [_verb(verb) for verb in answer]


def written_removal(removal: Removal) -> Written:
    """A removal as YAML has it."""
    return {**plain(removal, exclude={"up"}, exclude_defaults=True), "up": written_answer(removal.up)}


def _verb(verb: Verb) -> Written:
    return {verb.name: plain(verb, exclude_defaults=True)}


def _is_said(key: str, version: OperatorVersion, operator: Operator | None) -> bool:
    own = getattr(version, key)
    return own != getattr(operator, key) if operator else bool(own)
