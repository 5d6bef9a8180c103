"""Lint rules for inputs, outputs, attributes, type variables and names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields

from opshift.model.attributes import LIST_ELEMENT_TYPES
from opshift.model.operator_ids import PATH_NAME_REMEDY, is_path_name
from opshift.registry.attribute_values import Scalar
from opshift.registry.lint.rule_table import Keys, LintProblem, nearest, requirement, rule
from opshift.registry.models import Attribute, Operator, OperatorVersion, Parameter
from opshift.registry.record import Record
from opshift.registry.type_sets import is_type, similar_types

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.\.\.)?")
"""Pattern of C identifiers, as ONNX's IR requires; ONNX 1.0 also ends variadic names with three dots."""

DOMAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)*")


_SCALARS: dict[str, type] = {"INT": int, "FLOAT": float, "STRING": str}

_NOUNS = {"INT": "an integer", "FLOAT": "a number", "STRING": "a string, in quotes if it looks like a number"}


def parameters(version: OperatorVersion) -> Iterator[tuple[Keys, Parameter]]:
    """Yield the inputs and outputs of a version with their keys, such as `("inputs", 0)`."""
    for side, formals in (("inputs", version.inputs), ("outputs", version.outputs)):
        for position, each in enumerate(formals):
            yield (side, position), each


@rule("name.domain", "reverse a domain name that you own, such as com.example")
def name_domain(operator: Operator) -> Iterator[LintProblem]:
    """A domain is a reversed DNS name of ASCII characters."""
    if not DOMAIN.fullmatch(operator.domain) or not is_path_name(operator.domain):
        yield LintProblem(f"{operator.domain!r} is not a valid domain", ("domain",))


@rule("name.operator", PATH_NAME_REMEDY)
def name_operator(operator: Operator) -> Iterator[LintProblem]:
    """The name of an operator can be the name of a file."""
    if not is_path_name(operator.name):
        yield LintProblem(f"{operator.name!r} is not a valid name", ("name",))


@rule("name.identifier", "use ASCII letters, digits and `_`, and no digit at the start")
def name_identifier(version: OperatorVersion) -> Iterator[LintProblem]:
    """Inputs, outputs, attributes and type variables have identifiers as names."""
    names: dict[Keys, str] = {(*keys, "name"): each.name for keys, each in parameters(version)}
    names |= {("attributes", name): name for name in version.attributes}
    names |= {("type_constraints", name): name for name in version.type_constraints}
    for keys, name in names.items():
        if not IDENTIFIER.fullmatch(name):
            yield LintProblem(f"{name!r} is not a valid name", keys)


@rule("parameter.repeated", "rename one of the parameters")
def parameter_repeated(version: OperatorVersion) -> Iterator[LintProblem]:
    """No two inputs, and no two outputs, have the same name."""
    names = set()
    for (side, position), each in parameters(version):
        if (side, each.name) in names:
            yield LintProblem(f"{each.name!r} is repeated", (side, position, "name"))
        names.add((side, each.name))


@rule("parameter.variadic", "move the variadic parameter to the end")
def parameter_variadic(version: OperatorVersion) -> Iterator[LintProblem]:
    """Only the last input and the last output may be variadic: later parameters would be ambiguous."""
    for side, formals in (("inputs", version.inputs), ("outputs", version.outputs)):
        for position, each in enumerate(formals[:-1]):
            if each.option == "variadic":
                yield LintProblem(f"{each.name!r} is variadic, but not the last", (side, position))


@rule("parameter.arity", "remove the key, or set `option: variadic`")
def parameter_arity(version: OperatorVersion) -> Iterator[LintProblem]:
    """Only variadic parameters have `min_arity`, which is not negative, and `homogeneous`."""
    for keys, each in parameters(version):
        if each.min_arity < 0:
            yield LintProblem(f"{each.min_arity} is negative", (*keys, "min_arity"), "use 0 or more")
        if each.option != "variadic":
            for key, default in (("min_arity", 1), ("homogeneous", True)):
                if getattr(each, key) != default:
                    yield LintProblem(f"{each.name!r} is not variadic", (*keys, key))


@rule(
    "type.unknown",
    "write it as tensor(float), seq(tensor(float)), optional(tensor(float)) or map(string, float)",
)
def type_unknown(version: OperatorVersion) -> Iterator[LintProblem]:
    """Every type is a type of ONNX; type constraints may also name a set of `types.yaml`."""
    for keys, each in parameters(version):
        for key, text in (("type", each.type), ("absent_type", each.absent_type)):
            if text and "(" in text and not is_type(text):
                yield LintProblem(f"{text!r} is not a type", (*keys, key), nearest(text, similar_types(text)))


requirement(
    "type.set",
    "`types.yaml` maps names to lists of types and other sets; no set contains itself.",
    "list types, such as tensor(float), and sets",
)


@rule("type.undeclared", "declare the type variable in `type_constraints`, or write a type")
def type_undeclared(version: OperatorVersion) -> Iterable[LintProblem]:
    """The type of an input or output is a type variable of the version, or a type."""
    for keys, each in parameters(version):
        if each.type not in version.type_constraints and "(" not in each.type:
            reason = f"{each.type!r} is neither a type nor a type variable"
            yield LintProblem(reason, (*keys, "type"), nearest(each.type, version.type_constraints))


@rule("type.unused", "remove it, or use it as the type of an input or output")
def type_unused(version: OperatorVersion) -> Iterator[LintProblem]:
    """Every type variable is the type of an input or output."""
    unused = version.type_constraints.keys() - {each.type for each in (*version.inputs, *version.outputs)}
    for name in sorted(unused):
        yield LintProblem(f"no input or output has the type {name}", ("type_constraints", name))


@rule("type.none", "list the types that the variable allows")
def type_none(version: OperatorVersion) -> Iterator[LintProblem]:
    """Every type variable allows at least one type."""
    for name, types in version.type_constraints.items():
        if not types:
            yield LintProblem(f"{name} allows no type", ("type_constraints", name))


@rule("type.attribute", "name an attribute of the version")
def type_attribute(version: OperatorVersion) -> Iterator[LintProblem]:
    """`type_attribute` and `element_attributes` name attributes, and `absent_type` a type or an input."""
    lists = [name for name, found in version.attributes.items() if found.type in LIST_ELEMENT_TYPES]
    for keys, each in parameters(version):
        attribute, absent = each.type_attribute, each.absent_type
        if attribute is not None and attribute not in version.attributes:
            remedy = nearest(attribute, version.attributes)
            yield LintProblem(
                f"the version has no attribute {attribute!r}", (*keys, "type_attribute"), remedy
            )
        for name in each.element_attributes:
            if name not in lists:
                reason = f"the version has no list attribute {name!r}"
                yield LintProblem(reason, (*keys, "element_attributes"), nearest(name, lists))
        if absent is not None and "(" not in absent and not version.input_named(absent):
            remedy = nearest(absent, (each.name for each in version.inputs))
            yield LintProblem(f"{absent!r} is neither a type nor an input", (*keys, "absent_type"), remedy)


@rule("format.nan", "describe the value in `absent` in place of a default, or compute it in the body")
def format_nan(version: OperatorVersion) -> Iterator[LintProblem]:
    """Numbers are not NaN: JSON cannot express NaN, and NaN does not equal itself."""
    for keys in _keys_of_nan(version, ()):
        yield LintProblem("NaN is not allowed", keys)


def _keys_of_nan(value: object, keys: Keys) -> Iterator[Keys]:
    """Yield the keys of each NaN in a record, a list or a mapping."""
    items: Iterable[tuple[int | str, object]] = ()
    if isinstance(value, float) and math.isnan(value):
        yield keys
    elif isinstance(value, Record):
        items = ((each.name, getattr(value, each.name)) for each in fields(value))
    elif isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, tuple):
        items = enumerate(value)
    for key, item in items:
        yield from _keys_of_nan(item, (*keys, key))


@rule("attribute.default-type", "write a default of this type, or correct the type")
def attribute_default_type(version: OperatorVersion) -> Iterator[LintProblem]:
    """A default has the type of its attribute."""
    for name, each in version.attributes.items():
        if each.default is not None and not _has_type(each):
            reason = f"the default {each.default!r} does not have the type {each.type}"
            yield LintProblem(reason, ("attributes", name, "default"), _expected_type_text(each.type))


def _has_type(attribute: Attribute) -> bool:
    expected = _SCALARS.get(attribute.type.removesuffix("S"))
    default = attribute.default
    if expected is None or isinstance(default, tuple) != attribute.type.endswith("S"):
        return False
    return all(isinstance(each, expected) for each in _scalars_of_default(default))


def _scalars_of_default(default: Scalar | tuple[Scalar, ...] | None) -> tuple[Scalar, ...]:
    if default is None:
        return ()
    return default if isinstance(default, tuple) else (default,)


def _expected_type_text(kind: str) -> str:
    element = _NOUNS.get(kind.removesuffix("S"))
    if element is None:
        return "remove it: only numbers, strings and lists of them have defaults"
    return f"write a list; each element is {element}" if kind.endswith("S") else f"write {element}"


@rule("attribute.default-value", "correct the default, or allow this value")
def attribute_default_value(version: OperatorVersion) -> Iterator[LintProblem]:
    """A default is one of the allowed values, and in the range."""
    for name, each in version.attributes.items():
        if each.default is None or (each.values is None and each.minimum is None and each.maximum is None):
            continue
        if not _has_type(each):
            continue  # the rule `attribute.default-type` reports this default
        for value in _scalars_of_default(each.default):
            if not each.allows(value):
                remedy = nearest(value, map(str, each.values or ()))
                yield LintProblem(
                    f"the default {value!r} is not allowed", ("attributes", name, "default"), remedy
                )


@rule("attribute.default-required", "remove `required`, the default or `absent`")
def attribute_default_required(version: OperatorVersion) -> Iterator[LintProblem]:
    """A required attribute has no default, and `absent` is only for optional attributes without a default."""
    for name, each in version.attributes.items():
        if each.default is not None and each.required:
            yield LintProblem("a required attribute cannot have a default", ("attributes", name))
        if each.absent and (each.required or each.default is not None):
            other = "is required" if each.required else "has a default"
            yield LintProblem(f"{name} {other}, so `absent` has no meaning", ("attributes", name, "absent"))


@rule("attribute.values", "correct the values, or the type of the attribute")
def attribute_values(version: OperatorVersion) -> Iterator[LintProblem]:
    """The allowed values have the type of the attribute and are distinct; only numbers have a range."""
    for name, each in version.attributes.items():
        keys = ("attributes", name)
        expected = _SCALARS.get(each.type.removesuffix("S"))
        for position, value in enumerate(each.values or ()):
            if expected is None or not isinstance(value, expected):
                reason = f"the value {value!r} does not have the type {each.type.removesuffix('S')}"
                yield LintProblem(
                    reason, (*keys, "values", position), _expected_type_text(each.type.removesuffix("S"))
                )
            elif value in (each.values or ())[:position]:
                yield LintProblem(
                    f"the value {value!r} is repeated", (*keys, "values", position), "list it once"
                )
        if each.values == ():
            reason = "the list of allowed values is empty"
            yield LintProblem(reason, (*keys, "values"), "list the allowed values")
        low, high = each.minimum, each.maximum
        if (low is not None or high is not None) and expected not in (int, float):
            key = "maximum" if low is None else "minimum"
            yield LintProblem(
                f"attributes of type {each.type} cannot have a {key}", (*keys, key), "remove it"
            )
        elif low is not None and high is not None and low > high:
            yield LintProblem(f"the minimum {low} exceeds the maximum {high}", (*keys, "minimum"))
