"""Scope of one graph or function: producers, types, shapes and constant values of its values.

Each fact is computed on the first query about a value, and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

from opshift.converter.options import Concessions
from opshift.inference.constants import constant_of
from opshift.inference.infer_node import RANKS, SHAPES, TYPES
from opshift.inference.propagation import Following, Kind, Learned, learned_at
from opshift.inference.subgraph_inputs import handed_shape, handed_type
from opshift.model.fresh_names import Names
from opshift.model.graphs import Container, Line, graphs_of, mentioned_in
from opshift.model.node import Graph, Node, Tensor
from opshift.model.operator_ids import canonical_domain
from opshift.model.tensors import pack
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.steps import Concession


class Producer(NamedTuple):
    """Node that produces a value.

    Attributes:
        node: the node.
        position: position of the value among its outputs.
        operator: its operator version; `None` if the registry does not contain it.
    """

    node: Node
    position: int
    operator: OperatorVersion | None


class Standing(NamedTuple):
    """Status of an operator: whether its nodes may need conversion, and may contain subgraphs."""

    has_step: bool
    has_graphs: bool


QUIET = Standing(has_step=False, has_graphs=False)
"""Shared status of all operators that the conversion can skip; compare it with `is`."""


class Scope(Container):
    """Values of one graph or function, with access to the values of enclosing graphs.

    Attributes:
        opsets: opset imports, by domain.
        registry: operator definitions.
        parent: scope of the enclosing graph; `None` for the main graph and for functions.
        operator_statuses: statuses of the default domain's operators at these opsets.
        fresh_names: generator of fresh names for the model.
        allowances: inexact conversions that the caller allows.
        owner: NodeProto that contains this subgraph.
        new_constants: constants that adapters added, by name.
        emitted: nodes that adapters emitted, each with its opset.
        defined_names: names of the values of this scope; completed by the survey.
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
        self._emitted_producers: dict[str, tuple[Node, int, int]] = {}
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
        """Return the inference cache for a kind of fact."""
        return learned_at(kind, self.registry, self.opset_of(""))

    @property
    def has_lines(self) -> bool:
        """Whether the node records exist: the survey stored them, or a query needed them."""
        return "lines" in vars(self)

    def keep(self, lines: list[Line]) -> None:
        """Store the node records that the survey read."""
        self.lines = lines

    def child(self, graph: Any) -> Scope:
        """Return the scope of a subgraph of a node."""
        key = id(graph)  # stays unique, because the scope holds a reference to the graph
        if key not in self._children:
            self._children[key] = type(self)(
                graph, self.opsets, self.registry, self.names, self.concessions, self.standings, self
            )
        return self._children[key]

    def sees(self, name: str) -> bool:
        """Return whether a value is defined in this or an enclosing graph."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.known:
                return True
            scope = scope.parent
        return False

    def fresh(self, hint: str) -> str:
        """Return an unused value name that starts with a hint."""
        return self.names.fresh(hint)

    def add_constant(self, tensor: Tensor) -> str:
        """Add a constant to this scope and return its name; identical constants share one name.

        Raises:
            CannotConvert: the element type cannot represent the values.
        """
        # Keyed by the packed bytes: as numbers, 0.0 equals -0.0 and NaN differs from itself.
        key = (tensor.element_type, tensor.dims, pack(tensor))
        result = self._constant_names.get(key)
        if result is None:
            result = self._constant_names[key] = self.fresh("const")
            self.new_constants[result] = tensor
        return result

    def concede(self, kind: Concession, reason: str) -> bool:
        """Return whether the caller allows an inexact conversion; if so, record its use."""
        return self.concessions.concede(kind, reason)

    def add_emitted(self, node: Node, opset: int) -> None:
        """Make the outputs of an emitted node available to inference."""
        self.emitted.append((node, opset))
        for position, name in enumerate(node.outputs):
            if name in self.names.made:
                self._emitted_producers[name] = (node, position, opset)

    def add_graph(self, graph: Graph) -> None:
        """Make the values of an emitted graph available to inference."""
        for value in graph.inputs:
            self._types.tell(value.name, value.type)
            self._shapes.tell(value.name, value.dims)
            self._ranks.tell(value.name, None if value.dims is None else len(value.dims))
        for each in (*graph.nodes, *graph.after):
            self.add_emitted(each.node, each.opset)

    def producer(self, name: str) -> Producer | None:
        """Return the producer of a value in this scope; `None` if no node produces it."""
        if name not in self._producers:
            self._producers[name] = self._find_producer(name)
        return self._producers[name]

    def opset_of(self, domain: str) -> int:
        """Return the imported opset of a domain; 0 if it is not imported."""
        return self.opsets.get(canonical_domain(domain), 0)

    def operator(self, op_type: str, domain: str) -> OperatorVersion | None:
        """Return the operator version under the opset imports; `None` if the registry does not contain it."""
        key = (domain, op_type)
        if key not in self._operators:
            self._operators[key] = self.registry.at(op_type, self.opset_of(domain), domain)
        return self._operators[key]

    def node(self, proto: Any) -> Node:
        """Return the view of a NodeProto as a node of this scope."""
        return self.seen(Node.of(proto))

    def node_of(self, line: Line) -> Node:
        """Return the view of a recorded node of this scope."""
        _, domain, op_type, inputs, outputs = line
        return self.seen(Node(op_type, inputs, outputs, None, domain, self.proto_of(line)))

    def seen(self, node: Node) -> Node:
        """Return a node with the facts that calls add to its NodeProto: none outside of functions."""
        return node

    @property
    def has_plain_nodes(self) -> bool:
        """Whether nodes depend on their NodeProto alone, not on calls of a function."""
        return True

    def is_call(self, line: Line) -> bool:
        """Return whether a node calls a function."""
        return False

    def through_call(self, line: Line, fact: Callable[[Scope, str], Any]) -> list[Any] | None:
        """Return one fact per output of a function call; `None` if the node is not a call."""
        return None

    def is_used(self, name: str) -> bool:
        """Return whether a node of this graph or of a nested one reads the value, or it is an output."""
        return name in self._used

    def is_local(self, name: str) -> bool:
        """Return whether the value is defined in this graph, not in an enclosing one."""
        return name in self.known or name in self._emitted_producers or name in self.new_constants

    def element_type(self, name: str) -> str | None:
        """Return the element type of a tensor, such as `float16`, or the type string of another value."""
        return self._types.of(name, self)

    def shape(self, name: str) -> Shape | None:
        """Return the dimensions of a value, `None` for unknown ones; `None` if the rank is unknown."""
        return self._shapes.of(name, self)

    def rank(self, name: str) -> int | None:
        """Return the rank of a value; `None` if it is unknown."""
        return self._ranks.of(name, self)

    def shape_within(self, graph: Any, name: str) -> Shape | None:
        """Return the dimensions of a value of a subgraph of a node."""
        return self.child(graph).shape(name)

    def constant(self, name: str) -> Tensor | None:
        """Return the value if it is the same in every run; `None` otherwise."""
        return self.new_constants.get(name) or constant_of(self, name)

    def stated_type(self, name: str) -> str | None:
        """Return the element type of a value without inference over nodes.

        Sources: the model's declarations, new constants, and the values passed to a subgraph.
        """
        if name in self.new_constants:
            return self.new_constants[name].element_type
        result = self.own_type(name)
        return handed_type(self, name) if result is None and self._is_subgraph_input(name) else result

    def stated_shape(self, name: str) -> Shape | None:
        """Return the shape of a value without inference over nodes; sources as for `declared_type`."""
        if name in self.new_constants:
            return self.new_constants[name].dims
        result = self.own_shape(name)
        return handed_shape(self, name) if result is None and self._is_subgraph_input(name) else result

    def stated_rank(self, name: str) -> int | None:
        """Return the rank of a value without inference over nodes; sources as for `declared_type`."""
        tensor = self.initializer(name)
        if tensor is not None:
            return len(tensor.dims)
        result = self.stated_shape(name)
        return None if result is None else len(result)

    def _find_producer(self, name: str) -> Producer | None:
        if name in self._emitted_producers:
            node, position, opset = self._emitted_producers[name]
        else:
            record = self._producing_records.get(name)
            if record is None:
                return None
            node, position = self.node_of(record[0]), record[1]
            opset = self.opset_of(node.domain)
        return Producer(node, position, self.registry.at(node.op_type, opset, node.domain))

    def _is_subgraph_input(self, name: str) -> bool:
        return self.holder is not None and name in self._inputs

    @cached_property
    def _used(self) -> set[str]:
        result: set[str] = set()
        pending: list[Scope] = [self]
        while pending:
            scope = pending.pop()
            for line in scope.lines:
                _, domain, op_type, inputs, _ = line
                result.update(inputs)
                # Most nodes have no subgraphs; their attributes are not read.
                if domain or self.standings.get(op_type) is not QUIET:
                    pending += map(scope.child, graphs_of(scope.proto_of(line)))
            result.update(scope.outputs)
        return result
