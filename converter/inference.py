"""Types from an operator's signature, shapes from its named rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opshift.adapters.node import Node, Tensor
from opshift.converter.types import Shape
from opshift.registry.element_types import BY_NAME, BY_NUMBER
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.shapes import RULES

if TYPE_CHECKING:
    from opshift.converter.scope import Scope

BodyType = Callable[[Node, str, int], str | None]


def inputs_that_decide(operator: OperatorVersion, node: Node, position: int) -> list[str]:
    """The inputs whose type variable is that of an output."""
    output = _formal(operator.outputs, position)
    if output is None:
        return []
    return [
        name
        for index, name in enumerate(node.inputs)
        if name
        and (formal := _formal(operator.inputs, index))
        and formal.type == output.type
        and formal.homogeneous
    ]


def element_type_from(
    operator: OperatorVersion,
    node: Node,
    position: int,
    type_of: Callable[[str], str | None],
    body_type: BodyType,
) -> str | None:
    """The element type of an output, if the signature, an attribute or a subgraph decides it."""
    output = _formal(operator.outputs, position)
    if output is None:
        return None
    if output.type_attribute:
        named = _named_by(operator, node, output.type_attribute)
        if named:
            return named
    if not output.homogeneous:
        return _from_body(operator, node, position, body_type)
    if node.op_type == "Constant":
        return _constant_type(node)
    types = operator.types_of(output)
    if len(types) == 1:
        return _bare(types[0])
    return next(filter(None, map(type_of, inputs_that_decide(operator, node, position))), None)


def shapes_from(operator: OperatorVersion, node: Node, scope: Scope) -> Sequence[Shape | None]:
    """The shapes of all outputs, as far as the operator's rule tells them."""
    rule = RULES.get(operator.shape)
    return rule(_Context(operator, node, scope)) if rule else ()


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
        return self._scope.body_output_shape(self._node, attribute, position)


def _formal(parameters: tuple[Parameter, ...], position: int) -> Parameter | None:
    if position < len(parameters):
        return parameters[position]
    last = parameters[-1] if parameters else None
    return last if last and last.option == "variadic" else None


def _named_by(operator: OperatorVersion, node: Node, attribute: str) -> str | None:
    stated = node.attribute(attribute)
    if stated is None:
        declared = operator.attributes[attribute].default if attribute in operator.attributes else None
        stated = declared
    if isinstance(stated, bytes):
        return stated.decode().lower()
    if isinstance(stated, Tensor):
        return stated.element_type
    number = stated if isinstance(stated, int) else getattr(stated, "data_type", 0)
    found = BY_NUMBER.get(number)
    return found.name if found else None


_BODY_OFFSET = {"If": ("then_branch", 0), "Loop": ("body", 1), "Scan": ("body", 0)}
"""Which output of which subgraph the first output of these operators is (Loop's body starts with `cond`)."""


def _from_body(operator: OperatorVersion, node: Node, position: int, body_type: BodyType) -> str | None:
    found = _BODY_OFFSET.get(operator.name)
    return body_type(node, found[0], found[1] + position) if found else None


def _constant_type(node: Node) -> str | None:
    for name, element_type in (("int", "int64"), ("float", "float"), ("string", "string")):
        if f"value_{name}" in node.attributes or f"value_{name}s" in node.attributes:
            return element_type
    value = node.attribute("value")
    if isinstance(value, Tensor):
        return value.element_type
    found = BY_NUMBER.get(value.data_type) if value is not None else None
    return found.name if found else None


def _bare(type_string: str) -> str:
    inner = type_string.removeprefix("tensor(").removesuffix(")")
    return inner if inner in BY_NAME else type_string
