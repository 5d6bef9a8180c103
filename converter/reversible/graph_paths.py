"""Paths of graphs and functions in a model, built from names that a conversion does not change."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.reversible.record import GraphPath
from opshift.converter.reversible.value_index import ValueIndex
from opshift.model.attributes import graphs_in
from opshift.model.graphs import ContainerProto, training_graphs
from opshift.model.messages import FunctionProto, GraphProto, ModelProto, NodeProto
from opshift.model.operator_ids import function_id

MAIN_GRAPH: GraphPath = ("graph",)
"""Path of the main graph."""


def top_level_graphs(model: ModelProto) -> Iterator[tuple[GraphPath, ContainerProto]]:
    """Yield the main graph, the training graphs and the functions, each with its path."""
    yield MAIN_GRAPH, model.graph
    for each in training_graphs(model):
        yield ("training_info", str(each.position), each.part), each.graph
    for function in model.functions:
        yield function_path(function), function


def function_path(function: FunctionProto) -> GraphPath:
    """Return the path of a FunctionProto, including its overload."""
    return ("function", *function_id(function))


def graph_at(
    path: GraphPath,
    top_level: dict[GraphPath, ContainerProto],
    value_indexes: dict[int, ValueIndex],
) -> ContainerProto | None:
    """Return the graph or function at a path, or `None` if it does not exist.

    `value_indexes` caches value indexes by the identity of the graph.
    """
    # the paths of the main graph, training graphs and functions have 1, 3 and 4 elements
    top = next((path[:size] for size in (1, 3, 4) if path[:size] in top_level), None)
    if top is None:
        return None
    container: ContainerProto = top_level[top]
    steps = path[len(top) :]
    # each nesting level adds an output of the holder, the attribute and the position in it
    if len(steps) % 3:
        return None
    for output, attribute, position in zip(steps[::3], steps[1::3], steps[2::3], strict=True):
        graph = _subgraph(value_index_of(container, value_indexes), output, attribute, position)
        if graph is None:
            return None
        container = graph
    return container


def _subgraph(value_index: ValueIndex, output: str, attribute: str, position: str) -> GraphProto | None:
    producer = value_index.producers.get(output)
    if producer is None:
        return None
    return attribute_graph(value_index.nodes[producer], attribute, position)


def attribute_graph(node: NodeProto, attribute: str, position: str) -> GraphProto | None:
    """Return the graph at a position in an attribute of a node, or `None`."""
    holder = next((each for each in node.attribute if each.name == attribute), None)
    graphs = graphs_in(holder) if holder is not None else ()
    return next((graph for index, graph in enumerate(graphs) if str(index) == position), None)


def value_index_of(container: ContainerProto, value_indexes: dict[int, ValueIndex]) -> ValueIndex:
    """Return the value index of a graph or function, and cache it by identity.

    A cached index keeps the message alive, so its id is not reused.
    """
    key = id(container)
    if key not in value_indexes:
        value_indexes[key] = ValueIndex(container)
    return value_indexes[key]
