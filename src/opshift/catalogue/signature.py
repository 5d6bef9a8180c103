"""Signatures of operator versions as text."""

import json
from typing import Final

from opshift.catalogue.history import HistoryEntry
from opshift.model.element_types import float_text
from opshift.registry.models import Attribute, Deprecation, OperatorVersion, Parameter

MAX_LINE: Final = 88
"""Maximum length of a signature on one line."""


def availability(version: OperatorVersion, entries: list[HistoryEntry]) -> str:
    """Return a text such as `opsets 1 to 12, stable`: opsets of a version, status and determinism."""
    since = version.since_version
    later = (each.version.since_version for each in entries if each.version.since_version > since)
    end = version.removal.removed_in if version.removal else min(later, default=None)
    span = f"since opset {since}"
    if end:
        span = f"opsets {since} to {end - 1}" if end - 1 > since else f"opset {since}"
    kind = {"non_deterministic": ", not deterministic", "unknown": ", possibly not deterministic"}
    return f"{span}, {version.status.lower()}{kind.get(version.determinism, '')}"


def replacement_text(event: str, details: Deprecation) -> str:
    """Format a deprecation or removal: `deprecated, replaced by Resize: ...`."""
    names = " and ".join(details.replacements)
    replacement = f", replaced by {names}" if names else ""
    return f"{event}{replacement}{f': {details.mapping}' if details.mapping else ''}"


def option_text(parameter: Parameter) -> str:
    """Describe the number of values of a parameter, such as `optional`; an empty text means exactly one."""
    if parameter.option != "variadic":
        return "" if parameter.option == "single" else parameter.option
    kind = "" if parameter.homogeneous else ", of any types"
    return f"variadic, at least {parameter.min_arity}{kind}"


def signature_text(version: OperatorVersion) -> str:
    """Return a node as text, with all attributes and defaults; a question mark follows optional values.

    Example: `output = Softmax <axis = -1> (input)`.
    """
    marks = {"single": "", "optional": "?", "variadic": ", ..."}
    inputs, outputs = (
        ", ".join(f"{each.name}{marks[each.option]}" for each in listed)
        for listed in (version.inputs, version.outputs)
    )
    stated = [f"{name}{_default_text(each)}" for name, each in version.attributes.items()]
    attributes = f" <{', '.join(stated)}>" if stated else ""
    text = f"{outputs} = {version.name}{attributes} ({inputs})"
    if len(text) <= MAX_LINE:
        return text
    lines = "".join(f"    {each},\n" for each in stated)
    attributes = f" <\n{lines}>" if stated else ""
    return f"{outputs} = {version.name}{attributes} ({inputs})"


def _default_text(attribute: Attribute) -> str:
    if attribute.required:
        return ""
    if attribute.default is None:
        return "?"
    return f" = {_literal(attribute.default)}"


def attribute_texts(name: str, attribute: Attribute) -> tuple[str, ...]:
    """Return name, type, default, allowed values and description of an attribute as texts."""
    default = value_text(attribute.default) if attribute.default is not None else attribute.absent or "none"
    if attribute.required:
        default = "required"
    return name, attribute.type, default, _allowed_values(attribute), attribute.description


def _allowed_values(attribute: Attribute) -> str:
    if attribute.values is not None:
        return ", ".join(map(value_text, attribute.values))
    low, high = attribute.minimum, attribute.maximum
    if low is None and high is None:
        return ""
    if high is None:
        return f"at least {value_text(low)}"
    return f"at most {value_text(high)}" if low is None else f"{value_text(low)} to {value_text(high)}"


def value_text(value: object) -> str:
    """Format an attribute value; only an empty string and the strings of a list have quotes."""
    return value if isinstance(value, str) and value else _literal(value)


def _literal(value: object) -> str:
    """Format an attribute value as in the text of a node; a list is put in brackets."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return float_text(value) if isinstance(value, float) else str(value)
