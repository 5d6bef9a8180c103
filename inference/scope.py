"""Scope of one graph or function: producers, types, shapes and constant values of its values.

Each fact is computed on the first query about a value, and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from opshift.inference.constants import find_constant
from opshift.inference.facts import FactT, InferenceScope, Producer
from opshift.inference.infer_node import RANKS, SHAPES, TYPES
from opshift.inference.propagation import FactKind, InferenceCache, Propagation, inference_cache_for
from opshift.inference.subgraph_inputs import subgraph_input_shape, subgraph_input_type
from opshift.model.graphs import Container, ContainerProto, NodeRecord, graphs_of, mentioned_names
from opshift.model.messages import GraphProto, NodeProto
from opshift.model.node import Node, Tensor, Value
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry


class OperatorStatus(NamedTuple):
    """Status of an operator: whether its nodes may need conversion, and may contain subgraphs."""

    has_step: bool
    has_graphs: bool


UNAFFECTED = OperatorStatus(has_step=False, has_graphs=False)
"""Shared status of all operators that the conversion can skip; compare it with `is`."""


class Scope(Container):
    """Values of one graph or function, with access to the values of enclosing graphs.

    Attributes:
        opsets: opset imports, by domain.
        registry: operator definitions.
        parent: scope of the enclosing graph; `None` for the main graph and for functions.
        operator_statuses: statuses of the default domain's operators at these opsets.
        owner: NodeProto that contains this subgraph.
        added_constants: constants that adapters added, by name.
        emitted: nodes that adapters emitted, each with its opset.
        defined_names: names of the values of this scope; completed by the survey.
    """

    def __init__(
        self,
        container: ContainerProto,
        opsets: Mapping[str, int],
        registry: Registry,
        operator_statuses: dict[str, OperatorStatus],
        parent: Scope | None = None,
    ) -> None:
        super().__init__(container)
        self.opsets = opsets
        self.registry = registry
        self.parent = parent
        self.operator_statuses = operator_statuses
        self.owner: NodeProto | None = None
        self.added_constants: dict[str, Tensor] = {}
        self.emitted: list[tuple[Node, int]] = []
        self.defined_names = self.predefined_names()
        self._emitted_producers: dict[str, tuple[Node, int, int]] = {}
        self._producers: dict[str, Producer | None] = {}
        self._children: dict[int, Scope] = {}
        self._operators: dict[tuple[str, str], OperatorVersion | None] = {}

    @cached_property
    def _types(self) -> Propagation[str]:
        return Propagation(TYPES, self.node_records, self.inference_cache(TYPES))

    @cached_property
    def _shapes(self) -> Propagation[Shape]:
        return Propagation(SHAPES, self.node_records, self.inference_cache(SHAPES))

    @cached_property
    def _ranks(self) -> Propagation[int]:
        return Propagation(RANKS, self.node_records, self.inference_cache(RANKS))

    def inference_cache(self, kind: FactKind[FactT]) -> InferenceCache:
        """Return the inference cache for a kind of fact."""
        return inference_cache_for(kind, self.registry, self.opset_of(""))

    @property
    def has_node_records(self) -> bool:
        """Whether the node records exist: the survey stored them, or a query needed them."""
        return "node_records" in vars(self)

    def store_node_records(self, lines: list[NodeRecord]) -> None:
        """Store the node records that the survey read."""
        self.node_records = lines

    def child(self, graph: GraphProto) -> Scope:
        """Return the scope of a subgraph of a node."""
        key = id(graph)  # stays unique, because the scope holds a reference to the graph
        if key not in self._children:
            self._children[key] = type(self)(
                graph,
                self.opsets,
                self.registry,
                self.operator_statuses,
                self,
            )
        return self._children[key]

    def is_visible(self, name: str) -> bool:
        """Return whether a value is defined in this or an enclosing graph."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.defined_names:
                return True
            scope = scope.parent
        return False

    def used_names(self) -> Iterator[Iterable[str]]:
        """Yield the names in this graph and its subgraphs in groups, those without a value included."""
        # In groups, because a set adds a whole set much faster than single names.
        yield self.defined_names
        yield mentioned_names(self.container)
        for each in self._children.values():
            yield from each.used_names()

    def add_emitted(self, node: Node, opset: int, new_names: Set[str]) -> None:
        """Make the outputs of an emitted node available to inference.

        Args:
            node: the node.
            opset: opset that it is written for.
            new_names: names that no node of the model produces.
        """
        self.emitted.append((node, opset))
        for position, name in enumerate(node.outputs):
            if name in new_names:
                self._emitted_producers[name] = (node, position, opset)

    def declare(self, value: Value) -> None:
        """Make the declared type and shape of a value of an emitted graph available to inference."""
        self._types.set_fact(value.name, value.type)
        self._shapes.set_fact(value.name, value.dims)
        self._ranks.set_fact(value.name, None if value.dims is None else len(value.dims))

    def producer(self, name: str) -> Producer | None:
        """Return the producer of a value in this scope; `None` if no node produces it."""
        if name not in self._producers:
            self._producers[name] = self._find_producer(name)
        return self._producers[name]

    def opset_of(self, domain: str) -> int:
        """Return the imported opset of a domain; 0 if it is not imported."""
        return self.opsets.get(domain or DEFAULT_DOMAIN, 0)

    def operator(self, op_type: str, domain: str) -> OperatorVersion | None:
        """Return the operator version under the opset imports; `None` if the registry does not contain it."""
        key = (domain, op_type)
        if key not in self._operators:
            self._operators[key] = self.registry.at(op_type, self.opset_of(domain), domain)
        return self._operators[key]

    def node(self, proto: NodeProto) -> Node:
        """Return the view of a NodeProto as a node of this scope."""
        return self.with_call_facts(Node.from_proto(proto))

    def node_of(self, record: NodeRecord) -> Node:
        """Return the view of a recorded node of this scope."""
        _, domain, op_type, inputs, outputs = record
        return self.with_call_facts(Node(op_type, inputs, outputs, None, domain, self.proto_of(record)))

    def with_call_facts(self, node: Node) -> Node:
        """Return a node with the facts that calls add to its NodeProto: none outside of functions."""
        return node

    @property
    def has_plain_nodes(self) -> bool:
        """Whether nodes depend on their NodeProto alone, not on calls of a function."""
        return True

    def is_call(self, record: NodeRecord) -> bool:
        """Return whether a node calls a function."""
        return False

    def infer_call(
        self, record: NodeRecord, fact: Callable[[InferenceScope, str], FactT | None]
    ) -> Sequence[FactT | None] | None:
        """Return one fact per output of a function call; `None` if the node is not a call."""
        return None

    def is_used(self, name: str) -> bool:
        """Return whether a node of this graph or of a nested one reads the value, or it is an output."""
        return name in self._used

    def is_local(self, name: str) -> bool:
        """Return whether the value is defined in this graph, not in an enclosing one."""
        return name in self.defined_names or name in self._emitted_producers or name in self.added_constants

    def element_type(self, name: str) -> str | None:
        """Return the element type of a tensor, such as `float16`, or the type string of another value."""
        return self._types.fact_of(name, self)

    def shape(self, name: str) -> Shape | None:
        """Return the dimensions of a value, `None` for unknown ones; `None` if the rank is unknown."""
        return self._shapes.fact_of(name, self)

    def rank(self, name: str) -> int | None:
        """Return the rank of a value; `None` if it is unknown."""
        return self._ranks.fact_of(name, self)

    def nested_shape(self, graph: GraphProto, name: str) -> Shape | None:
        """Return the dimensions of a value of a subgraph of a node."""
        return self.child(graph).shape(name)

    def constant(self, name: str) -> Tensor | None:
        """Return the value if it is the same in every run; `None` otherwise."""
        return self.added_constants.get(name) or find_constant(self, name)

    def declared_type(self, name: str) -> str | None:
        """Return the element type of a value without inference over nodes.

        Sources: the model's declarations, new constants, and the values passed to a subgraph.
        """
        if name in self.added_constants:
            return self.added_constants[name].element_type
        result = self.own_declared_type(name)
        return subgraph_input_type(self, name) if result is None and self._is_subgraph_input(name) else result

    def declared_shape(self, name: str) -> Shape | None:
        """Return the shape of a value without inference over nodes; sources as for `declared_type`."""
        if name in self.added_constants:
            return self.added_constants[name].dims
        result = self.own_declared_shape(name)
        return (
            subgraph_input_shape(self, name) if result is None and self._is_subgraph_input(name) else result
        )

    def declared_rank(self, name: str) -> int | None:
        """Return the rank of a value without inference over nodes; sources as for `declared_type`."""
        tensor = self.initializer(name)
        if tensor is not None:
            return len(tensor.dims)
        result = self.declared_shape(name)
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
        return self.owner is not None and name in self._inputs

    @cached_property
    def _used(self) -> set[str]:
        result: set[str] = set()
        pending: list[Scope] = [self]
        while pending:
            scope = pending.pop()
            for record in scope.node_records:
                _, domain, op_type, inputs, _ = record
                result.update(inputs)
                # Most nodes have no subgraphs; their attributes are not read.
                if domain or self.operator_statuses.get(op_type) is not UNAFFECTED:
                    pending += map(scope.child, graphs_of(scope.proto_of(record)))
            result.update(scope.outputs)
        return result
