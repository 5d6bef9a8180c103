"""Types from operators' signatures and shapes from their rules, for one value and what leads to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from opshift.adapters.bodies import Graph, Value
from opshift.adapters.node import Node, Tensor
from opshift.converter.constants import PLAIN
from opshift.converter.following import GREATEST, Inferred, Kind
from opshift.converter.types import Shape
from opshift.registry.element_types import BY_NAME, BY_NUMBER
from opshift.registry.models import OperatorVersion, Parameter

if TYPE_CHECKING:
    from opshift.converter.scope import Scope


CONTAINERS = ("seq(", "optional(")


def infer_types(node: Node, operator: OperatorVersion, scope: Scope) -> Sequence[str | None]:
    """The element type of each output."""
    return [_type_of(node, position, operator, scope) for position in range(len(node.outputs))]


def infer_shapes(node: Node, operator: OperatorVersion, scope: Scope) -> Inferred[Shape]:
    """The shape of each output that the operator's rule tells something of."""
    return _by_rule(node, operator, scope, scope.shape)


def infer_ranks(node: Node, operator: OperatorVersion, scope: Scope) -> Inferred[int]:
    """The rank of each output: by the shape rule, from ranks alone where that is enough."""

    def bare(name: str) -> Shape | None:
        rank = scope.rank(name)
        return None if rank is None else (None,) * rank

    shapes, is_lasting = _by_rule(node, operator, scope, bare)
    found = [None if shape is None else len(shape) for shape in shapes]
    for position, name in enumerate(node.outputs):
        if name and (position >= len(found) or found[position] is None):
            shape, is_lasting = scope.shape(name), False
            found += [None] * (position + 1 - len(found))
            found[position] = None if shape is None else len(shape)
    return Inferred(found, is_lasting)


def _by_rule(
    node: Node, operator: OperatorVersion, scope: Scope, shape_of: Callable[[str], Shape | None]
) -> Inferred[Shape]:
    from opshift.registry.shapes import RULES

    rule = RULES.get(operator.shape)
    if rule is None or node.refers_to_caller:
        return Inferred((), True)
    context = _Context(operator, node, scope, shape_of)
    shapes = rule(context)
    return Inferred(shapes, context.is_told_all)


def type_link(operator: OperatorVersion) -> int | None:
    """The input whose element type the first output is sure to have."""
    output = _formal(operator.outputs, 0)
    if output is None or output.type_attribute or not output.homogeneous or operator.name == "Constant":
        return None
    if len(operator.types_of(output)) == 1:
        return None
    shared = (i for i, each in enumerate(operator.inputs) if each.type == output.type and each.homogeneous)
    return next(shared, None)


def shape_link(operator: OperatorVersion) -> int | None:
    """The input whose shape the first output is sure to have."""
    return _SHAPE_LINKS.get(operator.shape)


def rank_link(operator: OperatorVersion) -> int | None:
    """The input whose rank the first output is sure to have, or the greatest of all."""
    if operator.shape == "broadcast":
        return GREATEST
    from opshift.registry.shapes import KEEPS_RANK

    return 0 if operator.shape in KEEPS_RANK else shape_link(operator)


_SHAPE_LINKS = {
    "same_as_first": 0,
    "all_same_as_first": 0,
    "pairwise": 0,
    "batch_normalization": 0,
    "layer_normalization": 0,
    "same_as_second": 1,
}


def _deciding(node: Node, position: int, operator: OperatorVersion) -> Sequence[str]:
    """The inputs whose type variable is that of the output, or that it follows without its attribute."""
    positions = _deciding_positions(operator, position, len(node.inputs))
    return [node.inputs[each] for each in positions if node.inputs[each]]


@lru_cache(maxsize=4096)
def _deciding_positions(operator: OperatorVersion, position: int, count: int) -> tuple[int, ...]:
    output = _formal(operator.outputs, position)
    if output is None:
        return ()
    formals = ((index, _formal(operator.inputs, index)) for index in range(count))
    return tuple(index for index, formal in formals if formal and decides(formal, output))


def decides(formal: Parameter, output: Parameter) -> bool:
    """Whether an output has the element type of an input."""
    return (formal.type == output.type and formal.homogeneous) or formal.name == output.absent_type


def _type_of(node: Node, position: int, operator: OperatorVersion, scope: Scope) -> str | None:
    output = _formal(operator.outputs, position)
    if output is None:
        return None
    if output.type_attribute and node.refers_to_caller:
        return None
    named = named_type(operator, node, output.type_attribute) if output.type_attribute else None
    if named:
        return f"seq(tensor({named}))" if operator.types_of(output)[0].startswith("seq(") else named
    if not output.homogeneous:
        return _type_from_body(node, position, scope)
    if node.op_type == "Constant" and not node.refers_to_caller:
        return constant_type(node)
    types = operator.types_of(output)
    if len(types) == 1:
        return _bare(types[0])
    decided = next(filter(None, map(scope.element_type, _deciding(node, position, operator))), None)
    fixed = output.absent_type if output.absent_type and "(" in output.absent_type else None
    return decided or (_bare(fixed) if fixed else _type_by_containment(types, node, scope))


def _type_by_containment(types: Sequence[str], node: Node, scope: Scope) -> str | None:
    """The type of an output that holds the first input, or is held by it, or is it."""
    source = scope.element_type(node.input(0)) if node.input(0) else None
    if source is None:
        return None
    plain = source if "(" in source else f"tensor({source})"
    if all(each.startswith(CONTAINERS) for each in types):
        return next((each for each in (f"seq({plain})", f"optional({plain})") if each in types), None)
    if not plain.startswith(CONTAINERS):
        return None
    inner = plain.partition("(")[2].removesuffix(")")
    return next((_bare(each) for each in (plain, inner) if each in types), None)


class _Context:
    """A node as shape rules see it.

    Attributes:
        is_told_all: whether nothing was asked for but shapes and attributes.
    """

    def __init__(
        self, operator: OperatorVersion, node: Node, scope: Scope, shape_of: Callable[[str], Shape | None]
    ) -> None:
        self.is_told_all = True
        self.version = operator
        self.inputs = [shape_of(name) if name else None for name in node.inputs]
        self.input_count = len(node.inputs)
        self.output_count = len(node.outputs)
        self._node = node
        self._scope = scope

    def attribute(self, name: str) -> Any:
        found = self._node.attribute(name)
        if found is not None:
            return found
        declared = self.version.attributes.get(name)
        default = declared.default if declared else None
        return default.encode() if isinstance(default, str) else default

    def constant(self, position: int) -> tuple[Any, ...] | None:
        self.is_told_all = False
        name = self._node.input(position)
        found = self._scope.constant(name) if name else None
        return found.values if found else None

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        self.is_told_all = False
        stated = _stated_output(self._node, attribute, position)
        if stated is not None:
            return stated.dims
        name, body = _body_output(self._node, attribute, position, self._scope)
        return body.shape(name) if body else None


def _formal(parameters: tuple[Parameter, ...], position: int) -> Parameter | None:
    if position < len(parameters):
        return parameters[position]
    last = parameters[-1] if parameters else None
    return last if last and last.option == "variadic" else None


def named_type(operator: OperatorVersion, node: Node, attribute: str) -> str | None:
    """The element type that an attribute of a node, or its default, names."""
    stated = node.attribute(attribute)
    if stated is None and attribute in operator.attributes:
        stated = operator.attributes[attribute].default
    if isinstance(stated, bytes):
        return stated.decode(errors="replace").lower()
    if isinstance(stated, Tensor):
        return stated.element_type
    found = BY_NUMBER.get(stated if isinstance(stated, int) else getattr(stated, "data_type", 0))
    return found.name if found else None


def _bare(type_string: str) -> str:
    inner = type_string.removeprefix("tensor(").removesuffix(")")
    return inner if inner in BY_NAME else type_string


def constant_type(node: Node) -> str | None:
    """The type of a Constant, told without a look at its value, which may be large."""
    plain = (kind for name, kind, _ in PLAIN if name in node.attributes or f"{name}s" in node.attributes)
    value = node.attribute("value")
    if isinstance(value, Tensor):
        return value.element_type
    found = BY_NUMBER.get(getattr(value, "data_type", 0))
    return next(plain, found.name if found else None)


_BODY_OFFSET = {
    "If": ("then_branch", 0), "Loop": ("body", 1), "Scan": ("body", 0), "SequenceMap": ("body", 0),
}  # fmt: skip
"""Which output of which subgraph the first output of these operators is (Loop's body starts with `cond`)."""


def _type_from_body(node: Node, position: int, scope: Scope) -> str | None:
    attribute, offset = _BODY_OFFSET.get(node.op_type, ("", 0))
    stated = _stated_output(node, attribute, offset + position)
    if stated is not None:
        return stated.type
    name, body = _body_output(node, attribute, offset + position, scope)
    found = body.element_type(name) if body else None
    return f"seq(tensor({found}))" if found and node.op_type == "SequenceMap" else found


def _stated_output(node: Node, attribute: str, position: int) -> Value | None:
    """An output of a graph that an adapter wrote."""
    graph = node.attribute(attribute)
    is_stated = isinstance(graph, Graph) and position < len(graph.outputs)
    return graph.outputs[position] if is_stated else None


def _body_output(node: Node, attribute: str, position: int, scope: Scope) -> tuple[str, Scope | None]:
    graph = node.attribute(attribute)
    if not hasattr(graph, "output") or position >= len(graph.output):
        return "", None
    return graph.output[position].name, scope.child(graph)


TYPES: Kind[str] = Kind(
    lambda scope, name: scope.element_type(name),
    lambda scope, name: scope.stated_type(name),
    type_link,
    lambda node, operator, scope: Inferred(infer_types(node, operator, scope), True),
)
SHAPES: Kind[Shape] = Kind(
    lambda scope, name: scope.shape(name),
    lambda scope, name: scope.stated_shape(name),
    shape_link,
    infer_shapes,
)
RANKS: Kind[int] = Kind(
    lambda scope, name: scope.rank(name),
    lambda scope, name: scope.stated_rank(name),
    rank_link,
    infer_ranks,
)
