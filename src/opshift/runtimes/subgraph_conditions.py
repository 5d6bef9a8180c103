"""Conditions on the subgraphs of a node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from opshift.model.errors import CannotConvert
from opshift.model.graphs import captured_names, graphs_of, is_graph
from opshift.model.messages import GraphProto
from opshift.runtimes.model_nodes import ModelNode

COPYING: Final = frozenset(
    {
        "Cast",
        "CastLike",
        "Concat",
        "Dropout",
        "Expand",
        "Flatten",
        "Identity",
        "Max",
        "Mean",
        "Min",
        "Pad",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Sum",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
"""Operators that may return the elements of their first input, perhaps with another shape or type."""


def subgraphs(names: Iterable[str], node: ModelNode) -> list[GraphProto]:
    """Return the graphs in the named attributes; attributes of invalid nodes may have other types."""
    return [*filter(is_graph, map(node.node.attribute, names))]


def ignores_inputs(name: str, count: str, node: ModelNode) -> bool | None:
    """Return whether no output of subgraph `name` depends on its last inputs; `None` if unknown.

    The attribute `count` has the number of these inputs.
    """
    number = _integer_attribute(count, node)
    if number is None:
        return None
    return any(
        _names_for_outputs(graph).isdisjoint(
            each.name for each in graph.input[_count_of_first(graph, number) :]
        )
        for graph in subgraphs([name], node)
    )


def returns_inputs(name: str, count: str, node: ModelNode) -> bool | None:
    """Return whether one of the first outputs of a subgraph may be a copy of one of its last inputs.

    The result is `None` if it is unknown. The attribute `name` has the subgraph, and the attribute `count`
    the number of last inputs; there are as many first outputs as other inputs.
    """
    number = _integer_attribute(count, node)
    if number is None:
        return None
    return any(
        not _copies(graph, number).isdisjoint(
            each.name for each in graph.output[: _count_of_first(graph, number)]
        )
        for graph in subgraphs([name], node)
    )


def _integer_attribute(name: str, node: ModelNode) -> int | None:
    """Return an attribute that is an integer; `None` if it is absent, not an integer or unknown."""
    try:
        value = node.node.attribute(name)
    except CannotConvert:
        return None
    return value if isinstance(value, int) else None


def _count_of_first(graph: GraphProto, number: int) -> int:
    """Return how many inputs are before the last `number` inputs."""
    return max(len(graph.input) - number, 0)


def _names_for_outputs(graph: GraphProto) -> set[str]:
    """Return the values that the outputs depend on: optimizers remove all other nodes."""
    names = {each.name for each in graph.output}
    for each in reversed(graph.node):
        if not names.isdisjoint(each.output):
            names.update(each.input, *map(captured_names, graphs_of(each)))
    return names


def _copies(graph: GraphProto, number: int) -> set[str]:
    """Return the last `number` inputs, and the results that may be equal to one of them."""
    names = {each.name for each in graph.input[_count_of_first(graph, number) :]}
    for each in graph.node:
        if each.op_type in COPYING and each.input and each.input[0] in names:
            names.update(each.output)
    return names
