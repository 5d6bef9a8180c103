"""Rules for the types that a model states."""

from __future__ import annotations

from typing import Any

from opshift.converter.legality.containers import Container, Function, Graph
from opshift.converter.legality.findings import ERROR, INFO, WARNING
from opshift.converter.legality.names import some
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import Value
from opshift.converter.types import element_type_of
from opshift.registry.element_types import BY_NUMBER

KEYS = frozenset(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "string"))
"""What the keys of a map may be."""


@rule("value.name", ERROR, source="onnx.proto: ValueInfoProto", remedy="name it as nodes do, or remove it")
def name(value: Value) -> Flaws:
    """An input or output has a name."""
    if not value.proto.name and value.role != "value":
        yield "has no name"


@rule("value.type", ERROR, source="IR: Graphs", remedy="state the type of the value")
def top_type(value: Value) -> Flaws:
    """The inputs and outputs of the model have a complete type."""
    if _is_signature(value):
        flaw = type_flaw(value.proto.type)
        if flaw:
            yield flaw


@rule(
    "value.shape",
    ERROR,
    source="IR: Graphs; IR: Static tensor shapes",
    remedy="state the rank, with dimensions that have neither number nor name",
)
def top_shape(value: Value) -> Flaws:
    """The inputs and outputs of the model that are tensors have a shape, if only of unknown dimensions."""
    if _is_signature(value):
        kind = value.proto.type.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type") and not getattr(value.proto.type, kind).HasField(
            "shape"
        ):
            yield "has no shape"


@rule(
    "value.stated-type", WARNING, source="onnx.proto: TypeProto", remedy="complete the type, or leave it out"
)
def stated_type(value: Value) -> Flaws:
    """A type that is stated of a value is complete."""
    if not _is_signature(value) and value.proto.HasField("type"):
        flaw = type_flaw(value.proto.type)
        if flaw:
            yield flaw


@rule("value.dimension", WARNING, source="IR: Tensor Definition", remedy="leave an unknown dimension empty")
def dimension(value: Value) -> Flaws:
    """A dimension that is a number is not negative."""
    kind = value.proto.type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        for each in getattr(value.proto.type, kind).shape.dim:
            if each.dim_value < 0:
                yield f"has a dimension of {each.dim_value}"


@rule("value.stated-once", WARNING, source="onnx.proto: GraphProto.value_info", remedy="keep one of them")
def stated_once(container: Graph | Function) -> Flaws:
    """A type is stated once of each value."""
    seen: set[str] = set()
    for each in container.proto.value_info:
        if each.name in seen:
            yield f"value_info lists {each.name!r} more than once"
        seen.add(each.name)


@rule(
    "value.stated-alike",
    WARNING,
    source="IR: Names Within a Graph",
    remedy="keep the type that is right",
)
def stated_alike(graph: Graph) -> Flaws:
    """What is stated of a value in several places is one type."""
    types: dict[str, str] = {}
    for each in (*graph.proto.input, *graph.proto.value_info, *graph.proto.output):
        stated = element_type_of(each.type)
        if stated is not None and types.setdefault(each.name, stated) != stated:
            yield f"{each.name!r} is stated to be {types[each.name]} and {stated}"


@rule("value.stated-known", INFO, source="onnx.proto: GraphProto.value_info", remedy="remove it")
def stated_known(container: Graph | Function) -> Flaws:
    """Types are stated of values that there are."""
    sees = container.scope.sees
    odd = [each.name for each in container.proto.value_info if not each.name or not sees(each.name)]
    if odd:
        yield f"value_info lists what no node makes: {some(odd)}"


def type_flaw(proto: Any) -> str:
    """What a TypeProto lacks; empty if it is complete."""
    while True:
        kind = proto.WhichOneof("value")
        if kind is None:
            return "has no type"
        held = getattr(proto, kind)
        if kind in ("tensor_type", "sparse_tensor_type"):
            return _element_flaw(held.elem_type)
        if kind == "map_type":
            key = BY_NUMBER.get(held.key_type)
            if key is None or key.name not in KEYS:
                return f"has a map whose keys are {key.name if key else 'of no type'}"
        elif kind == "opaque_type":
            return "" if held.name else "has an opaque type without a name"
        inner = "value_type" if kind == "map_type" else "elem_type"
        if not held.HasField(inner):
            return f"has a {kind.removesuffix('_type')} of nothing"
        proto = getattr(held, inner)


def _element_flaw(number: int) -> str:
    if number in BY_NUMBER:
        return ""
    return f"has the element type {number}, which is none" if number else "has no element type"


def _is_signature(value: Value) -> bool:
    container: Container = value.container
    return isinstance(container, Graph) and container.is_main and value.role != "value"
