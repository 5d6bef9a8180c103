"""Rules for attributes: one value, of the type that is stated, as the operator's definition has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opshift.adapters.node import read_attribute
from opshift.converter.legality.findings import ERROR, WARNING
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import VALUE_FIELDS, Attribute, is_bounded
from opshift.converter.legality.types import type_flaw
from opshift.converter.soundness import ATTRIBUTE_TYPES
from opshift.registry.models import Attribute as Declared

SIGNATURE = "IR: Nodes; the operator's definition"
TYPE_NAMES = {number: name for name, number in ATTRIBUTE_TYPES.items()}
STATED_TYPES = 2
"""From this IR version on an attribute states its type."""
MESSAGES = {4: "t", 5: "g", 11: "sparse_tensor", 13: "tp"}
"""The types whose value is a message: left out, it has no default."""


@rule("attribute.name", ERROR, source="IR: Attributes", remedy="name the attribute")
def name(attribute: Attribute) -> Flaws:
    """An attribute has a name."""
    if not attribute.proto.name:
        yield "has no name"


@rule("attribute.type", ERROR, source="IR: Attributes", remedy="state the type that the value has")
def stated_type(attribute: Attribute) -> Flaws:
    """From IR version 2 on an attribute states its type."""
    ir_version = attribute.node.container.model.ir_version
    if ir_version >= STATED_TYPES and attribute.proto.type not in TYPE_NAMES:
        yield "does not state its type"


@rule(
    "attribute.field", ERROR, source="onnx.proto: AttributeProto", remedy="state the type that the value has"
)
def field(attribute: Attribute) -> Flaws:
    """The value is in the field for the stated type."""
    stated = attribute.proto.type
    if stated:
        for each in attribute.fields:
            if VALUE_FIELDS[each] != stated:
                yield f"is stated to be {TYPE_NAMES.get(stated, stated)}, but its value is in {each!r}"


@rule("attribute.single", ERROR, source="IR: Attributes", remedy="keep the value for the stated type")
def single(attribute: Attribute) -> Flaws:
    """An attribute has one value."""
    if len(attribute.fields) > 1:
        yield f"has several values: {', '.join(attribute.fields)}"


@rule("attribute.value", ERROR, source="onnx.proto: AttributeProto", remedy="give the value")
def value(attribute: Attribute) -> Flaws:
    """An attribute that is a tensor, a graph or a type has it."""
    needed = MESSAGES.get(attribute.proto.type)
    if needed and not attribute.fields and not attribute.proto.ref_attr_name:
        yield f"is {TYPE_NAMES[attribute.proto.type]} and has no value"


@rule("attribute.text", WARNING, source="IR: Attributes", remedy="write bytes as a tensor of uint8")
def text(attribute: Attribute) -> Flaws:
    """Strings are UTF-8 text."""
    proto = attribute.proto
    for each in [*([proto.s] if "s" in attribute.fields else ()), *proto.strings]:
        if not _is_text(each):
            yield "holds bytes that are not UTF-8 text"
            return


@rule(
    "attribute.type-proto",
    ERROR,
    source="onnx.proto: TypeProto",
    remedy="complete the type",
)
def type_proto(attribute: Attribute) -> Flaws:
    """A type that is a value is complete."""
    if not attribute.is_plain:
        for each in attribute.held("tp", "type_protos"):
            flaw = type_flaw(each)
            if flaw:
                yield flaw


@rule(
    "attribute.reference",
    ERROR,
    source="IR: Attributes",
    remedy="give the value itself",
)
def reference(attribute: Attribute) -> Flaws:
    """Only in a function an attribute refers to one of the caller."""
    named = attribute.proto.ref_attr_name
    if named and attribute.node.container.key is None:
        yield f"refers to an attribute {named!r} of a caller, but is in no function"


@rule(
    "attribute.reference-known",
    ERROR,
    source="IR: Functions",
    remedy="add the attribute to the function's, or correct the name",
)
def reference_known(attribute: Attribute) -> Flaws:
    """An attribute refers to one that its function has."""
    named = attribute.proto.ref_attr_name
    if named:
        function = next(attribute.node.container.functions(), None)
        if function is not None and named not in function.attributes:
            yield f"refers to {named!r}, which is no attribute of the function"


@rule(
    "attribute.reference-only",
    ERROR,
    source="IR: Attributes",
    remedy="remove the value, or the reference",
)
def reference_only(attribute: Attribute) -> Flaws:
    """An attribute that refers to one of the caller has no value of its own."""
    if attribute.proto.ref_attr_name and attribute.fields:
        yield f"refers to {attribute.proto.ref_attr_name!r} and has a value"


@rule("node.attribute-known", ERROR, source=SIGNATURE, remedy="remove the attribute, or correct its name")
def known(attribute: Attribute) -> Flaws:
    """A node has only attributes that its operator has, and private ones, which start with __."""
    operator, named = attribute.node.operator, attribute.proto.name
    if operator is not None and named and named not in operator.attributes and named[:2] != "__":
        yield f"{operator.id} has no such attribute"


@rule("node.attribute-type", ERROR, source=SIGNATURE, remedy="give a value of that type")
def declared_type(attribute: Attribute) -> Flaws:
    """An attribute has the type that the operator's has."""
    declared = _declared(attribute)
    found = attribute.proto.type or next((VALUE_FIELDS[each] for each in attribute.fields), 0)
    if declared is not None and found and found != ATTRIBUTE_TYPES[declared.type]:
        yield f"is {TYPE_NAMES.get(found, found)}; it has to be {declared.type}"


@rule("node.attribute-value", ERROR, source=SIGNATURE, remedy="give a value that the operator knows")
def declared_value(attribute: Attribute) -> Flaws:
    """An attribute has a value that some version of the operator knows."""
    for each, choices in _strange_values(attribute):
        if not _is_flag(attribute) and not _is_known_elsewhere(attribute, each):
            yield f"is {each!r}; {choices}"


@rule("node.attribute-flag", WARNING, source=SIGNATURE, remedy="say 1 for yes and 0 for no")
def flag(attribute: Attribute) -> Flaws:
    """An attribute that is yes or no is 1 or 0."""
    if _is_flag(attribute):
        yield from (f"is {each!r}; {choices}" for each, choices in _strange_values(attribute))


@rule(
    "node.attribute-value-version",
    WARNING,
    source=SIGNATURE,
    remedy="give a value that this version knows, or import the opset that the value is of",
)
def value_of_version(attribute: Attribute) -> Flaws:
    """An attribute has a value that the operator's version knows."""
    for each, choices in _strange_values(attribute):
        if not _is_flag(attribute) and _is_known_elsewhere(attribute, each):
            yield f"is {each!r}, which only other versions of the operator know; {choices}"


def _declared(attribute: Attribute) -> Declared | None:
    operator = attribute.node.operator
    return operator.attributes.get(attribute.proto.name) if operator is not None else None


def _strange_values(attribute: Attribute) -> Iterator[tuple[Any, str]]:
    """The values that the operator does not know, each with those that it knows."""
    declared, proto = _declared(attribute), attribute.proto
    if declared is None or not is_bounded(declared) or proto.type != ATTRIBUTE_TYPES[declared.type]:
        return
    for each in () if proto.ref_attr_name else _elements(read_attribute(proto)):
        if not declared.allows(each):
            yield each, _choices(declared)


def _is_flag(attribute: Attribute) -> bool:
    declared = _declared(attribute)
    return declared is not None and declared.values == (0, 1)


def _is_known_elsewhere(attribute: Attribute, value: Any) -> bool:
    operator = attribute.node.operator
    assert operator is not None
    found = attribute.node.container.model.registry.operator(operator.name, operator.domain)
    others = (each.attributes.get(attribute.proto.name) for each in found.versions) if found else ()
    kind = ATTRIBUTE_TYPES[operator.attributes[attribute.proto.name].type]
    return any(other.allows(value) for other in others if other and ATTRIBUTE_TYPES[other.type] == kind)


def _elements(found: Any) -> Iterator[Any]:
    for each in found if isinstance(found, tuple) else (found,):
        yield each.decode(errors="replace") if isinstance(each, bytes) else each


def _choices(declared: Declared) -> str:
    if declared.values is not None:
        return f"it has to be one of {', '.join(map(repr, declared.values))}"
    least = f" from {declared.minimum}" if declared.minimum is not None else ""
    most = f" up to {declared.maximum}" if declared.maximum is not None else ""
    return f"it has to be{least}{most}"


def _is_text(found: bytes) -> bool:
    try:
        found.decode()
    except UnicodeDecodeError:
        return False
    return True
