"""Inference for the outputs of one node: element types from operator signatures, shapes from shape rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from opshift.inference.constants import SCALAR_ATTRIBUTES
from opshift.inference.facts import InferenceScope
from opshift.inference.propagation import MAXIMUM, FactKind, Inferred
from opshift.model.element_types import BY_NAME, BY_NUMBER
from opshift.model.node import Graph, Node, Tensor, Value
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.shape_context import ShapeContext

CONTAINER_PREFIXES = ("seq(", "optional(")
"""Prefixes of the type strings of sequences and optionals."""


def infer_types(node: Node, operator: OperatorVersion, scope: InferenceScope) -> Sequence[str | None]:
    """Return the element type of each output."""
    return [_output_type(node, position, operator, scope) for position in range(len(node.outputs))]


def infer_shapes(node: Node, operator: OperatorVersion, scope: InferenceScope) -> Inferred[Shape]:
    """Return the shapes that the operator's shape rule infers for the outputs."""
    return _infer_by_rule(node, operator, scope, scope.shape)


def infer_ranks(node: Node, operator: OperatorVersion, scope: InferenceScope) -> Inferred[int]:
    """Return the rank of each output: from input ranks alone if possible, otherwise from input shapes."""

    def shape_from_rank(name: str) -> Shape | None:
        rank = scope.rank(name)
        return None if rank is None else (None,) * rank

    shapes, is_cacheable = _infer_by_rule(node, operator, scope, shape_from_rank)
    found = [None if shape is None else len(shape) for shape in shapes]
    for position, name in enumerate(node.outputs):
        if name and (position >= len(found) or found[position] is None):
            shape, is_cacheable = scope.shape(name), False
            found += [None] * (position + 1 - len(found))
            found[position] = None if shape is None else len(shape)
    return Inferred(found, is_cacheable)


def _infer_by_rule(
    node: Node, operator: OperatorVersion, scope: InferenceScope, shape_of: Callable[[str], Shape | None]
) -> Inferred[Shape]:
    # The shape rules are imported only when needed.
    from opshift.registry.shapes.rule_table import SHAPE_RULES

    rule = SHAPE_RULES.get(operator.shape)
    if rule is None or node.has_attribute_references:
        return Inferred((), True)
    context = _Context(operator, node, scope, shape_of)
    shapes = rule(context)
    return Inferred(shapes, context.is_cacheable)


def type_link(operator: OperatorVersion) -> int | None:
    """Return the position of an input that always has the element type of the first output."""
    output = _parameter_at(operator.outputs, 0)
    if output is None or output.type_attribute or not output.homogeneous or operator.name == "Constant":
        return None
    if len(operator.types_of(output)) == 1:
        return None
    shared = (i for i, each in enumerate(operator.inputs) if each.type == output.type and each.homogeneous)
    return next(shared, None)


def shape_link(operator: OperatorVersion) -> int | None:
    """Return the position of an input that always has the shape of the first output."""
    return _SHAPE_LINKS.get(operator.shape)


def rank_link(operator: OperatorVersion) -> int | None:
    """Return the position of an input that always has the rank of the first output, or `MAXIMUM`."""
    if operator.shape == "broadcast":
        return MAXIMUM  # broadcasting yields the rank of the input with the most dimensions
    from opshift.registry.shapes.rule_table import KEEPS_RANK  # the shape rules are imported only when needed

    return 0 if operator.shape in KEEPS_RANK else shape_link(operator)


_SHAPE_LINKS = {
    "same_as_first": 0,
    "all_same_as_first": 0,
    "pairwise": 0,
    "batch_normalization": 0,
    "layer_normalization": 0,
    "same_as_second": 1,
}
"""Position of the input with the shape of the first output, by the name of the shape rule."""


@lru_cache(maxsize=4096)
def _deciding_positions(operator: OperatorVersion, position: int, count: int) -> tuple[int, ...]:
    """Return the positions of the inputs, of `count`, that determine the element type of an output."""
    output = _parameter_at(operator.outputs, position)
    if output is None:
        return ()
    formals = ((index, _parameter_at(operator.inputs, index)) for index in range(count))
    return tuple(index for index, formal in formals if formal and determines_type(formal, output))


def determines_type(formal: Parameter, output: Parameter) -> bool:
    """Return whether an output has the element type of an input, always or without its type attribute."""
    return (formal.type == output.type and formal.homogeneous) or formal.name == output.absent_type


def _output_type(node: Node, position: int, operator: OperatorVersion, scope: InferenceScope) -> str | None:
    output = _parameter_at(operator.outputs, position)
    if output is None:
        return None
    if output.type_attribute and node.has_attribute_references:
        return None
    named = type_from_attribute(operator, node, output.type_attribute) if output.type_attribute else None
    if named:
        return f"seq(tensor({named}))" if operator.types_of(output)[0].startswith("seq(") else named
    if not output.homogeneous:
        return _type_from_body(node, position, scope)
    if node.op_type == "Constant" and not node.has_attribute_references:
        return type_of_constant(node)
    types = operator.types_of(output)
    if len(types) == 1:
        return _without_tensor(types[0])
    deciding = (node.inputs[each] for each in _deciding_positions(operator, position, len(node.inputs)))
    decided = next(filter(None, map(scope.element_type, filter(None, deciding))), None)
    fixed = output.absent_type if output.absent_type and "(" in output.absent_type else None
    return decided or (_without_tensor(fixed) if fixed else _container_type(types, node, scope))


def _container_type(types: Sequence[str], node: Node, scope: InferenceScope) -> str | None:
    """Return the type of an output that contains the first input, is contained in it, or equals it."""
    source = scope.element_type(node.input(0)) if node.input(0) else None
    if source is None:
        return None
    source_type = source if "(" in source else f"tensor({source})"
    if all(each.startswith(CONTAINER_PREFIXES) for each in types):
        containers = f"seq({source_type})", f"optional({source_type})"
        return next((each for each in containers if each in types), None)
    if not source_type.startswith(CONTAINER_PREFIXES):
        return None
    element = source_type.partition("(")[2].removesuffix(")")
    return next((_without_tensor(each) for each in (source_type, element) if each in types), None)


class _Context(ShapeContext):
    """Context of a node for its shape rule; cacheable if the rule reads only shapes and attributes."""

    def __init__(
        self,
        operator: OperatorVersion,
        node: Node,
        scope: InferenceScope,
        shape_of: Callable[[str], Shape | None],
    ) -> None:
        self.is_cacheable = True
        self.version = operator
        self.inputs = [shape_of(name) if name else None for name in node.inputs]
        self.output_count = len(node.outputs)
        self._node = node
        self._scope = scope

    def attribute(self, name: str) -> object:
        found = self._node.attribute(name)
        if found is not None:
            return found
        declared = self.version.attributes.get(name)
        default = declared.default if declared else None
        return default.encode() if isinstance(default, str) else default

    def constant(self, position: int) -> tuple[object, ...] | None:
        self.is_cacheable = False
        name = self._node.input(position)
        found = self._scope.constant(name) if name else None
        return found.values if found else None

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        self.is_cacheable = False
        emitted, name, body = _body_output(self._node, attribute, position, self._scope)
        return body.shape(name) if body else emitted and emitted.dims


def _parameter_at(parameters: tuple[Parameter, ...], position: int) -> Parameter | None:
    if position < len(parameters):
        return parameters[position]
    last = parameters[-1] if parameters else None
    return last if last and last.option == "variadic" else None


def type_from_attribute(operator: OperatorVersion, node: Node, attribute: str) -> str | None:
    """Return the element type named by an attribute of a node, or by the default of the attribute."""
    stated = node.attribute(attribute)
    if stated is None and attribute in operator.attributes:
        stated = operator.attributes[attribute].default
    if isinstance(stated, bytes):
        return stated.decode(errors="replace").lower()
    if isinstance(stated, Tensor):
        return stated.element_type
    found = BY_NUMBER.get(stated if isinstance(stated, int) else getattr(stated, "data_type", 0))
    return found.name if found else None


def _without_tensor(type_string: str) -> str:
    element = type_string.removeprefix("tensor(").removesuffix(")")
    return element if element in BY_NAME else type_string


def type_of_constant(node: Node) -> str | None:
    """Return the element type of a Constant, without decoding its value, which may be large."""
    for name, kind, _ in SCALAR_ATTRIBUTES:
        if name in node.attributes or f"{name}s" in node.attributes:
            return kind
    value = node.attribute("value")
    if isinstance(value, Tensor):
        return value.element_type
    found = BY_NUMBER.get(getattr(value, "data_type", 0))
    return found.name if found else None


_BODY_OFFSET = {
    "If": ("then_branch", 0), "Loop": ("body", 1), "Scan": ("body", 0), "SequenceMap": ("body", 0),
}  # fmt: skip
"""Subgraph that produces the outputs of an operator, and the position of the first of them in it.

The first output of a Loop body is the condition.
"""


def _type_from_body(node: Node, position: int, scope: InferenceScope) -> str | None:
    attribute, offset = _BODY_OFFSET.get(node.op_type, ("", 0))
    emitted, name, body = _body_output(node, attribute, offset + position, scope)
    if emitted is not None:
        return emitted.type
    found = body.element_type(name) if body else None
    return f"seq(tensor({found}))" if found and node.op_type == "SequenceMap" else found


def _body_output(
    node: Node, attribute: str, position: int, scope: InferenceScope
) -> tuple[Value | None, str, InferenceScope | None]:
    """Return an output of a subgraph that an adapter emitted, or its name and the scope of a GraphProto."""
    graph = node.attribute(attribute)
    if isinstance(graph, Graph) and position < len(graph.outputs):
        return graph.outputs[position], "", None
    if not hasattr(graph, "output") or position >= len(graph.output):
        return None, "", None
    return None, graph.output[position].name, scope.child(graph)


TYPES: FactKind[str] = FactKind(
    lambda scope, name: scope.element_type(name),
    lambda scope, name: scope.declared_type(name),
    type_link,
    lambda node, operator, scope: Inferred(infer_types(node, operator, scope), True),
)

SHAPES: FactKind[Shape] = FactKind(
    lambda scope, name: scope.shape(name),
    lambda scope, name: scope.declared_shape(name),
    shape_link,
    infer_shapes,
)

RANKS: FactKind[int] = FactKind(
    lambda scope, name: scope.rank(name),
    lambda scope, name: scope.declared_rank(name),
    rank_link,
    infer_ranks,
)
