"""Index of one graph or function (producers and consumers of values), and the names that nodes use."""

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property
from hashlib import blake2b
from typing import Any

from opshift.model.attributes import graphs_in
from opshift.model.graphs import (
    ContainerProto,
    captured_names,
    graphs_of,
    is_graph,
    names_outside_nodes,
    nested_containers,
)
from opshift.model.messages import GraphProto, Message, NodeProto, TensorProto
from opshift.model.offloaded_tensors import serialize
from opshift.rewriting.result import ConvertedNode, EmittedGraph

OUTSIDE_NODES = -1
"""Position that represents consumers that are not nodes: graph inputs and outputs, annotations."""


class ValueIndex:
    """Producers, consumers and constants of one graph or function; `producers` maps values to positions."""

    def __init__(self, container: ContainerProto) -> None:
        self.container = container
        self.nodes = list(container.node)
        self.producers = {
            name: index for index, node in enumerate(self.nodes) for name in node.output[:] if name
        }
        self._reads: dict[int, frozenset[str]] = {}

    @cached_property
    def initializers(self) -> dict[str, TensorProto]:
        """Initializers by name."""
        return {each.name: each for each in getattr(self.container, "initializer", ())}

    @cached_property
    def consumers(self) -> dict[str, set[int]]:
        """Positions of the nodes that read a value, directly or in their subgraphs, by value name."""
        consumers: dict[str, set[int]] = {}
        for index in range(len(self.nodes)):
            for name in self.reads(index):
                consumers.setdefault(name, set()).add(index)
        # Do not count inputs with initializers: below IR version 4, every initializer is an input.
        inputs: set[str] = set()
        if is_graph(self.container):
            inputs.update(each.name for each in self.container.input if each.name in self.initializers)
            inputs.difference_update(each.name for each in self.container.output)
        for name in names_outside_nodes(self.container):
            if name not in inputs:
                consumers.setdefault(name, set()).add(OUTSIDE_NODES)
        return consumers

    def reads(self, position: int) -> frozenset[str]:
        """Return the names that a node reads, directly or in its subgraphs."""
        # cached, because intact groups, digests and consumers all need the names
        if position not in self._reads:
            self._reads[position] = frozenset(names_read(self.nodes[position]))
        return self._reads[position]

    def subgraph(self, output: str, attribute: str, position: str) -> GraphProto | None:
        """Return the graph at a position in an attribute of a value's producer; `None` if there is none."""
        if output not in self.producers:
            return None
        attributes = self.nodes[self.producers[output]].attribute
        graphs = (graph for each in attributes if each.name == attribute for graph in graphs_in(each))
        return next((graph for index, graph in enumerate(graphs) if str(index) == position), None)

    def has_constant(self, name: str) -> bool:
        """Return whether an initializer, a Constant node or a Cast defines the name."""
        return name in self.initializers or (
            name in self.producers and self.nodes[self.producers[name]].op_type in ("Constant", "Cast")
        )

    def digest(self, group: Sequence[str], constants: Set[str]) -> str | None:
        """Return a digest of nodes and of the added constants that they read; `None` if any is absent.

        `group` has one output of each node; `constants` are the names of all added constants.
        """
        if not all(name in self.producers for name in group):
            return None
        positions = [self.producers[name] for name in group]
        read = constants & frozenset[str]().union(*map(self.reads, positions))
        # Add the constants from which a Cast computes the constants that are read.
        producers = [self.producers[name] for name in read if name in self.producers]
        read |= constants & frozenset[str]().union(*map(self.reads, producers))
        if not all(map(self.has_constant, read)):
            return None
        tensors = [self.initializers.get(name) or self.nodes[self.producers[name]] for name in sorted(read)]
        return _digest_messages([*(self.nodes[position] for position in positions), *tensors])


def _digest_messages(messages: Sequence[Message]) -> str:
    digest = blake2b(digest_size=8)
    for message in messages:
        data = serialize(message)
        # The length distinguishes different splits of the same bytes.
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def names_read(node: NodeProto) -> Iterator[str]:
    """Yield the names that a NodeProto and its subgraphs read, including values of these subgraphs."""
    yield from node.input[:]
    for graph in graphs_of(node):
        yield from names_read_in_graph(graph)


def names_defined(node: NodeProto) -> Iterator[str]:
    """Yield the names that a NodeProto and its subgraphs define."""
    yield from node.output
    for graph in nested_containers(graphs_of(node)):
        yield from (each.name for each in graph.input)
        yield from (each.name for each in graph.initializer)
        yield from (each.values.name for each in graph.sparse_initializer)
        yield from (name for inner in graph.node for name in inner.output)


def names_read_in_graph(graph: GraphProto) -> Iterator[str]:
    """Yield the names of a graph's inputs, outputs and annotations, and the names that its nodes read."""
    yield from names_outside_nodes(graph)
    for node in graph.node:
        yield from names_read(node)


def free_names(node: NodeProto) -> set[str]:
    """Return the names that a NodeProto or its subgraphs read and that are defined outside the node."""
    captured = (name for graph in graphs_of(node) for name in captured_names(graph))
    return {*node.input, *captured} - {""}


def first_name(names: Iterable[str]) -> str:
    """Return the first nonempty output name, which identifies a node; empty if there is none."""
    return next(filter(None, names), "")


def names_read_by(converted_nodes: Iterable[ConvertedNode]) -> Iterator[str]:
    """Yield the names that emitted nodes and their subgraphs read."""
    for converted in converted_nodes:
        yield from converted.node.inputs
        for value in converted.node.attributes.values():
            yield from _names_read_in_attribute(value)


def _names_read_in_attribute(value: Any) -> Iterator[str]:
    # a subgraph is an emitted graph, or an unchanged attribute of the model
    if isinstance(value, EmittedGraph):
        yield from names_read_by((*value.nodes, *value.after))
        yield from (output.name for output in value.graph.outputs)
        value = value.graph.embedded
    if hasattr(value, "ref_attr_name"):
        for graph in graphs_in(value):
            yield from names_read_in_graph(graph)
