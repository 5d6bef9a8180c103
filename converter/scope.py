"""One graph or function: which node makes a value, what its type is, what its value is if constant.

Everything is found when first asked for, of that one value, and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

from opshift.adapters.bodies import Graph
from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Concession
from opshift.adapters.tensors import pack
from opshift.converter.concessions import Concessions
from opshift.converter.constants import constant_of
from opshift.converter.container import Container, graphs_of, mentioned_in
from opshift.converter.following import Following, Kind, Learned, learned_at
from opshift.converter.handing import handed_shape, handed_type
from opshift.converter.inference import RANKS, SHAPES, TYPES
from opshift.converter.lines import Line
from opshift.converter.names import Names
from opshift.converter.types import Shape
from opshift.registry.catalogue import Registry
from opshift.registry.models import OperatorVersion
from opshift.registry.names import canonical_domain


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


class Scope(Container):
    """The values of one graph or function, and of the graphs around it.

    Attributes:
        opsets: its opset imports, by domain.
        known: the names made here; the survey completes them.
        standings: what is known of the default domain's operators at these opsets.
        new_constants: the constants that adapters asked for, by name.
        emitted: the nodes that adapters wrote, and the opset of each.
        holder: the NodeProto that this is a graph of.
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
        super().__init__(container)
        self.opsets = opsets
        self.registry = registry
        self.parent = parent
        self.standings = standings
        self.names = names
        self.concessions = concessions
        self.holder: Any = None
        self.new_constants: dict[str, Tensor] = {}
        self.emitted: list[tuple[Node, int]] = []
        self.known = self.declared()
        names.sets.append(self.known)
        names.mentions.append(partial(mentioned_in, container))
        self._constant_names: dict[tuple[Any, ...], str] = {}
        self._made_anew: dict[str, tuple[Node, int, int]] = {}
        self._producers: dict[str, Producer | None] = {}
        self._children: dict[int, Scope] = {}
        self._operators: dict[tuple[str, str], OperatorVersion | None] = {}

    @cached_property
    def _types(self) -> Following[str]:
        return Following(TYPES, self.lines, self.learned(TYPES))

    @cached_property
    def _shapes(self) -> Following[Shape]:
        return Following(SHAPES, self.lines, self.learned(SHAPES))

    @cached_property
    def _ranks(self) -> Following[int]:
        return Following(RANKS, self.lines, self.learned(RANKS))

    def learned(self, kind: Kind[Any]) -> Learned:
        """Where to remember what follows of nodes."""
        return learned_at(kind, self.registry, self.opset_of(""))

    @property
    def has_lines(self) -> bool:
        """Whether somebody asked for the nodes as they were read, or the survey kept them."""
        return "lines" in vars(self)

    def keep(self, lines: list[Line]) -> None:
        """Keep the nodes as somebody read them."""
        self.lines = lines

    def child(self, graph: Any) -> Scope:
        """The scope of a graph that an attribute of a node holds."""
        key = id(graph)  # no other gets it: the scope keeps the graph
        if key not in self._children:
            self._children[key] = type(self)(
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

    def add_graph(self, graph: Graph) -> None:
        """Make the values of a graph that an adapter wrote known to inference."""
        for value in graph.inputs:
            self._types.tell(value.name, value.type)
            self._shapes.tell(value.name, value.dims)
            self._ranks.tell(value.name, None if value.dims is None else len(value.dims))
        for each in (*graph.nodes, *graph.after):
            self.add_emitted(each.node, each.opset)

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
        key = (domain, op_type)
        if key not in self._operators:
            self._operators[key] = self.registry.at(op_type, self.opset_of(domain), domain)
        return self._operators[key]

    def node(self, proto: Any) -> Node:
        """The view of a NodeProto as it would be here."""
        return self.seen(Node.of(proto))

    def node_of(self, line: Line) -> Node:
        """The view of a node of this scope."""
        _, domain, op_type, inputs, outputs = line
        return self.seen(Node(op_type, inputs, outputs, None, domain, self.proto_of(line)))

    def seen(self, node: Node) -> Node:
        """A node with what the place adds to what its NodeProto says."""
        return node

    @property
    def has_plain_nodes(self) -> bool:
        """Whether the place adds nothing to any node."""
        return True

    def is_call(self, line: Line) -> bool:
        """Whether a node calls a function."""
        return False

    def through_call(self, line: Line, fact: Callable[[Scope, str], Any]) -> list[Any] | None:
        """A fact about each output of a node that calls a function; `None` if it calls none."""
        return None

    def is_used(self, name: str) -> bool:
        """Whether a node here or in a graph below reads the value, or it is an output."""
        return name in self._used

    def is_local(self, name: str) -> bool:
        """Whether the value is made here, not in a graph around this one."""
        return name in self.known or name in self._made_anew or name in self.new_constants

    def element_type(self, name: str) -> str | None:
        """The element type of a tensor, such as `float16`; of other values their type string."""
        return self._types.of(name, self)

    def shape(self, name: str) -> Shape | None:
        """The dimensions of a value; `None` for each, or for all, that are not known."""
        return self._shapes.of(name, self)

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a value, if it is known."""
        return self._ranks.of(name, self)

    def shape_within(self, graph: Any, name: str) -> Shape | None:
        """The dimensions of a value of a graph that an attribute of a node here holds."""
        return self.child(graph).shape(name)

    def constant(self, name: str) -> Tensor | None:
        """The value, if every run has the same: an initializer no caller overrides, or a Constant."""
        return self.new_constants.get(name) or constant_of(self, name)

    def stated_type(self, name: str) -> str | None:
        """The element type that the model, or a constant, states."""
        if name in self.new_constants:
            return self.new_constants[name].element_type
        found = self.own_type(name)
        return handed_type(self, name) if found is None and self._is_handed(name) else found

    def stated_shape(self, name: str) -> Shape | None:
        """The shape that the model, or a constant, states."""
        if name in self.new_constants:
            return self.new_constants[name].dims
        found = self.own_shape(name)
        return handed_shape(self, name) if found is None and self._is_handed(name) else found

    def stated_rank(self, name: str) -> int | None:
        """The number of dimensions that the model, or a constant, states."""
        tensor = self.initializer(name)
        if tensor is not None:
            return len(tensor.dims)
        found = self.stated_shape(name)
        return None if found is None else len(found)

    def _find_producer(self, name: str) -> Producer | None:
        if name in self._made_anew:
            node, position, opset = self._made_anew[name]
        else:
            made = self._made_by.get(name)
            if made is None:
                return None
            node, position = self.node_of(made[0]), made[1]
            opset = self.opset_of(node.domain)
        return Producer(node, position, self.registry.at(node.op_type, opset, node.domain))

    def _is_handed(self, name: str) -> bool:
        return self.holder is not None and name in self._inputs

    @cached_property
    def _used(self) -> set[str]:
        found: set[str] = set()
        waiting: list[Scope] = [self]
        while waiting:
            scope = waiting.pop()
            for line in scope.lines:
                _, domain, op_type, inputs, _ = line
                found.update(inputs)
                if domain or self.standings.get(op_type) is not QUIET:
                    waiting += map(scope.child, graphs_of(scope.proto_of(line)))
            found.update(scope.outputs)
        return found
