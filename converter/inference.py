"""Types from operators' signatures and shapes from their rules, for one value and what leads to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from opshift.adapters.node import Node, Tensor
from opshift.converter.constants import PLAIN
from opshift.converter.types import Shape
from opshift.registry.element_types import BY_NAME, BY_NUMBER
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.shapes import RULES

if TYPE_CHECKING:
    from opshift.converter.scope import Scope


def infer_types(node: Node, operator: OperatorVersion, scope: Scope) -> Sequence[str | None]:
    """The element type of each output."""
    return [_type_of(node, position, operator, scope) for position in range(len(node.outputs))]


def infer_shapes(node: Node, operator: OperatorVersion, scope: Scope) -> Sequence[Shape | None]:
    """The shape of each output that the operator's rule tells something of."""
    rule = RULES.get(operator.shape)
    return () if rule is None or node.refers_to_caller else rule(_Context(operator, node, scope))


def type_link(operator: OperatorVersion) -> int | None:
    """The input whose element type the first output is sure to have."""
    output = _formal(operator.outputs, 0)
    if output is None or output.type_attribute or not output.homogeneous or operator.name == "Constant":
        return None
    if len(operator.types_of(output)) == 1:
        return None
    shared = (
        i for i, each in enumerate(operator.inputs) if each.type == output.type and each.option == "single"
    )
    return next(shared, None)


def shape_link(operator: OperatorVersion) -> int | None:
    """The input whose shape the first output is sure to have."""
    return _SHAPE_LINKS.get(operator.shape)


_SHAPE_LINKS = {
    "same_as_first": 0,
    "all_same_as_first": 0,
    "pairwise": 0,
    "batch_normalization": 0,
    "same_as_second": 1,
}


def _deciding(node: Node, position: int, operator: OperatorVersion) -> Sequence[str]:
    """The inputs whose type variable is that of the output, or that it follows without its attribute."""
    positions = _deciding_positions(_Key(operator), position, len(node.inputs))
    return [node.inputs[each] for each in positions if node.inputs[each]]


class _Key:
    """An operator version as a key: hashed by identity, which is cheap and enough."""

    __slots__ = ("operator",)

    def __init__(self, operator: OperatorVersion) -> None:
        self.operator = operator

    def __hash__(self) -> int:
        return id(self.operator)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.operator is self.operator


@lru_cache(maxsize=4096)
def _deciding_positions(key: _Key, position: int, count: int) -> tuple[int, ...]:
    output = _formal(key.operator.outputs, position)
    if output is None:
        return ()
    formals = ((index, _formal(key.operator.inputs, index)) for index in range(count))
    return tuple(index for index, formal in formals if formal and _decides(formal, output))


def _decides(formal: Parameter, output: Parameter) -> bool:
    return (formal.type == output.type and formal.homogeneous) or formal.name == output.absent_type


def _type_of(node: Node, position: int, operator: OperatorVersion, scope: Scope) -> str | None:
    output = _formal(operator.outputs, position)
    if output is None:
        return None
    if output.type_attribute and node.refers_to_caller:
        return None
    named = _named_by(operator, node, output.type_attribute) if output.type_attribute else None
    if named:
        return f"seq(tensor({named}))" if operator.types_of(output)[0].startswith("seq(") else named
    if not output.homogeneous:
        return _type_from_body(node, position, scope)
    if node.op_type == "Constant" and not node.refers_to_caller:
        return _constant_type(node)
    types = operator.types_of(output)
    if len(types) == 1:
        return _bare(types[0])
    decided = next(filter(None, map(scope.element_type, _deciding(node, position, operator))), None)
    fixed = output.absent_type if output.absent_type and "(" in output.absent_type else None
    return decided or (_bare(fixed) if fixed else None)


class _Context:
    """A node as shape rules see it."""

    def __init__(self, operator: OperatorVersion, node: Node, scope: Scope) -> None:
        self.version = operator
        self.inputs = [scope.shape(name) if name else None for name in node.inputs]
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
        name = self._node.input(position)
        found = self._scope.constant(name) if name else None
        return found.values if found else None

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        name, body = _body_output(self._node, attribute, position, self._scope)
        return body.shape(name) if body else None


def _formal(parameters: tuple[Parameter, ...], position: int) -> Parameter | None:
    if position < len(parameters):
        return parameters[position]
    last = parameters[-1] if parameters else None
    return last if last and last.option == "variadic" else None


def _named_by(operator: OperatorVersion, node: Node, attribute: str) -> str | None:
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


def _constant_type(node: Node) -> str | None:
    """The type of a Constant, told without a look at its value, which may be large."""
    plain = (kind for name, kind, _ in PLAIN if name in node.attributes or f"{name}s" in node.attributes)
    value = node.attribute("value")
    if isinstance(value, Tensor):
        return value.element_type
    found = BY_NUMBER.get(getattr(value, "data_type", 0))
    return next(plain, found.name if found else None)


_BODY_OFFSET = {"If": ("then_branch", 0), "Loop": ("body", 1), "Scan": ("body", 0)}
"""Which output of which subgraph the first output of these operators is (Loop's body starts with `cond`)."""


def _type_from_body(node: Node, position: int, scope: Scope) -> str | None:
    attribute, offset = _BODY_OFFSET.get(node.op_type, ("", 0))
    name, body = _body_output(node, attribute, offset + position, scope)
    return body.element_type(name) if body else None


def _body_output(node: Node, attribute: str, position: int, scope: Scope) -> tuple[str, Scope | None]:
    graph = node.attribute(attribute)
    if not hasattr(graph, "output") or position >= len(graph.output):
        return "", None
    return graph.output[position].name, scope.child(graph)
