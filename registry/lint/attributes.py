"""Rules for attributes."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.registry.attribute_values import Scalar
from opshift.registry.lint.rule_table import Problem, nearest, rule
from opshift.registry.models import Attribute, OperatorVersion

_SCALARS: dict[str, type] = {"INT": int, "FLOAT": float, "STRING": str}
_NOUNS = {"INT": "an integer", "FLOAT": "a number", "STRING": "a string, in quotes if it looks like a number"}


@rule("attribute.default-type", "write a default of this type, or correct the type")
def attribute_default_type(version: OperatorVersion) -> Iterator[Problem]:
    """A default has the type of its attribute."""
    for name, each in version.attributes.items():
        if each.default is not None and not _has_type(each):
            reason = f"the default {each.default!r} does not have the type {each.type}"
            yield Problem(reason, ("attributes", name, "default"), _expected(each.type))


def _has_type(attribute: Attribute) -> bool:
    expected = _SCALARS.get(attribute.type.removesuffix("S"))
    default = attribute.default
    if expected is None or isinstance(default, tuple) != attribute.type.endswith("S"):
        return False
    return all(isinstance(each, expected) for each in _scalars(default))


def _scalars(default: Scalar | tuple[Scalar, ...] | None) -> tuple[Scalar, ...]:
    if default is None:
        return ()
    return default if isinstance(default, tuple) else (default,)


def _expected(kind: str) -> str:
    element = _NOUNS.get(kind.removesuffix("S"))
    if element is None:
        return "remove it: only numbers, strings and lists of them have defaults"
    return f"write a list; each element is {element}" if kind.endswith("S") else f"write {element}"


@rule("attribute.default-value", "add it to the allowed values, or correct it")
def attribute_default_value(version: OperatorVersion) -> Iterator[Problem]:
    """A default is one of the allowed values, and in the range."""
    for name, each in version.attributes.items():
        if each.default is None or (each.values is None and each.minimum is None and each.maximum is None):
            continue
        if not _has_type(each):
            continue  # another rule
        for value in _scalars(each.default):
            if not each.allows(value):
                remedy = nearest(value, map(str, each.values or ()))
                yield Problem(
                    f"the default {value!r} is not allowed", ("attributes", name, "default"), remedy
                )


@rule("attribute.default-required", "remove one of them")
def attribute_default_required(version: OperatorVersion) -> Iterator[Problem]:
    """A required attribute has no default, and an attribute with a default no text in `absent`."""
    for name, each in version.attributes.items():
        if each.default is not None and each.required:
            yield Problem("a required attribute cannot have a default", ("attributes", name))
        if each.absent and (each.required or each.default is not None):
            other = "is required" if each.required else "has a default"
            yield Problem(f"{name} {other}, so `absent` has no meaning", ("attributes", name, "absent"))


@rule("attribute.values", "correct the values, or the type of the attribute")
def attribute_values(version: OperatorVersion) -> Iterator[Problem]:
    """The allowed values have the type of the attribute, each once; only numbers have a range."""
    for name, each in version.attributes.items():
        keys = ("attributes", name)
        expected = _SCALARS.get(each.type.removesuffix("S"))
        for position, value in enumerate(each.values or ()):
            if expected is None or not isinstance(value, expected):
                reason = f"the value {value!r} does not have the type {each.type.removesuffix('S')}"
                yield Problem(reason, (*keys, "values", position), _expected(each.type.removesuffix("S")))
            elif value in (each.values or ())[:position]:
                yield Problem(f"the value {value!r} is repeated", (*keys, "values", position), "list it once")
        if each.values == ():
            yield Problem("no value is allowed", (*keys, "values"), "list the allowed values")
        low, high = each.minimum, each.maximum
        if (low is not None or high is not None) and expected not in (int, float):
            key = "maximum" if low is None else "minimum"
            yield Problem(f"{each.type} has no order, so no {key}", (*keys, key), "remove it")
        elif low is not None and high is not None and low > high:
            yield Problem(f"the minimum {low} exceeds the maximum {high}", (*keys, "minimum"))
