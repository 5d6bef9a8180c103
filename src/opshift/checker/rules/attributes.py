"""Rules for attributes: their names, types, fields and references, and the values that operators allow."""

from collections.abc import Iterator
from typing import Any

from opshift.checker.checked_nodes import CheckedAttribute, restricts_values
from opshift.checker.containers import CheckedFunction
from opshift.checker.findings import ERROR, WARNING
from opshift.checker.released_schemas import PRIVATE, adds_attribute
from opshift.checker.rule_table import SIGNATURE, Problems, rule
from opshift.checker.rules.types import type_problems
from opshift.model.attributes import (
    ATTRIBUTE_TYPES,
    TYPE_BY_FIELD,
    TYPE_BY_NUMBER,
    read_attribute,
    type_name,
    types_in,
)
from opshift.model.element_types import BY_NUMBER
from opshift.registry.attribute_values import Scalar
from opshift.registry.models import Attribute as Declared


@rule("attribute.name", ERROR, "IR: Attributes", "name the attribute")
def name(attribute: CheckedAttribute) -> Problems:
    """An attribute must have a name."""
    if not attribute.proto.name:
        yield "has no name"


TYPES_SINCE = 2
"""First IR version in which an attribute must declare its type."""


@rule("attribute.type", ERROR, "IR: Attributes", "set the type field to the type of the value")
def type_declared(attribute: CheckedAttribute) -> Problems:
    """An attribute must declare its type, since IR version 2."""
    ir_version = attribute.node.container.model.ir_version
    if ir_version >= TYPES_SINCE and attribute.proto.type not in TYPE_BY_NUMBER:
        yield "does not declare its type"


@rule("attribute.field", ERROR, "onnx.proto: AttributeProto", "set the type field to the type of the value")
def field(attribute: CheckedAttribute) -> Problems:
    """The value must be in the field for the declared type."""
    declared = attribute.proto.type
    for used in attribute.fields if declared else ():
        if TYPE_BY_FIELD[used].number != declared:
            yield f"is declared as {type_name(declared)}, but its value is in {used!r}"


@rule("attribute.single", ERROR, "IR: Attributes", "keep only the value of the declared type")
def single_value(attribute: CheckedAttribute) -> Problems:
    """An attribute must have values in only one field."""
    if len(attribute.fields) > 1:
        yield f"has values in several fields: {', '.join(attribute.fields)}"


@rule("attribute.value", ERROR, "onnx.proto: AttributeProto", "set the value")
def value_present(attribute: CheckedAttribute) -> Problems:
    """An attribute of type tensor, graph, sparse tensor or type must have a value."""
    kind, has_value = (
        TYPE_BY_NUMBER.get(attribute.proto.type),
        attribute.fields or attribute.proto.ref_attr_name,
    )
    # Lists may be empty, and numbers and strings have a default value; only a message can be absent.
    if kind and not kind.is_plain and not kind.is_repeated and not has_value:
        yield f"is declared as {kind.name}, but has no value"


@rule("attribute.text", WARNING, "IR: Attributes", "store the bytes as a tensor of uint8")
def valid_text(attribute: CheckedAttribute) -> Problems:
    """Strings must be valid UTF-8."""
    proto = attribute.proto
    try:
        b" ".join((proto.s, *proto.strings)).decode()
    except UnicodeDecodeError:
        yield "contains bytes that are not valid UTF-8"


@rule("attribute.type-proto", ERROR, "onnx.proto: TypeProto", "complete or correct the type")
def type_proto(attribute: CheckedAttribute) -> Problems:
    """A type that is the value of an attribute must be complete."""
    if not attribute.is_plain:
        for proto in types_in(attribute.proto):
            yield from type_problems(proto)


@rule("attribute.reference", ERROR, "IR: Attributes", "replace the reference by the value")
def reference(attribute: CheckedAttribute) -> Problems:
    """Only a node in a function may refer to an attribute of the function."""
    referenced = attribute.proto.ref_attr_name
    if referenced and attribute.node.container.key is None:
        yield f"refers to a function attribute {referenced!r}, but is not in a function"


@rule("attribute.reference-known", ERROR, "IR: Functions", "add it to the function, or correct the name")
def reference_known(attribute: CheckedAttribute) -> Problems:
    """An attribute reference must name an attribute of the function."""
    referenced = attribute.proto.ref_attr_name
    if referenced:
        *_, outermost = attribute.node.container.with_enclosing()
        if isinstance(outermost, CheckedFunction) and referenced not in outermost.attribute_names:
            yield f"refers to {referenced!r}, which is not an attribute of the function"


@rule("attribute.reference-only", ERROR, "IR: Attributes", "remove either the value or the reference")
def reference_only(attribute: CheckedAttribute) -> Problems:
    """An attribute reference must not have a value as well."""
    if attribute.proto.ref_attr_name and attribute.fields:
        yield f"has a value and a reference to the function attribute {attribute.proto.ref_attr_name!r}"


@rule("node.attribute-known", ERROR, SIGNATURE, "remove the attribute, or correct its name")
def known_attribute(attribute: CheckedAttribute) -> Problems:
    """A node may only have attributes that its operator defines, and private ones with the prefix __."""
    operator, name = attribute.node.operator, attribute.proto.name
    is_private = not name or name.startswith(PRIVATE)
    if operator is None or is_private or name in operator.attributes:
        return
    if not adds_attribute(attribute.node, name):
        yield f"is not an attribute of {operator.id}"


@rule("node.attribute-type", ERROR, SIGNATURE, "provide a value of the type that the operator defines")
def declared_type(attribute: CheckedAttribute) -> Problems:
    """An attribute must have the type that its operator defines."""
    declared = _declaration_of(attribute)
    actual = attribute.proto.type or next((TYPE_BY_FIELD[used].number for used in attribute.fields), 0)
    if declared is not None and actual and actual != ATTRIBUTE_TYPES[declared.type].number:
        yield f"has the type {type_name(actual)}; expected {declared.type}"


@rule("node.attribute-value", ERROR, SIGNATURE, "use one of the values that the operator allows")
def allowed_value(attribute: CheckedAttribute) -> Problems:
    """An attribute must have a value that some version of the operator allows."""
    for element, expected in _disallowed_values(attribute):
        if not _is_flag(attribute) and not _is_allowed_by_another_version(attribute, element):
            yield f"is {element!r}; {expected}"


@rule("node.attribute-flag", WARNING, SIGNATURE, "use 1 for true and 0 for false")
def boolean_value(attribute: CheckedAttribute) -> Problems:
    """A Boolean attribute must be 0 or 1."""
    if _is_flag(attribute):
        yield from (f"is {element!r}; {expected}" for element, expected in _disallowed_values(attribute))


@rule(
    "node.attribute-value-version",
    WARNING,
    SIGNATURE,
    "use an allowed value, or import an opset that allows this one",
)
def value_allowed_by_version(attribute: CheckedAttribute) -> Problems:
    """An attribute must have a value that the imported version of the operator allows."""
    for element, expected in _disallowed_values(attribute):
        if not _is_flag(attribute) and _is_allowed_by_another_version(attribute, element):
            yield f"is {element!r}, which only other versions of the operator allow; {expected}"


@rule("node.attribute-type-code", ERROR, SIGNATURE, "use the number of a type that the output may have")
def type_code(attribute: CheckedAttribute) -> Problems:
    """An attribute that sets an element type must be the number of one that the output may have."""
    operator, proto = attribute.node.operator, attribute.proto
    types = operator.type_codes.get(proto.name) if operator is not None else None
    if operator is None or types is None or proto.ref_attr_name or "i" not in attribute.fields:
        return
    kind, is_default = BY_NUMBER.get(proto.i), operator.attributes[proto.name].default == proto.i
    if kind is None and not is_default:
        yield f"is {proto.i}, which is not the number of an element type"
    elif kind is not None and not any(f"tensor({kind.name})" in each for each in types):
        yield f"is {proto.i}, {kind.name}, which {operator.id} cannot produce"


def _declaration_of(attribute: CheckedAttribute) -> Declared | None:
    operator = attribute.node.operator
    return operator.attributes.get(attribute.proto.name) if operator is not None else None


def _disallowed_values(attribute: CheckedAttribute) -> Iterator[tuple[Scalar, str]]:
    """Yield each value that the operator does not allow, and a description of the allowed values."""
    declared, proto = _declaration_of(attribute), attribute.proto
    if declared is None or proto.type != ATTRIBUTE_TYPES[declared.type].number or proto.ref_attr_name:
        return
    for element in _elements_of(read_attribute(proto)) if restricts_values(declared) else ():
        if not declared.allows(element):
            yield element, _allowed_values(declared)


def _is_flag(attribute: CheckedAttribute) -> bool:
    declared = _declaration_of(attribute)
    return declared is not None and declared.values == (0, 1)


def _is_allowed_by_another_version(attribute: CheckedAttribute, element: Scalar) -> bool:
    operator = attribute.node.operator
    assert operator is not None
    history = attribute.node.container.model.registry.operator(operator.name, operator.domain)
    others = (version.attributes.get(attribute.proto.name) for version in history.versions) if history else ()
    kind = operator.attributes[attribute.proto.name].type
    # Skip versions that declare the attribute with a different type, because values are not comparable.
    return any(other.allows(element) for other in others if other and other.type == kind)


def _elements_of(value: Any) -> Iterator[Scalar]:
    for element in value if isinstance(value, tuple) else (value,):
        yield element.decode(errors="replace") if isinstance(element, bytes) else element


def _allowed_values(declared: Declared) -> str:
    if declared.values is not None:
        return f"expected one of {', '.join(map(repr, declared.values))}"
    lower = f" of at least {declared.minimum}" if declared.minimum is not None else ""
    upper = f" of at most {declared.maximum}" if declared.maximum is not None else ""
    return f"expected a value{lower}{' and' if lower and upper else ''}{upper}"
