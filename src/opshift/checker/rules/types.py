"""Rules for the types that a model declares for its values, and for the types and axes of nodes."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.checker.checked_nodes import CheckedAttribute, CheckedValue
from opshift.checker.checked_values import BoundValue, ShapedNode, TypedNode
from opshift.checker.containers import CheckedFunction, CheckedGraph
from opshift.checker.findings import ERROR, INFO, WARNING, list_names, repeated
from opshift.checker.released_schemas import adds_type
from opshift.checker.rule_table import SIGNATURE, Problems, rule
from opshift.inference.infer_types import infer_types
from opshift.inference.node_problems import axis_problem
from opshift.model.attributes import types_in
from opshift.model.element_types import BY_NUMBER
from opshift.model.messages import TypeProto
from opshift.model.node import Node as View
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.types import (
    MAP_KEY_TYPES,
    element_type_of,
    shape_of,
    shape_to_string,
    shapes_conflict,
    type_to_string,
)
from opshift.registry.models import OperatorVersion, Parameter

TYPE = "type"
"""Attribute of Optional with the type of the content."""

CAST_REMEDY = "cast the value, or correct its declared type"


@rule("value.name", ERROR, "onnx.proto: ValueInfoProto", "give it the name that nodes use, or remove it")
def name(value: CheckedValue) -> Problems:
    """An input or output must have a name."""
    if not value.proto.name and value.role != "value":
        yield "has no name"


@rule("value.type", ERROR, "IR: Graphs", "declare a complete and valid type")
def top_type(value: CheckedValue) -> Problems:
    """The inputs and outputs of the main graph must have a complete type."""
    return type_problems(value.proto.type) if value.is_signature else ()


@rule(
    "value.shape",
    ERROR,
    "IR: Graphs; IR: Static tensor shapes",
    "declare the rank; unknown dimensions can be empty",
)
def top_shape(value: CheckedValue) -> Problems:
    """The tensor inputs and outputs of the main graph must have a shape; its dimensions may be unknown."""
    declared = _tensor_type(value) if value.is_signature else None
    if declared and not declared.HasField("shape"):
        yield "has no shape"


@rule("value.stated-type", WARNING, "onnx.proto: TypeProto", "complete or remove the type")
def declared_type(value: CheckedValue) -> Problems:
    """The declared type of a value should be complete."""
    is_declared = not value.is_signature and value.proto.HasField("type")
    return type_problems(value.proto.type) if is_declared else ()


@rule("value.optional", ERROR, "IR: Input / Output Data Types", "declare a single optional")
def nested_optional(found: CheckedValue | CheckedAttribute) -> Problems:
    """An optional must contain a tensor, a sequence or a map, not an optional."""
    types = types_in(found.proto) if isinstance(found, CheckedAttribute) else (found.proto.type,)
    for declared in types:
        # Return early, because nearly all values are tensors.
        text = None if declared.HasField("tensor_type") else type_to_string(declared)
        if text and "optional(optional(" in text:
            yield f"has the type {text}"


@rule("value.dimension", WARNING, "IR: Tensor Definition", "leave an unknown dimension empty")
def dimension(value: CheckedValue) -> Problems:
    """A declared dimension should not be negative."""
    declared = _tensor_type(value)
    for dim in declared.shape.dim if declared else ():
        if dim.dim_value < 0:
            yield f"has the negative dimension {dim.dim_value}"


@rule("value.stated-once", WARNING, "onnx.proto: GraphProto.value_info", "keep one of the entries")
def declared_once(container: CheckedGraph | CheckedFunction) -> Problems:
    """A value should have only one entry in value_info."""
    for name, _ in repeated(entry.name for entry in container.proto.value_info):
        yield f"value_info has more than one entry for {name!r}"


@rule("value.stated-alike", WARNING, "IR: Names Within a Graph", "keep the correct type")
def consistent_types(graph: CheckedGraph) -> Problems:
    """All declarations of a value should have the same element type and shape."""
    types: dict[str, TypeProto] = {}
    for value in (*graph.proto.input, *graph.proto.value_info, *graph.proto.output):
        first = types.setdefault(value.name, value.type)
        if first is not value.type:
            before, after = element_type_of(first), element_type_of(value.type)
            if before and after and before != after:
                yield f"{value.name!r} is declared as {before} and as {after}"
            shape, other = shape_of(first), shape_of(value.type)
            if shape is not None and other is not None and shapes_conflict(shape, other):
                shapes = f"the shape {shape_to_string(shape)} and {shape_to_string(other)}"
                yield f"{value.name!r} is declared with {shapes}"


@rule("value.stated-known", INFO, "onnx.proto: GraphProto.value_info", "remove the entries")
def known_values(container: CheckedGraph | CheckedFunction) -> Problems:
    """An entry of value_info should be about an existing value."""
    sees = container.scope.is_visible
    unknown = [entry.name for entry in container.proto.value_info if not entry.name or not sees(entry.name)]
    if unknown:
        yield f"value_info has entries for unknown values: {list_names(unknown)}"


def type_problems(proto: TypeProto) -> Problems:
    """Yield a problem if a TypeProto, or a type inside it, is incomplete or contains an invalid type."""
    kind = proto.WhichOneof("value")
    if kind is None:
        yield "has no type"
        return
    content = getattr(proto, kind)
    key = BY_NUMBER.get(content.key_type) if kind == "map_type" else None
    inner = "value_type" if kind == "map_type" else "elem_type"
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield from element_type_problems(content.elem_type)
    elif kind == "opaque_type":
        if not content.name:
            yield "has an opaque type without a name"
    elif kind == "map_type" and (key is None or key.name not in MAP_KEY_TYPES):
        yield f"has a map with {f'keys of type {key.name}' if key else 'no key type'}"
    elif content.HasField(inner):
        yield from type_problems(getattr(content, inner))
    else:
        yield f"has a {kind.removesuffix('_type')} type without {inner}"


def element_type_problems(number: int) -> Problems:
    """Yield a problem if `number` is not a TensorProto.DataType, or is UNDEFINED (0)."""
    if number not in BY_NUMBER:
        yield f"has the unknown element type {number}" if number else "has no element type"


def _tensor_type(value: CheckedValue) -> TypeProto.Tensor | TypeProto.SparseTensor | None:
    declared = value.proto.type
    if declared.HasField("sparse_tensor_type"):
        return declared.sparse_tensor_type
    return declared.tensor_type if declared.HasField("tensor_type") else None


@rule("type.input", ERROR, SIGNATURE, CAST_REMEDY)
def input_type(typed: TypedNode) -> Problems:
    """An input of a node must have a type that its operator accepts."""
    for formal, name, actual in typed.bound_inputs():
        if not _is_accepted(typed, formal, actual):
            yield f"input {formal.name!r}, {name!r}, is {actual}, which {typed.operator.id} does not accept"


@rule("type.output", ERROR, SIGNATURE, "correct the declared type of the value")
def output_type(typed: TypedNode) -> Problems:
    """An output of a node must have a type that its operator can produce."""
    if not _is_old_constant(typed.operator):
        yield from _invalid_outputs(typed)


@rule("type.constant", WARNING, SIGNATURE, "make it an initializer, or raise the opset to 9")
def old_constant(typed: TypedNode) -> Problems:
    """A Constant should be floating-point before opset 9; exporters and runtimes support more types."""
    if _is_old_constant(typed.operator):
        yield from _invalid_outputs(typed)


@rule("type.variable", ERROR, SIGNATURE, CAST_REMEDY)
def type_variables(typed: TypedNode) -> Problems:
    """All values bound to a type variable of the operator must have the same type."""
    first: dict[str, BoundValue] = {}
    for value in (*typed.bound_inputs(), *typed.bound_outputs()):
        if value.formal.homogeneous and value.formal.type in typed.operator.type_constraints:
            other = first.setdefault(value.formal.type, value)
            if other.type != value.type:
                types = f"{other.name!r} is {other.type} and {value.name!r} is {value.type}"
                yield f"{types}; {value.formal.type} of {typed.operator.id} requires the same type for both"


@rule("type.named", ERROR, SIGNATURE, "correct the attribute, or the declared type")
def attribute_types(typed: TypedNode) -> Problems:
    """An output must have the type that an attribute of its node specifies."""
    # Optional uses its attribute `type` only if it has no input.
    is_optional = TYPE in typed.operator.attributes and not any(typed.node.inputs)
    formals = [output for output in typed.operator.outputs if output.type_attributes or is_optional]
    if formals:
        view = View.from_proto(typed.node.proto)
        inferred = infer_types(view, typed.operator, typed.node.container.scope)
        rows = zip(typed.operator.outputs, typed.node.outputs, typed.outputs, inferred, strict=False)
        for formal, name, actual, expected in rows:
            if formal in formals and actual and expected and actual != expected:
                stated = formal.type_attributes or (TYPE,)
                attribute = next((each for each in stated if each in view.attributes), stated[0])
                yield f"{name!r} is {actual}; attribute {attribute!r} specifies {expected}"


@rule("node.axis", ERROR, SIGNATURE, "correct the axis, or the declared shape of the input")
def axis_range(shaped: ShapedNode) -> Problems:
    """An axis must be in the range that the rank of the input permits."""
    scope = shaped.node.container.scope
    problem = axis_problem(shaped.view, shaped.operator, scope, scope.rank)
    if problem:
        yield problem


def _invalid_outputs(typed: TypedNode) -> Iterator[str]:
    for formal, name, actual in typed.bound_outputs():
        if not _is_accepted(typed, formal, actual):
            yield f"output {formal.name!r}, {name!r}, is {actual}, which {typed.operator.id} cannot produce"


def _is_accepted(typed: TypedNode, formal: Parameter, actual: str) -> bool:
    return actual in typed.operator.types_of(formal) or adds_type(typed.node, formal, actual)


def _is_old_constant(operator: OperatorVersion) -> bool:
    return (operator.domain, operator.name) == (DEFAULT_DOMAIN, "Constant") and operator.since_version < 9
