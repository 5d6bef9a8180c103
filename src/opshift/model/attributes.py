"""Attributes of nodes: the table of their types, and functions that read and write AttributeProtos."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from opshift.model.errors import CannotConvert

if TYPE_CHECKING:
    from opshift.model.messages import AttributeProto, GraphProto, SparseTensorProto, TensorProto, TypeProto


class AttributeType(NamedTuple):
    """Type of an attribute: its name, its number in `AttributeProto.type`, and the field with the value."""

    name: str
    number: int
    field: str
    is_repeated: bool
    is_plain: bool
    """Whether the value consists of numbers or strings, not of messages."""


_TYPES = (
    AttributeType("FLOAT", 1, "f", is_repeated=False, is_plain=True),
    AttributeType("INT", 2, "i", is_repeated=False, is_plain=True),
    AttributeType("STRING", 3, "s", is_repeated=False, is_plain=True),
    AttributeType("TENSOR", 4, "t", is_repeated=False, is_plain=False),
    AttributeType("GRAPH", 5, "g", is_repeated=False, is_plain=False),
    AttributeType("FLOATS", 6, "floats", is_repeated=True, is_plain=True),
    AttributeType("INTS", 7, "ints", is_repeated=True, is_plain=True),
    AttributeType("STRINGS", 8, "strings", is_repeated=True, is_plain=True),
    AttributeType("TENSORS", 9, "tensors", is_repeated=True, is_plain=False),
    AttributeType("GRAPHS", 10, "graphs", is_repeated=True, is_plain=False),
    AttributeType("SPARSE_TENSOR", 11, "sparse_tensor", is_repeated=False, is_plain=False),
    AttributeType("SPARSE_TENSORS", 12, "sparse_tensors", is_repeated=True, is_plain=False),
    AttributeType("TYPE_PROTO", 13, "tp", is_repeated=False, is_plain=False),
    AttributeType("TYPE_PROTOS", 14, "type_protos", is_repeated=True, is_plain=False),
)

ATTRIBUTE_TYPES: Mapping[str, AttributeType] = {each.name: each for each in _TYPES}

TYPE_BY_NUMBER: Mapping[int, AttributeType] = {each.number: each for each in _TYPES}
"""Attribute types by their value of `AttributeProto.type`. UNDEFINED (0) is not among them."""

TYPE_BY_FIELD: Mapping[str, AttributeType] = {each.field: each for each in _TYPES}
"""Attribute types by the field of AttributeProto that holds the value."""

LIST_ELEMENT_TYPES: Mapping[str, str] = {"FLOATS": "float", "INTS": "int64", "STRINGS": "string"}
"""Element types of the values in list attributes, by the name of the attribute type."""

FLOAT, INT, INTS, STRING, TENSOR, GRAPH, GRAPHS = (
    ATTRIBUTE_TYPES[name].number for name in ("FLOAT", "INT", "INTS", "STRING", "TENSOR", "GRAPH", "GRAPHS")
)


def type_name(number: int) -> str:
    """Return the name of an attribute type, or the number as text if the type is unknown."""
    kind = TYPE_BY_NUMBER.get(number)
    return kind.name if kind else str(number)


def read_attribute(attribute: AttributeProto) -> Any:
    """Return the value of an AttributeProto: a number, bytes, a message, or a tuple of these.

    Models with IR version 1 may omit the type: then the set field determines it. If no field is set, or the
    type is unknown, the value is the field `i`.

    Raises:
        CannotConvert: the attribute refers to an attribute of the enclosing function.
    """
    if attribute.ref_attr_name:
        reason = f"attribute {attribute.name!r} refers to an attribute of the function, set by its calls"
        remedy = "inline the function first, so that the attribute has a value"
        raise CannotConvert(reason, "function.reference", remedy=remedy)
    kind = TYPE_BY_NUMBER.get(attribute.type or _number_of_set_field(attribute))
    if kind is None:
        return attribute.i
    value = getattr(attribute, kind.field)
    # a slice of a repeated field is several times faster than an iteration
    return tuple(value[:]) if kind.is_repeated else value


def _number_of_set_field(attribute: AttributeProto) -> int:
    """Return the number of the first type whose field is set; 0 if no field is set."""
    for kind in _TYPES:
        if getattr(attribute, kind.field) if kind.is_repeated else attribute.HasField(kind.field):
            return kind.number
    return 0


def write_attribute(attribute: AttributeProto, name: str, kind: AttributeType, value: Any) -> None:
    """Write a number, a string, or a list of these to an empty AttributeProto."""
    attribute.name, attribute.type = name, kind.number
    if kind.is_repeated:
        getattr(attribute, kind.field).extend(map(encode, value))
    else:
        setattr(attribute, kind.field, encode(value))


def encode(value: object) -> object:
    """Return a string as bytes; other values stay unchanged."""
    return value.encode() if isinstance(value, str) else value


def graphs_in(attribute: AttributeProto) -> Iterator[GraphProto]:
    """Yield the subgraphs of an attribute."""
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def sparse_tensors_in(attribute: AttributeProto) -> Iterator[SparseTensorProto]:
    """Yield the sparse tensors of an attribute."""
    if attribute.HasField("sparse_tensor"):
        yield attribute.sparse_tensor
    yield from attribute.sparse_tensors


def dense_tensors_in(attribute: AttributeProto) -> Iterator[TensorProto]:
    """Yield the dense tensors of an attribute."""
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors


def types_in(attribute: AttributeProto) -> Iterator[TypeProto]:
    """Yield the TypeProtos in an attribute."""
    if attribute.HasField("tp"):
        yield attribute.tp
    yield from attribute.type_protos


def tensors_in(attribute: AttributeProto) -> Iterator[TensorProto]:
    """Yield the tensors of an attribute, including values and indices of sparse tensors."""
    yield from dense_tensors_in(attribute)
    for sparse in sparse_tensors_in(attribute):
        yield from (sparse.values, sparse.indices)
