"""Paths of graphs and functions in a model, built from names that a conversion does not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opshift.converter.reversible.record import Place
from opshift.converter.reversible.value_index import Holding
from opshift.model.operator_ids import identity

GRAPH: Place = ("graph",)
"""Path of the main graph."""


def top_places(model: Any) -> Iterator[tuple[Place, Any]]:
    """Yield the main graph, the training graphs and the functions, each with its path."""
    yield GRAPH, model.graph
    for index, info in enumerate(model.training_info):
        for part in ("initialization", "algorithm"):
            yield ("training_info", str(index), part), getattr(info, part)
    for function in model.functions:
        yield function_place(function), function


def function_place(function: Any) -> Place:
    """Return the path of a FunctionProto, including its overload."""
    return ("function", *identity(function))


def graph_at(place: Place, tops: dict[Place, Any], holdings: dict[int, Holding]) -> Any:
    """Return the graph or function at a path, or `None` if it does not exist.

    Args:
        place: the path.
        tops: main graph, training graphs and functions by path.
        holdings: value indexes by the identity of the graph; new ones are added.
    """
    # the paths of the main graph, training graphs and functions have 1, 3 and 4 elements
    top = next((place[:size] for size in (1, 3, 4) if place[:size] in tops), None)
    if top is None:
        return None
    container, steps = tops[top], place[len(top) :]
    # each nesting level adds an output of the holder, the attribute and the position in it
    if len(steps) % 3:
        return None
    for output, attribute, position in zip(steps[::3], steps[1::3], steps[2::3], strict=True):
        container = _subgraph(holding_of(container, holdings), output, attribute, position)
        if container is None:
            return None
    return container


def _subgraph(value_index: Holding, output: str, attribute: str, position: str) -> Any:
    """Return the subgraph in an attribute of the producer of `output`, or `None`."""
    producer = value_index.makers.get(output)
    if producer is None:
        return None
    return graph_in(value_index.nodes[producer], attribute, position)


def graph_in(node: Any, attribute: str, position: str) -> Any:
    """Return the graph at a position in an attribute of a node, or `None`."""
    found = next((each for each in node.attribute if each.name == attribute), None)
    graphs = [] if found is None else [*([found.g] if found.HasField("g") else []), *found.graphs]
    return next((graph for index, graph in enumerate(graphs) if str(index) == position), None)


def holding_of(container: Any, holdings: dict[int, Holding]) -> Holding:
    """Return the value index of a graph or function, and cache it by identity.

    A cached index keeps the message alive, so its id is not reused.
    """
    key = id(container)
    if key not in holdings:
        holdings[key] = Holding(container)
    return holdings[key]
