"""One graph or function: which node makes a value, what its type is, what its value is if constant.

Everything is found when first asked for, of that one value, and remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Concession
from opshift.adapters.tensors import pack
from opshift.converter.concessions import Concessions
from opshift.converter.constants import constant_of
from opshift.converter.following import Following
from opshift.converter.inference import infer_shapes, infer_types, shape_link, type_link
from opshift.converter.names import Names
from opshift.converter.types import Shape, element_type_of, shape_of
from opshift.registry.catalogue import Registry
from opshift.registry.element_types import BY_NUMBER
from opshift.registry.models import OperatorVersion
from opshift.registry.names import canonical_domain

_name_of = attrgetter("name")


class Producer(NamedTuple):
    """The node that makes a value, and what operator it is (`None` if the registry does not know it)."""

    node: Node
    position: int
    operator: OperatorVersion | None


class Standing(NamedTuple):
    """Of an operator at its opset: whether its nodes may have a step to take, and may hold graphs."""

    has_step: bool
    has_graphs: bool


QUIET = Standing(has_step=False, has_graphs=False)


class Scope:
    """The values of one graph or function, and of the graphs around it.

    Attributes:
        container: the GraphProto or FunctionProto.
        opsets: its opset imports, by domain.
        known: the names made here; the survey completes them.
        standings: what is known of the default domain's operators at these opsets.
        new_constants: the constants that adapters asked for, by name.
        emitted: the nodes that adapters wrote, and the opset of each.
    """

    def __init__(
        self,
        container: Any,
        opsets: Mapping[str, int],
        registry: Registry,
        names: Names,
        concessions: Concessions,
        standings: dict[str, Standing],
        parent: Scope | None = None,
    ) -> None:
        self.container = container
        self.opsets = opsets
        self.registry = registry
        self.parent = parent
        self.standings = standings
        self.names = names
        self.concessions = concessions
        self.new_constants: dict[str, Tensor] = {}
        self.emitted: list[tuple[Node, int]] = []
        self.is_function = not hasattr(container, "initializer")
        self.known = self.declared()
        names.sets.append(self.known)
        self._constant_names: dict[tuple[Any, ...], str] = {}
        self._made_anew: dict[str, tuple[Node, int, int]] = {}
        self._producers: dict[str, Producer | None] = {}
        self._children: dict[int, Scope] = {}
        self._types: Following[str] = Following(
            self, self.stated_type, self._around_type, type_link, infer_types
        )
        self._shapes: Following[Shape] = Following(
            self, self.stated_shape, self._around_shape, shape_link, infer_shapes
        )

    def child(self, graph: Any) -> Scope:
        """The scope of a graph that an attribute of a node holds."""
        key = id(graph)  # no other gets it: the scope keeps the graph
        if key not in self._children:
            self._children[key] = Scope(
                graph, self.opsets, self.registry, self.names, self.concessions, self.standings, self
            )
        return self._children[key]

    def sees(self, name: str) -> bool:
        """Whether a value is made here or in a graph around this one."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.known:
                return True
            scope = scope.parent
        return False

    def fresh(self, hint: str) -> str:
        """A name that no value of the model has."""
        return self.names.fresh(hint)

    def add_constant(self, tensor: Tensor) -> str:
        """The name of a constant in this scope; those of the same bytes share it.

        Raises:
            CannotConvert: its type cannot hold its values.
        """
        key = (tensor.element_type, tensor.dims, pack(tensor))
        found = self._constant_names.get(key)
        if found is None:
            found = self._constant_names[key] = self.fresh("const")
            self.new_constants[found] = tensor
        return found

    def concede(self, kind: Concession, reason: str) -> bool:
        """Whether the caller allows what is not exact; if so, it is noted."""
        return self.concessions.concede(kind, reason)

    def add_emitted(self, node: Node, opset: int) -> None:
        """Make the new values of a node that an adapter wrote known to inference."""
        self.emitted.append((node, opset))
        for position, name in enumerate(node.outputs):
            if name in self.names.made:
                self._made_anew[name] = (node, position, opset)

    def producer(self, name: str) -> Producer | None:
        """The node of this scope that makes a value."""
        if name not in self._producers:
            self._producers[name] = self._find_producer(name)
        return self._producers[name]

    def opset_of(self, domain: str) -> int:
        """The opset of a domain here; 0 if it is not imported."""
        return self.opsets.get(canonical_domain(domain), 0)

    def operator(self, op_type: str, domain: str) -> OperatorVersion | None:
        """What an operator is under the opset imports here."""
        return self.registry.at(op_type, self.opset_of(domain), domain)

    def is_used(self, name: str) -> bool:
        """Whether a node here or in a graph below reads the value, or it is an output."""
        return name in self._used

    def is_local(self, name: str) -> bool:
        """Whether the value is made here, not in a graph around this one."""
        return name in self.known or name in self._made_anew or name in self.new_constants

    @property
    def outputs(self) -> Iterator[str]:
        """The names of what the graph or function returns."""
        if self.is_function:
            return iter(self.container.output)
        return (value.name for value in self.container.output)

    def element_type(self, name: str) -> str | None:
        """The element type of a tensor, such as `float16`; of other values their type string."""
        return self._types.of(name)

    def shape(self, name: str) -> Shape | None:
        """The dimensions of a value; `None` for each, or for all, that are not known."""
        return self._shapes.of(name)

    def constant(self, name: str) -> Tensor | None:
        """The value, if every run has the same: an initializer no caller overrides, or a Constant."""
        return self.new_constants.get(name) or constant_of(self, name)

    def initializer(self, name: str) -> Any:
        """The TensorProto of an initializer of this graph, or `None`."""
        return self._initializers.get(name)

    def is_overridable(self, name: str) -> bool:
        """Whether a caller may give the value: it is an input of the graph or function."""
        return name in self._inputs

    def is_stated(self, name: str) -> bool:
        """Whether the model says anything about the type of a value."""
        return name in self._stated

    def stated_type(self, name: str) -> str | None:
        """The element type that the model, or a constant, states."""
        if name in self._initializers:
            found = BY_NUMBER.get(self._initializers[name].data_type)
            return found.name if found else None
        if name in self.new_constants:
            return self.new_constants[name].element_type
        stated = self._stated.get(name)
        return element_type_of(stated) if stated is not None else None

    def stated_shape(self, name: str) -> Shape | None:
        """The shape that the model, or a constant, states."""
        if name in self._initializers:
            return tuple(self._initializers[name].dims)
        if name in self.new_constants:
            return self.new_constants[name].dims
        stated = self._stated.get(name)
        return shape_of(stated) if stated is not None else None

    def declared(self) -> set[str]:
        """The names that are there before the first node; an input left out has the empty one."""
        if self.is_function:
            return {"", *self.container.input}
        graph = self.container
        sparse = (each.values.name for each in graph.sparse_initializer)
        return {"", *map(_name_of, graph.input), *map(_name_of, graph.initializer), *sparse}

    def _around_type(self, name: str) -> str | None:
        return self.parent.element_type(name) if self.parent else None

    def _around_shape(self, name: str) -> Shape | None:
        return self.parent.shape(name) if self.parent else None

    def _find_producer(self, name: str) -> Producer | None:
        if name in self._made_anew:
            node, position, opset = self._made_anew[name]
        else:
            made = self._made_by.get(name)
            if made is None:
                return None
            node, position = Node.of(made[0]), made[1]
            opset = self.opset_of(node.domain)
        return Producer(node, position, self.registry.at(node.op_type, opset, node.domain))

    @cached_property
    def _made_by(self) -> dict[str, tuple[Any, int]]:
        return {
            name: (node, position)
            for node in self.container.node
            for position, name in enumerate(node.output[:])
            if name
        }

    @cached_property
    def _stated(self) -> dict[str, Any]:
        """Name to TypeProto."""
        if self.is_function:
            return {value.name: value.type for value in self.container.value_info}
        values = (*self.container.value_info, *self.container.output, *self.container.input)
        return {value.name: value.type for value in values}

    @cached_property
    def _initializers(self) -> dict[str, Any]:
        return {} if self.is_function else {each.name: each for each in self.container.initializer}

    @cached_property
    def _inputs(self) -> frozenset[str]:
        if self.is_function:
            return frozenset(self.container.input)
        return frozenset(value.name for value in self.container.input)

    @cached_property
    def _used(self) -> set[str]:
        found = set(self.outputs)
        nodes = [self.container.node]
        while nodes:
            for node in nodes.pop():
                found.update(node.input[:])
                if node.domain or self.standings.get(node.op_type) is not QUIET:
                    for graph in _graphs(node):
                        found.update(value.name for value in graph.output)
                        nodes.append(graph.node)
        return found


def _graphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
