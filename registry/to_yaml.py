"""Convert an operator back to the content of its YAML file; type sets are replaced by their types."""

from typing import Any, Final

from opshift.registry.descriptions import descriptions_block, texts_of
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import to_plain_data
from opshift.registry.steps import Refuse, Step, StepAction

PlainData = dict[str, Any]
"""Mapping of plain data: mappings, lists, numbers and strings."""

SHARED_KEYS: Final = ("shape", "bridge", "axes", "one_of", "requires")
"""Keys at the top of a file, which apply to every version that does not override them."""


def operator_to_dict(operator: Operator) -> PlainData:
    """Return the content of `<domain>/<name>.yaml`, without default values."""
    shared = {key: getattr(operator, key) for key in SHARED_KEYS if getattr(operator, key)}
    previous = (None, *operator.versions)
    versions = [version_to_dict(*pair, operator) for pair in zip(operator.versions, previous, strict=False)]
    patterns = {
        key: [to_plain_data(each, exclude_defaults=True) for each in getattr(operator, key)]
        for key in ("recognize", "examples")
        if getattr(operator, key)
    }
    if operator.has_complete_requires:
        shared["has_complete_requires"] = True
    return {"domain": operator.domain, "name": operator.name, **shared, **patterns, "versions": versions}


def version_to_dict(
    version: OperatorVersion, previous: OperatorVersion | None = None, operator: Operator | None = None
) -> PlainData:
    """Return a version as an item of `versions`.

    Omit shared keys with the value of `operator`, and texts that equal those of `previous`.
    """
    texts = {"description", "type_descriptions"}
    separate = {"domain", "name", "step", "before", "removal", *SHARED_KEYS}
    fields: PlainData = to_plain_data(version, exclude=separate | texts, exclude_defaults=True)
    parameters = (*fields.get("inputs", ()), *fields.get("outputs", ()))
    for each in (*parameters, *fields.get("attributes", {}).values()):
        each.pop("description", None)
    fields["since_version"] = version.since_version
    fields |= {key: getattr(version, key) for key in SHARED_KEYS if _is_overridden(key, version, operator)}
    if version.step is not None:
        fields["step"] = _step_to_dict(version.step)
    if version.before is not None:
        fields["before"] = _action_to_data(version.before)
    if version.removal is not None:
        removal = to_plain_data(version.removal, exclude={"up"}, exclude_defaults=True)
        fields["removal"] = {**removal, "up": _action_to_data(version.removal.up)}
    inherited = texts_of(previous) if previous else {}
    if own := {key: text for key, text in texts_of(version).items() if text != inherited.get(key, "")}:
        fields["descriptions"] = descriptions_block(own)
    return fields


def _step_to_dict(step: Step) -> PlainData:
    data: PlainData = {"change": step.change} if step.change else {}
    answers = {"up": step.up, "down": step.down}
    return data | {direction: _action_to_data(answer) for direction, answer in answers.items() if answer}


def _action_to_data(answer: StepAction | str) -> str | PlainData | list[PlainData]:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Refuse):
        return to_plain_data(answer, exclude_defaults=True)
    return [{verb.name: to_plain_data(verb, exclude_defaults=True)} for verb in answer]


def _is_overridden(key: str, version: OperatorVersion, operator: Operator | None) -> bool:
    own = getattr(version, key)
    return own != getattr(operator, key) if operator else bool(own)
