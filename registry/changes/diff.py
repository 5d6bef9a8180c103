"""Differences between the signatures of two operator versions, one `Change` each."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from opshift.registry.models import Attribute, OperatorVersion, Parameter


class Change(NamedTuple):
    """One difference: its kind, the name of the attribute, parameter or operator, and both values."""

    kind: str
    subject: str
    old: Any
    new: Any

    def __str__(self) -> str:
        text = f"{self.kind.replace('_', ' ')}: {self.subject}"
        if self.old is None and self.new is None:
            return text
        return f"{text}: {_format_value(self.old)} -> {_format_value(self.new)}"


def diff(old: OperatorVersion, new: OperatorVersion) -> tuple[Change, ...]:
    """Return all differences between the signatures of two versions, attributes first."""
    return (
        *_attribute_changes(old.attributes, new.attributes),
        *_parameter_changes("input", old, old.inputs, new, new.inputs),
        *_parameter_changes("output", old, old.outputs, new, new.outputs),
        *_version_changes(old, new),
    )


def _attribute_changes(old: dict[str, Attribute], new: dict[str, Attribute]) -> Iterator[Change]:
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before is None:
            yield Change("attribute_added", name, None, new[name].default)
        elif after is None:
            yield Change("attribute_removed", name, before.default, None)
        else:
            yield from _changes_of_attribute(name, before, after)


def _changes_of_attribute(name: str, old: Attribute, new: Attribute) -> Iterator[Change]:
    yield from field_changes(name, old, new, ("type", "default", "required"), "attribute_")
    if (old.values, old.minimum, old.maximum) != (new.values, new.minimum, new.maximum):
        yield Change("attribute_values", name, _format_allowed_values(old), _format_allowed_values(new))


def field_changes(
    subject: str, old: object, new: object, fields: tuple[str, ...], prefix: str = ""
) -> Iterator[Change]:
    """Yield a `Change` for each of `fields` that differs; its kind is `prefix` and the name of the field."""
    for field in fields:
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            yield Change(f"{prefix}{field}", subject, before, after)


def _format_allowed_values(attribute: Attribute) -> str:
    if attribute.values is not None:
        return ", ".join(map(str, attribute.values))
    low, high = attribute.minimum, attribute.maximum
    if low is None and high is None:
        return "any"
    return f"{'' if low is None else low}..{'' if high is None else high}"


def _parameter_changes(
    side: str,
    old_version: OperatorVersion,
    old: tuple[Parameter, ...],
    new_version: OperatorVersion,
    new: tuple[Parameter, ...],
) -> Iterator[Change]:
    for before, after in zip(old, new, strict=False):
        yield from field_changes(after.name, before, after, ("name",), f"{side}_")
        if _arity(before) != _arity(after):
            yield Change(f"{side}_option", after.name, _arity(before), _arity(after))
        types = frozenset(old_version.types_of(before)), frozenset(new_version.types_of(after))
        if types[0] != types[1]:
            yield Change(f"{side}_types", after.name, *types)
    for after in new[len(old) :]:
        yield Change(f"{side}_added", after.name, None, after.option)
    for before in old[len(new) :]:
        yield Change(f"{side}_removed", before.name, before.option, None)


def _arity(parameter: Parameter) -> tuple[str, int, bool]:
    return (parameter.option, parameter.min_arity, parameter.homogeneous)


def _version_changes(old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    yield from field_changes(old.name, old, new, ("determinism", "status"))
    if old.deprecated != new.deprecated:
        yield Change("deprecation", old.name, old.deprecated, new.deprecated)


def _format_value(value: object) -> str:
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(value)) + "}"
    return "nothing" if value is None else str(value)
