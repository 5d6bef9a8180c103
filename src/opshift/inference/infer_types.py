"""Inference of the element types of one node's outputs, from its operator, attributes and subgraphs."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from opshift.inference.constants import SCALAR_ATTRIBUTES, has_several_values
from opshift.inference.fact_kinds import Shortcut
from opshift.inference.facts import InferenceScope
from opshift.model.attributes import LIST_ELEMENT_TYPES
from opshift.model.element_types import BY_NAME, NAME_BY_NUMBER, type_string
from opshift.model.node import Graph, Node, Tensor, Value
from opshift.model.types import element_type_of, short_type
from opshift.registry.models import OperatorVersion, Parameter

CONTAINER_PREFIXES = ("seq(", "optional(")
"""Prefixes of the type strings of sequences and optionals."""


def infer_types(node: Node, operator: OperatorVersion, scope: InferenceScope) -> Sequence[str | None]:
    """Return the element type of each output, or the type string of a non-tensor; `None` if unknown."""
    return [_output_type(node, position, operator, scope) for position in range(len(node.outputs))]


def type_link(operator: OperatorVersion) -> int | None:
    """Return the position of an input that always has the element type of the first output, or `None`."""
    output = parameter_at(operator.outputs, 0)
    if output is None or output.type_attributes or not output.homogeneous or operator.name == "Constant":
        return None
    if len(operator.types_of(output)) == 1:
        return None
    shared = (i for i, each in enumerate(operator.inputs) if each.type == output.type and each.homogeneous)
    return next(shared, None)


def type_inputs(operator: OperatorVersion) -> tuple[int, ...] | None:
    """Return `()` if no output type depends on inputs, or else `None`: any input may determine a type."""
    stated = operator.required_attributes
    depends = any(
        each.homogeneous
        and len(operator.types_of(each)) > 1
        and each.type_attribute not in stated
        and not each.element_attributes
        for each in operator.outputs
    )
    return None if depends else ()


def type_shortcut(operator: OperatorVersion) -> Shortcut[str] | None:
    """Return a `Shortcut` for Constant and ConstantOfShape, frequent nodes in many models, or `None`."""
    return _type_of_tensor if operator.shape in ("constant", "constant_of_shape") else None


def _type_of_tensor(scope: InferenceScope, name: str) -> str | None:
    """Return the type of the tensor `value`, the only attribute of a value's producer; otherwise `None`."""
    attributes = scope.proto_of(scope.producing_records[name]).attribute[:]
    is_tensor = len(attributes) == 1 and attributes[0].name == "value" and attributes[0].HasField("t")
    return NAME_BY_NUMBER.get(attributes[0].t.data_type) if is_tensor else None


@lru_cache(maxsize=4096)
def _deciding_positions(operator: OperatorVersion, position: int, count: int) -> tuple[int, ...]:
    """Return the positions, below `count`, of the inputs that determine the element type of an output."""
    output = parameter_at(operator.outputs, position)
    if output is None:
        return ()
    formals = ((index, parameter_at(operator.inputs, index)) for index in range(count))
    return tuple(index for index, formal in formals if formal and determines_type(formal, output))


def determines_type(formal: Parameter, output: Parameter) -> bool:
    """Return whether an output has the type of the input `formal`, always or if no attribute sets a type."""
    return (formal.type == output.type and formal.homogeneous) or formal.name == output.absent_type


def _output_type(node: Node, position: int, operator: OperatorVersion, scope: InferenceScope) -> str | None:
    output = parameter_at(operator.outputs, position)
    if output is None:
        return None
    if output.type_attributes and node.has_attribute_references:
        return None
    if node.op_type == "Constant" and has_several_values(node):
        return None
    named = type_from_attributes(operator, node, output)
    if named:
        return f"seq(tensor({named}))" if operator.types_of(output)[0].startswith("seq(") else named
    if not output.homogeneous:
        return _type_from_body(node, position, scope)
    if node.op_type == "Constant" and not node.has_attribute_references:
        return type_of_constant(node)
    types = operator.types_of(output)
    if len(types) == 1:
        return short_type(types[0])
    deciding = (node.inputs[each] for each in _deciding_positions(operator, position, len(node.inputs)))
    decided = next(filter(None, map(scope.element_type, filter(None, deciding))), None)
    fixed = output.absent_type if output.absent_type and "(" in output.absent_type else None
    return decided or (short_type(fixed) if fixed else _container_type(types, node, scope))


def _container_type(types: Sequence[str], node: Node, scope: InferenceScope) -> str | None:
    """Derive an output type from the type of input 0: a sequence or optional of it, its element, or itself.

    Optional without an input has the type in the attribute `type`. Return `None` if the type is unknown, or
    not in `types`.
    """
    if node.input(0):
        source = scope.element_type(node.input(0))
    else:
        stated: Any = None if node.has_attribute_references else node.attribute("type")
        source = element_type_of(stated) if hasattr(stated, "tensor_type") else None
    if source is None:
        return None
    source_type = type_string(source)
    if all(each.startswith(CONTAINER_PREFIXES) for each in types):
        containers = f"seq({source_type})", f"optional({source_type})"
        return next((each for each in containers if each in types), None)
    if not source_type.startswith(CONTAINER_PREFIXES):
        return None
    element = source_type.partition("(")[2].removesuffix(")")
    return next((short_type(each) for each in (source_type, element) if each in types), None)


def parameter_at(parameters: tuple[Parameter, ...], position: int) -> Parameter | None:
    """Return the parameter at a position, or `None`; a variadic last parameter covers all later ones."""
    if position < len(parameters):
        return parameters[position]
    last = parameters[-1] if parameters else None
    return last if last and last.option == "variadic" else None


def type_from_attributes(operator: OperatorVersion, node: Node, output: Parameter) -> str | None:
    """Return the element type of an output that attributes of the node or their defaults set, or `None`."""
    named = _type_from_attribute(operator, node, output.type_attribute) if output.type_attribute else None
    if named:
        return named
    held = next((each for each in output.element_attributes if node.attribute(each)), None)
    return LIST_ELEMENT_TYPES[operator.attributes[held].type] if held else None


def _type_from_attribute(operator: OperatorVersion, node: Node, attribute: str) -> str | None:
    stated = node.attribute(attribute)
    if stated is None and attribute in operator.attributes:
        stated = operator.attributes[attribute].default
    if isinstance(stated, bytes):
        name = stated.decode(errors="replace").lower()
        return name if name in BY_NAME else None
    if isinstance(stated, Tensor):
        return stated.element_type
    return NAME_BY_NUMBER.get(stated if isinstance(stated, int) else getattr(stated, "data_type", 0))


def type_of_constant(node: Node) -> str | None:
    """Return the element type of a Constant, or `None`; the value, which may be large, is not decoded."""
    for name, kind, _ in SCALAR_ATTRIBUTES:
        if name in node.attributes or f"{name}s" in node.attributes:
            return kind
    sparse = node.attribute("sparse_value")
    value = node.attribute("value") if sparse is None else getattr(sparse, "values", None)
    if isinstance(value, Tensor):
        return value.element_type
    return NAME_BY_NUMBER.get(getattr(value, "data_type", 0))


_BODY_OFFSET = {
    "If": ("then_branch", 0), "Loop": ("body", 1), "Scan": ("body", 0), "SequenceMap": ("body", 0),
}  # fmt: skip
"""By operator: attribute with a subgraph that computes the outputs, and subgraph position of output 0.

The position in a Loop body is 1, because the first output of the body is the condition.
"""


def _type_from_body(node: Node, position: int, scope: InferenceScope) -> str | None:
    attribute, offset = _BODY_OFFSET.get(node.op_type, ("", 0))
    emitted, name, body = body_output(node, attribute, offset + position, scope)
    if emitted is not None:
        return emitted.type
    found = body.element_type(name) if body else None
    return f"seq(tensor({found}))" if found and node.op_type == "SequenceMap" else found


def body_output(
    node: Node, attribute: str, position: int, scope: InferenceScope
) -> tuple[Value | None, str, InferenceScope | None]:
    """Return a subgraph output: its `Value` in an emitted `Graph`, its name and scope in a GraphProto.

    The other members of the result are `None` or empty; without such an output, all members are.
    """
    graph = node.attribute(attribute)
    if isinstance(graph, Graph):
        return (graph.outputs[position] if position < len(graph.outputs) else None), "", None
    if not hasattr(graph, "output") or position >= len(graph.output):
        return None, "", None
    return None, graph.output[position].name, scope.child(graph)
