"""Rules for the types that a model declares for its values."""

from __future__ import annotations

from opshift.checker.checked_nodes import CheckedValue
from opshift.checker.containers import CheckedContainer, CheckedFunction, CheckedGraph
from opshift.checker.findings import ERROR, INFO, WARNING, list_names
from opshift.checker.rule_table import Problems, rule
from opshift.model.element_types import BY_NUMBER
from opshift.model.messages import TypeProto
from opshift.model.types import element_type_of

MAP_KEY_TYPES = frozenset(
    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "string")
)
"""Element types that the keys of a map can have."""


@rule(
    "value.name",
    ERROR,
    source="onnx.proto: ValueInfoProto",
    remedy="give it the name that nodes use, or remove it",
)
def name(value: CheckedValue) -> Problems:
    """An input or output must have a name."""
    if not value.proto.name and value.role != "value":
        yield "has no name"


@rule("value.type", ERROR, source="IR: Graphs", remedy="declare the complete type of the value")
def top_type(value: CheckedValue) -> Problems:
    """The inputs and outputs of the main graph must have a complete type."""
    if _is_signature(value):
        problem = type_problem(value.proto.type)
        if problem:
            yield problem


@rule(
    "value.shape",
    ERROR,
    source="IR: Graphs; IR: Static tensor shapes",
    remedy="declare the rank, with empty dimensions where they are unknown",
)
def top_shape(value: CheckedValue) -> Problems:
    """The tensor inputs and outputs of the main graph must have a shape; its dimensions may be unknown."""
    if _is_signature(value):
        kind = value.proto.type.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type") and not getattr(value.proto.type, kind).HasField(
            "shape"
        ):
            yield "has no shape"


@rule("value.stated-type", WARNING, source="onnx.proto: TypeProto", remedy="complete the type, or remove it")
def declared_type(value: CheckedValue) -> Problems:
    """The declared type of a value should be complete."""
    if not _is_signature(value) and value.proto.HasField("type"):
        problem = type_problem(value.proto.type)
        if problem:
            yield problem


@rule("value.dimension", WARNING, source="IR: Tensor Definition", remedy="leave an unknown dimension empty")
def dimension(value: CheckedValue) -> Problems:
    """A declared dimension should not be negative."""
    kind = value.proto.type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        for dim in getattr(value.proto.type, kind).shape.dim:
            if dim.dim_value < 0:
                yield f"has the negative dimension {dim.dim_value}"


@rule("value.stated-once", WARNING, source="onnx.proto: GraphProto.value_info", remedy="keep one of them")
def declared_once(container: CheckedGraph | CheckedFunction) -> Problems:
    """A value should have only one entry in value_info."""
    seen: set[str] = set()
    for entry in container.proto.value_info:
        if entry.name in seen:
            yield f"value_info has more than one entry for {entry.name!r}"
        seen.add(entry.name)


@rule(
    "value.stated-alike",
    WARNING,
    source="IR: Names Within a Graph",
    remedy="keep the correct type",
)
def consistent_types(graph: CheckedGraph) -> Problems:
    """All declarations of a value should have the same element type."""
    types: dict[str, str] = {}
    for value in (*graph.proto.input, *graph.proto.value_info, *graph.proto.output):
        declared = element_type_of(value.type)
        if declared is not None and types.setdefault(value.name, declared) != declared:
            yield f"{value.name!r} is declared as {types[value.name]} and as {declared}"


@rule("value.stated-known", INFO, source="onnx.proto: GraphProto.value_info", remedy="remove the entries")
def known_values(container: CheckedGraph | CheckedFunction) -> Problems:
    """An entry of value_info should be about an existing value."""
    sees = container.scope.is_visible
    unknown = [entry.name for entry in container.proto.value_info if not entry.name or not sees(entry.name)]
    if unknown:
        yield f"value_info has entries for unknown values: {list_names(unknown)}"


def type_problem(proto: TypeProto) -> str:
    """Return the problem of an incomplete TypeProto; empty if it is complete."""
    while True:
        kind = proto.WhichOneof("value")
        if kind is None:
            return "has no type"
        content = getattr(proto, kind)
        if kind in ("tensor_type", "sparse_tensor_type"):
            return _element_type_problem(content.elem_type)
        if kind == "map_type":
            key = BY_NUMBER.get(content.key_type)
            if key is None or key.name not in MAP_KEY_TYPES:
                return f"has a map with {f'keys of type {key.name}' if key else 'no key type'}"
        elif kind == "opaque_type":
            return "" if content.name else "has an opaque type without a name"
        inner = "value_type" if kind == "map_type" else "elem_type"
        if not content.HasField(inner):
            return f"has a {kind.removesuffix('_type')} type without {inner}"
        proto = getattr(content, inner)


def _element_type_problem(number: int) -> str:
    if number in BY_NUMBER:
        return ""
    return f"has the unknown element type {number}" if number else "has no element type"


def _is_signature(value: CheckedValue) -> bool:
    container: CheckedContainer = value.container
    return isinstance(container, CheckedGraph) and container.is_main and value.role != "value"
