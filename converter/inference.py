"""Types from operators' signatures and shapes from their rules, for one value and what leads to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from opshift.adapters.node import Node, Tensor
from opshift.converter.constants import PLAIN
from opshift.converter.types import Shape
from opshift.registry.element_types import BY_NAME, BY_NUMBER
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.shapes import RULES

if TYPE_CHECKING:
    from opshift.converter.scope import Producer, Scope


def infer_type(scope: Scope, name: str) -> None:
    """Put the element type of a value, or `None`, into `scope.types`."""
    _walk(scope, name, _TYPES)


def infer_shape(scope: Scope, name: str) -> None:
    """Put the shape of a value, or `None`, into `scope.shapes`."""
    _walk(scope, name, _SHAPES)


class _Fact(NamedTuple):
    """One kind of fact: where it is kept, what the model states of it, and how it follows from a node."""

    memo: Callable[[Scope], dict[str, Any]]
    stated: Callable[[Scope, str], Any]
    link: Callable[[OperatorVersion, int], int | None]
    """The input that an output of an operator is sure to share the fact with."""
    needed: Callable[[Producer], Sequence[str]]
    infer: Callable[[Producer, Scope], Any]
    outside: Callable[[Scope, str], Any]


def _walk(scope: Scope, name: str, fact: _Fact) -> None:
    """Depth first over what a value is made from, without recursion, each value once."""
    memo = fact.memo(scope)
    stack = [name]
    entered: set[str] = set()
    while stack:
        current = stack[-1]
        if current in memo:
            stack.pop()
            continue
        source = scope.linked_input(current, fact.link)
        if source in memo and memo[source] is not None:
            memo[current] = memo[source]
        elif current in entered:
            producer = scope.producer(current)
            memo[current] = fact.infer(producer, scope) if producer else None
        else:
            entered.add(current)
            first = [source] if source and source not in memo else _before(scope, current, fact, memo)
            stack += [each for each in first if each not in entered]


def _before(scope: Scope, name: str, fact: _Fact, memo: dict[str, Any]) -> Sequence[str]:
    """The values to look at before `name`; none if the model states the fact, which is then remembered."""
    found = fact.stated(scope, name)
    producer = scope.producer(name) if found is None else None
    if producer is not None:
        leading = (*fact.needed(producer), *_captured(producer, scope))
        return [each for each in leading if each not in memo]
    around = scope.parent if found is None and not scope.is_local(name) else None
    memo[name] = fact.outside(around, name) if around else found
    return ()


def _captured(producer: Producer, scope: Scope) -> Sequence[str]:
    """The values of this scope that the graphs of a node read, at any depth."""
    if producer.node.op_type not in _BODY_OFFSET:
        return ()
    attributes = [each for each in producer.node.attributes.values() if hasattr(each, "ref_attr_name")]
    found: dict[str, None] = {}
    while attributes:
        graph = attributes.pop().g
        found |= dict.fromkeys(each.name for each in graph.output)
        for node in graph.node:
            found |= dict.fromkeys(node.input)
            attributes += node.attribute
    return [name for name in found if scope.is_local(name)]


def _all_inputs(producer: Producer) -> Sequence[str]:
    if producer.operator is None or producer.operator.shape not in RULES:
        return ()
    return [name for name in producer.node.inputs if name]


def _deciding(producer: Producer) -> Sequence[str]:
    """The inputs whose type variable is that of the output, or that it follows without its attribute."""
    if producer.operator is None:
        return ()
    inputs = producer.node.inputs
    positions = _deciding_positions(_Key(producer.operator), producer.position, len(inputs))
    return [inputs[each] for each in positions if inputs[each]]


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


def _type_of(producer: Producer, scope: Scope) -> str | None:
    operator, node = producer.operator, producer.node
    output = _formal(operator.outputs, producer.position) if operator else None
    if operator is None or output is None:
        return None
    if output.type_attribute and node.refers_to_caller:
        return None
    named = _named_by(operator, node, output.type_attribute) if output.type_attribute else None
    if named:
        return f"seq(tensor({named}))" if operator.types_of(output)[0].startswith("seq(") else named
    if not output.homogeneous:
        return _type_from_body(node, producer.position, scope)
    if node.op_type == "Constant" and not node.refers_to_caller:
        return _constant_type(node)
    types = operator.types_of(output)
    if len(types) == 1:
        return _bare(types[0])
    decided = next(filter(None, (scope.types.get(name) for name in _deciding(producer))), None)
    fixed = output.absent_type if output.absent_type and "(" in output.absent_type else None
    return decided or (_bare(fixed) if fixed else None)


def _shape_of(producer: Producer, scope: Scope) -> Shape | None:
    operator = producer.operator
    rule = RULES.get(operator.shape) if operator else None
    if operator is None or rule is None or producer.node.refers_to_caller:
        return None
    shapes = rule(_Context(operator, producer.node, scope))
    return shapes[producer.position] if producer.position < len(shapes) else None


class _Context:
    """A node as shape rules see it."""

    def __init__(self, operator: OperatorVersion, node: Node, scope: Scope) -> None:
        self.version = operator
        self.inputs = [scope.shapes.get(name) if name else None for name in node.inputs]
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


def _type_link(operator: OperatorVersion, position: int) -> int | None:
    output = _formal(operator.outputs, position)
    if output is None or output.type_attribute or not output.homogeneous or operator.name == "Constant":
        return None
    if len(operator.types_of(output)) == 1:
        return None
    shared = (
        i for i, each in enumerate(operator.inputs) if each.type == output.type and each.option == "single"
    )
    return next(shared, None)


def _shape_link(operator: OperatorVersion, position: int) -> int | None:
    return {"same_as_first": 0, "same_as_second": 1}.get(operator.shape) if position == 0 else None


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


_TYPES = _Fact(
    lambda scope: scope.types,
    lambda scope, name: scope.stated_type(name),
    _type_link,
    _deciding,
    _type_of,
    lambda scope, name: scope.element_type(name),
)
_SHAPES = _Fact(
    lambda scope: scope.shapes,
    lambda scope, name: scope.stated_shape(name),
    _shape_link,
    _all_inputs,
    _shape_of,
    lambda scope, name: scope.shape(name),
)
