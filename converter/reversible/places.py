"""Where graphs and functions are in a model, by names that a conversion does not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opshift.converter.functions import identity
from opshift.converter.reversible.holding import Holding
from opshift.converter.reversible.record import Place

GRAPH: Place = ("graph",)


def top_places(model: Any) -> Iterator[tuple[Place, Any]]:
    """The main graph, the training graphs and the functions, each with its place."""
    yield GRAPH, model.graph
    for index, info in enumerate(model.training_info):
        for part in ("initialization", "algorithm"):
            yield ("training_info", str(index), part), getattr(info, part)
    for function in model.functions:
        yield function_place(function), function


def function_place(function: Any) -> Place:
    """The place of a FunctionProto, in which its overload counts."""
    return ("function", *identity(function))


def graph_at(place: Place, tops: dict[Place, Any], holdings: dict[int, Holding]) -> Any:
    """The graph or function at a place; `None` if there is none.

    Args:
        place: where.
        tops: what is at the places that begin none other.
        holdings: of the graphs gone through, by identity; those that are needed are added.
    """
    top = next((place[:size] for size in (1, 3, 4) if place[:size] in tops), None)
    if top is None:
        return None
    container, steps = tops[top], place[len(top) :]
    if len(steps) % 3:
        return None
    for output, attribute, position in zip(steps[::3], steps[1::3], steps[2::3], strict=True):
        container = _within(holding_of(container, holdings), output, attribute, position)
        if container is None:
            return None
    return container


def _within(holding: Holding, output: str, attribute: str, position: str) -> Any:
    """The graph in an attribute of the node that makes a value."""
    index = holding.makers.get(output)
    if index is None:
        return None
    return graph_in(holding.nodes[index], attribute, position)


def graph_in(node: Any, attribute: str, position: str) -> Any:
    """One of the graphs that an attribute of a node holds."""
    found = next((each for each in node.attribute if each.name == attribute), None)
    graphs = [] if found is None else [*([found.g] if found.HasField("g") else []), *found.graphs]
    return next((graph for index, graph in enumerate(graphs) if str(index) == position), None)


def holding_of(container: Any, holdings: dict[int, Holding]) -> Holding:
    """What a graph or function holds, looked at once; `holdings` keeps it, and so its identity."""
    key = id(container)
    if key not in holdings:
        holdings[key] = Holding(container)
    return holdings[key]
