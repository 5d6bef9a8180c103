"""Signatures of operator versions as text."""

from opshift.catalogue.history import HistoryEntry
from opshift.registry.models import Attribute, Deprecation, OperatorVersion, Parameter


def availability(version: OperatorVersion, entries: list[HistoryEntry]) -> str:
    """Return the opsets of a version, its status and its determinism."""
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
    """Return the number of values of a parameter; empty for exactly one."""
    if parameter.option != "variadic":
        return "" if parameter.option == "single" else parameter.option
    kind = "" if parameter.homogeneous else ", of any types"
    return f"variadic, at least {parameter.min_arity}{kind}"


def attribute_texts(name: str, attribute: Attribute) -> tuple[str, ...]:
    """Return name, type, default, allowed values and description of an attribute."""
    default = _value(attribute.default) if attribute.default is not None else attribute.absent or "none"
    if attribute.required:
        default = "required"
    return name, attribute.type, default, _allowed_values(attribute), attribute.description


def _allowed_values(attribute: Attribute) -> str:
    if attribute.values is not None:
        return ", ".join(map(_value, attribute.values))
    low, high = attribute.minimum, attribute.maximum
    if low is None and high is None:
        return ""
    if high is None:
        return f"at least {_value(low)}"
    return f"at most {_value(high)}" if low is None else f"{_value(low)} to {_value(high)}"


def _value(value: object) -> str:
    """Format an attribute value; a list is put in brackets."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        text = f"{value:.7g}"  # a float32 has about 7 significant digits
        return f"{text}.0" if text.lstrip("-").isdecimal() else text
    return str(value) or "''"
