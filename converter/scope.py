"""One graph or function: which node makes a value, what its type is, what its value is if constant.

Everything is found when first asked for, of that one value, and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from opshift.adapters.node import Node, Tensor
from opshift.converter.inference import element_type_from, inputs_that_decide, shapes_from
from opshift.converter.names import Names
from opshift.converter.tensors import read_tensor
from opshift.converter.types import Shape, element_type_of, shape_of
from opshift.registry.catalogue import Registry
from opshift.registry.element_types import BY_NUMBER
from opshift.registry.models import OperatorVersion
from opshift.registry.names import canonical_domain


class Producer(NamedTuple):
    """The node that makes a value, and what operator it is (`None` if the registry does not know it)."""

    node: Node
    position: int
    operator: OperatorVersion | None


class Scope:
    """The values of one graph or function, and of the graphs around it."""

    def __init__(
        self,
        container: Any,
        opsets: Mapping[str, int],
        registry: Registry,
        names: Names,
        parent: Scope | None = None,
    ) -> None:
        self.container = container
        self.opsets = opsets
        self.registry = registry
        self.parent = parent
        self._names = names
        self._types: dict[str, str | None] = {}
        self._shapes: dict[str, Shape | None] = {}
        self._emitted: dict[str, Producer] = {}
        self._children: dict[tuple[str, str, int], Scope] = {}
        self._constants: dict[Tensor, str] = {}
        self._constant_values: dict[str, Tensor] = {}

    @property
    def is_function(self) -> bool:
        """Whether this is a function, which has no initializers and states no input types."""
        return not hasattr(self.container, "initializer")

    @property
    def new_constants(self) -> Mapping[Tensor, str]:
        """The constants that adapters asked for, with their names."""
        return self._constants

    def child(self, node: Node, attribute: str, position: int, graph: Any) -> Scope:
        """The scope of a graph that an attribute of a node holds."""
        key = (next(filter(None, node.outputs), ""), attribute, position)
        if key not in self._children:
            self._children[key] = Scope(graph, self.opsets, self.registry, self._names, self)
        return self._children[key]

    def fresh(self, hint: str) -> str:
        """A name that no value of the model has."""
        return self._names.fresh(hint)

    def add_constant(self, tensor: Tensor) -> str:
        """The name of a constant in this scope; equal ones share it."""
        found = self._constants.get(tensor)
        if found is None:
            found = self._constants[tensor] = self.fresh("const")
            self._constant_values[found] = tensor
        return found

    def add_emitted(self, node: Node, operator: OperatorVersion | None) -> None:
        """Make a node that an adapter wrote known to inference."""
        for position, name in enumerate(node.outputs):
            if name and name not in self._producers:
                self._emitted[name] = Producer(node, position, operator)

    def producer(self, name: str) -> Producer | None:
        """The node of this scope that makes a value."""
        found = self._producers.get(name)
        if found is None:
            return self._emitted.get(name)
        proto, position = found
        opset = self.opsets.get(canonical_domain(proto.domain))
        operator = self.registry.at(proto.op_type, opset, proto.domain) if opset else None
        return Producer(Node.of(proto), position, operator)

    def is_used(self, name: str) -> bool:
        """Whether a node here or in a graph below reads the value, or it is an output."""
        return name in self._used

    def is_local(self, name: str) -> bool:
        """Whether the value is made here, not in a graph around this one."""
        return (
            name in self._producers
            or name in self._stated
            or name in self._initializers
            or name in self._emitted
            or name in self._constant_values
        )

    def element_type(self, name: str) -> str | None:
        """The element type of a tensor, such as `float16`; of other values their type string."""
        self._resolve(name, self._types, self._known_type, self._infer_type, self._type_parent)
        return self._types[name]

    def shape(self, name: str) -> Shape | None:
        """The dimensions of a value; `None` for each, or for all, that are not known."""
        self._resolve(name, self._shapes, self._known_shape, self._infer_shape, self._shape_parent)
        return self._shapes[name]

    def constant(self, name: str) -> Tensor | None:
        """The value, if every run has the same: an initializer no caller overrides, or a Constant."""
        if name in self._constant_values:
            return self._constant_values[name]
        steps: list[Node] = []
        found = self._constant_source(name, steps)
        for node in reversed(steps):
            found = _cast(found, node) if found and node.op_type == "Cast" else found
        return found

    def body_output_shape(self, node: Node, attribute: str, position: int) -> Shape | None:
        """The shape of an output of a graph that an attribute holds."""
        name, scope = self._body_output(node, attribute, position)
        return scope.shape(name) if scope else None

    # Stated facts

    @cached_property
    def _producers(self) -> dict[str, tuple[Any, int]]:
        return {
            name: (node, position)
            for node in self.container.node
            for position, name in enumerate(node.output)
            if name
        }

    @cached_property
    def _stated(self) -> dict[str, Any]:
        """Name to TypeProto, `None` for the inputs of a function."""
        if self.is_function:
            inputs = dict.fromkeys(self.container.input)
            return {**inputs, **{value.name: value.type for value in self.container.value_info}}
        values = (*self.container.value_info, *self.container.output, *self.container.input)
        return {value.name: value.type for value in values}

    @cached_property
    def _initializers(self) -> dict[str, Any]:
        return {} if self.is_function else {each.name: each for each in self.container.initializer}

    @cached_property
    def _overridable(self) -> frozenset[str]:
        return frozenset(value.name for value in self.container.input)

    @cached_property
    def _used(self) -> set[str]:
        found: set[str] = set()
        nodes = [self.container.node]
        if self.is_function:
            found.update(self.container.output)
        else:
            found.update(value.name for value in self.container.output)
        while nodes:
            for node in nodes.pop():
                found.update(node.input)
                for attribute in node.attribute:
                    for graph in _graphs(attribute):
                        found.update(value.name for value in graph.output)
                        nodes.append(graph.node)
        return found

    # Inference, one value at a time, without recursion along the graph

    def _resolve(
        self,
        name: str,
        memo: dict[str, Any],
        known: Callable[[str], Any],
        infer: Callable[[Producer], Any],
        outside: Callable[[str], Any],
    ) -> None:
        stack = [name]
        entered: set[str] = set()
        while stack:
            current = stack[-1]
            if current in memo:
                stack.pop()
                continue
            found = known(current)
            producer = self.producer(current) if found is None else None
            if producer is None:
                memo[current] = found if found is not None or self.is_local(current) else outside(current)
                continue
            waiting = () if current in entered else self._waiting(producer, memo)
            entered.add(current)
            if waiting:
                stack.extend(waiting)
            else:
                memo[current] = infer(producer)

    def _waiting(self, producer: Producer, memo: dict[str, Any]) -> Sequence[str]:
        if producer.operator is None:
            return ()
        if memo is self._types:
            names: Sequence[str] = inputs_that_decide(producer.operator, producer.node, producer.position)
        else:
            names = producer.node.inputs
        return [name for name in names if name and name not in memo]

    def _known_type(self, name: str) -> str | None:
        if name in self._initializers:
            found = BY_NUMBER.get(self._initializers[name].data_type)
            return found.name if found else None
        if name in self._constant_values:
            return self._constant_values[name].element_type
        stated = self._stated.get(name)
        return element_type_of(stated) if stated is not None else None

    def _known_shape(self, name: str) -> Shape | None:
        if name in self._initializers:
            return tuple(self._initializers[name].dims)
        if name in self._constant_values:
            return self._constant_values[name].dims
        stated = self._stated.get(name)
        return shape_of(stated) if stated is not None else None

    def _infer_type(self, producer: Producer) -> str | None:
        if producer.operator is None:
            return None
        return element_type_from(
            producer.operator, producer.node, producer.position, self._types.get, self._body_type
        )

    def _infer_shape(self, producer: Producer) -> Shape | None:
        if producer.operator is None:
            return None
        shapes = shapes_from(producer.operator, producer.node, self)
        return shapes[producer.position] if producer.position < len(shapes) else None

    def _type_parent(self, name: str) -> str | None:
        return self.parent.element_type(name) if self.parent else None

    def _shape_parent(self, name: str) -> Shape | None:
        return self.parent.shape(name) if self.parent else None

    def _body_type(self, node: Node, attribute: str, position: int) -> str | None:
        name, scope = self._body_output(node, attribute, position)
        return scope.element_type(name) if scope else None

    def _body_output(self, node: Node, attribute: str, position: int) -> tuple[str, Scope | None]:
        graph = node.attribute(attribute)
        if graph is None or position >= len(graph.output):
            return "", None
        return graph.output[position].name, self.child(node, attribute, 0, graph)

    # Constants

    def _constant_source(self, name: str, steps: list[Node]) -> Tensor | None:
        seen = set()
        while name and name not in seen:
            seen.add(name)
            if name in self._initializers:
                return None if name in self._overridable else read_tensor(self._initializers[name])
            producer = self.producer(name)
            if producer is None:
                outside = self.parent if not self.is_local(name) else None
                return outside._constant_source(name, steps) if outside else None
            node = producer.node
            if node.op_type == "Shape" and len(node.attributes) == 0:
                return _shape_tensor(self.shape(node.inputs[0]))
            if node.op_type == "Constant":
                return _constant_node(node)
            if node.op_type not in ("Identity", "Cast") or canonical_domain(node.domain) != "ai.onnx":
                return None
            steps.append(node)
            name = node.inputs[0]
        return None


def _graphs(attribute: Any) -> Sequence[Any]:
    if attribute.type not in (0, 5, 10):
        return ()
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def _shape_tensor(shape: Shape | None) -> Tensor | None:
    if shape is None or None in shape:
        return None
    return Tensor("int64", (len(shape),), shape)


def _constant_node(node: Node) -> Tensor | None:
    """The value of a Constant, in whichever of its attributes it is."""
    for name, element_type in (("int", "int64"), ("float", "float"), ("string", "string")):
        if f"value_{name}" in node.attributes:
            return Tensor(element_type, (), (node.attribute(f"value_{name}"),))
        if f"value_{name}s" in node.attributes:
            values = tuple(node.attribute(f"value_{name}s"))
            return Tensor(element_type, (len(values),), values)
    value = node.attribute("value")
    return value if value is None or isinstance(value, Tensor) else read_tensor(value)


def _cast(tensor: Tensor | None, node: Node) -> Tensor | None:
    """A constant cast between integers, or to a float; other casts may round and are not followed."""
    to = BY_NUMBER.get(node.attribute("to", 0)) if not isinstance(node.attribute("to"), bytes) else None
    if tensor is None or to is None:
        return None
    whole = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
    if tensor.element_type in whole and to.name in ("int32", "int64"):
        return Tensor(to.name, tensor.dims, tensor.values)
    if tensor.element_type in ("float", "float16") and to.name in ("float", "double"):
        return Tensor(to.name, tensor.dims, tensor.values)
    return None
