"""Rules for types and type variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opshift.model.attributes import LIST_ELEMENT_TYPES
from opshift.registry.lint.parameters import parameters
from opshift.registry.lint.rule_table import Problem, nearest, requirement, rule
from opshift.registry.models import OperatorVersion
from opshift.registry.type_sets import is_type, similar_types


@rule(
    "type.unknown",
    "write it as tensor(float), seq(tensor(float)), optional(tensor(float)) or map(string, float)",
)
def type_unknown(version: OperatorVersion) -> Iterator[Problem]:
    """Every type is a type of ONNX; type constraints may also name a set of `types.yaml`."""
    for keys, each in parameters(version):
        for key, text in (("type", each.type), ("absent_type", each.absent_type)):
            if text and "(" in text and not is_type(text):
                yield Problem(f"{text!r} is not a type", (*keys, key), nearest(text, similar_types(text)))


requirement(
    "type.set",
    "`types.yaml` maps names to lists of types and other sets; no set contains itself.",
    "list types, such as tensor(float), and sets",
)


@rule("type.undeclared", "declare the type variable in `type_constraints`, or write a type")
def type_undeclared(version: OperatorVersion) -> Iterable[Problem]:
    """The type of an input or output is a type variable of the version, or a type."""
    for keys, each in parameters(version):
        if each.type not in version.type_constraints and "(" not in each.type:
            reason = f"{each.type!r} is neither a type nor a type variable"
            yield Problem(reason, (*keys, "type"), nearest(each.type, version.type_constraints))


@rule("type.unused", "remove it, or use it as the type of an input or output")
def type_unused(version: OperatorVersion) -> Iterator[Problem]:
    """Every type variable is the type of an input or output."""
    unused = version.type_constraints.keys() - {each.type for each in (*version.inputs, *version.outputs)}
    for name in sorted(unused):
        yield Problem(f"no input or output has the type {name}", ("type_constraints", name))


@rule("type.none", "list the types that it allows")
def type_none(version: OperatorVersion) -> Iterator[Problem]:
    """Every type variable allows a type."""
    for name, types in version.type_constraints.items():
        if not types:
            yield Problem(f"{name} allows no type", ("type_constraints", name))


@rule("type.attribute", "name an attribute of the version")
def type_attribute(version: OperatorVersion) -> Iterator[Problem]:
    """`type_attribute` and `element_attributes` name attributes, and `absent_type` a type or an input."""
    lists = [name for name, found in version.attributes.items() if found.type in LIST_ELEMENT_TYPES]
    for keys, each in parameters(version):
        attribute, absent = each.type_attribute, each.absent_type
        if attribute is not None and attribute not in version.attributes:
            remedy = nearest(attribute, version.attributes)
            yield Problem(f"the version has no attribute {attribute!r}", (*keys, "type_attribute"), remedy)
        for name in each.element_attributes:
            if name not in lists:
                reason = f"the version has no list attribute {name!r}"
                yield Problem(reason, (*keys, "element_attributes"), nearest(name, lists))
        if absent is not None and "(" not in absent and not version.input_named(absent):
            remedy = nearest(absent, (each.name for each in version.inputs))
            yield Problem(f"{absent!r} is neither a type nor an input", (*keys, "absent_type"), remedy)
