"""Rules for what nodes read and make: each value is made once, before it is read."""

from __future__ import annotations

from opshift.converter.legality.containers import Graph
from opshift.converter.legality.findings import ERROR, WARNING
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import Node


@rule(
    "value.order",
    ERROR,
    source="IR: Nodes",
    remedy="sort the nodes topologically; if that cannot be done they form a cycle",
)
def order(node: Node) -> Flaws:
    """A node reads what nodes before it make."""
    for name in _unseen(node):
        if any(name in each.made for each in node.container.around()):
            yield f"input {name!r} is made by a node further down"


@rule(
    "value.unknown",
    ERROR,
    source="IR: Names Within a Graph",
    remedy="correct the name, or add what is to make it; functions see no values from outside",
)
def unknown(node: Node) -> Flaws:
    """A node reads what a node, an input or an initializer makes, here or in a graph around."""
    for name in _unseen(node):
        if not any(name in each.made for each in node.container.around()):
            yield f"input {name!r} is made by no node, input or initializer"


@rule(
    "value.unique",
    ERROR,
    source="IR: Names Within a Graph",
    remedy="rename one of the two, and what reads it",
)
def unique(node: Node) -> Flaws:
    """A value is made once in a graph."""
    known = node.container.scope.known
    for position, name in enumerate(node.outputs):
        if name and (name in known or name in node.outputs[:position]):
            yield f"output {name!r} is the name of another value"


@rule(
    "value.shadowing",
    ERROR,
    source="IR: Names Within a Graph",
    remedy="rename the value in the inner graph",
)
def shadowing(node: Node) -> Flaws:
    """A node in an inner graph makes no value with a name of one that it sees around the graph."""
    parent = node.container.parent
    if parent is not None:
        for name in node.outputs:
            if name and name not in node.container.scope.known and parent.scope.sees(name):
                yield f"output {name!r} is the name of a value around the graph"


@rule(
    "value.shadowing-input",
    WARNING,
    source="IR: Names Within a Graph",
    remedy="rename the value in the inner graph",
)
def shadowing_input(graph: Graph) -> Flaws:
    """Inputs and initializers of an inner graph have no name of a value that is seen around the graph."""
    if graph.parent is not None:
        for name in sorted(graph.inputs.union(graph.initializers), key=str):
            if name and graph.parent.scope.sees(name):
                yield f"{name!r} is the name of a value around the graph"


def _unseen(node: Node) -> list[str]:
    scope = node.container.scope
    if scope.known.issuperset(node.inputs):
        return []
    return [name for name in node.inputs if not scope.sees(name)]
