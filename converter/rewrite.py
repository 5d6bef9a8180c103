"""One node on its way: its steps, and those of the nodes that they emit, until all stand at the target."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from opshift.adapters.bodies import Graph
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Emitted, Facts, Rewriter
from opshift.converter.lineage import Edge
from opshift.converter.route import Route, Router
from opshift.converter.soundness import MAYBE_UNSOUND, require_sound, require_writable
from opshift.registry.models import OperatorVersion

MOST_STEPS = 10_000
"""More steps than any node needs; beyond it two steps undo each other."""
BROKEN_RULES = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    StopIteration,
    RuntimeError,
)
"""What a step raises that reads something which is not there, or not as every sound node has it."""


class Place(Facts, Protocol):
    """Where a node stands: what is known there, and what learns of new nodes."""

    def add_emitted(self, node: Node, opset: int) -> None:
        """Make the new values of a node that an adapter wrote known to inference."""

    def add_graph(self, graph: Graph) -> None:
        """Make the values of a graph that an adapter wrote known to inference."""


class Written(NamedTuple):
    """A node as it will stand in the converted model."""

    node: Node
    operator: OperatorVersion
    successor: bool


class WrittenGraph(NamedTuple):
    """A graph that an adapter wrote, and its nodes as they will stand."""

    graph: Graph
    nodes: tuple[Written, ...]
    after: tuple[Written, ...]


class Rewritten(NamedTuple):
    """What a node was, what takes its place, in order, and the steps that led there."""

    operator: OperatorVersion
    nodes: tuple[Written, ...]
    steps: tuple[Edge, ...]

    @property
    def operators(self) -> tuple[OperatorVersion, ...]:
        """What the nodes are that take its place."""
        return tuple(each.operator for each in self.nodes)

    @property
    def main(self) -> int:
        """The position of the successor among the nodes."""
        return next((i for i, each in enumerate(self.nodes) if each.successor), len(self.nodes) - 1)

    def is_same_as(self, node: Node) -> bool:
        """Whether `node`, the one that it is about, stays as it is."""
        if len(self.nodes) != 1:
            return False
        written = self.nodes[0].node
        return written is node or (
            written.op_type == node.op_type
            and written.domain == node.domain
            and written.inputs == node.inputs
            and written.outputs == node.outputs
            and written.attributes == node.attributes
        )


def rewrite(node: Node, source: int, scope: Place, router: Router) -> Rewritten:
    """Take a node, written for the opset `source` of its domain, to the router's target.

    Raises:
        CannotConvert: it is not as its definition says, or a step refuses it.
        ResolveError: a node that a step emitted is not in its set.
    """
    first = router.route(node.domain, node.op_type, source)
    try:
        result = _follow(node, source, first, scope, router)
    except CannotConvert:
        require_sound(node, first.operator, first.older)
        raise
    if len(result.nodes) != 1 or result.nodes[0].node is not node:
        require_sound(node, first.operator, first.older)
    return result


def _follow(node: Node, source: int, first: Route, scope: Place, router: Router) -> Rewritten:
    waiting = [Emitted(node, source, True)]
    done: list[Written] = []
    taken: list[Edge] = []
    while waiting:
        current, opset, successor = waiting.pop()
        route = first if current is node else router.route(current.domain, current.op_type, opset)
        for step in route.steps:
            taken.append(step)
            emitted = _take(step, current, scope, router)
            if len(emitted) > 1 or not _goes_on(emitted[0], current, step):
                waiting += emitted if successor else [each._replace(successor=False) for each in emitted]
                break
            current = emitted[0].node
        else:
            if current is not node:
                require_writable(current, route.final)
            if route.has_subgraphs:
                current = _with_written_graphs(current, taken, scope, router)
            done.append(Written(current, route.final, successor))
        if len(taken) > MOST_STEPS:
            raise AssertionError(f"the steps from {route.operator.id} do not end")
    return Rewritten(first.operator, tuple(done), tuple(taken))


def _with_written_graphs(node: Node, taken: list[Edge], scope: Place, router: Router) -> Node:
    """The node with the graphs that adapters gave it at the target; the model's own are planned apart."""
    graphs = {name: value for name, value in node.attributes.items() if isinstance(value, Graph)}
    if not graphs:
        return node
    written = {name: _written(graph, taken, scope, router) for name, graph in graphs.items()}
    return node.with_(attributes={**node.attributes, **written})


def _written(graph: Graph, taken: list[Edge], scope: Place, router: Router) -> WrittenGraph:
    scope.add_graph(graph)
    nodes, after = (_all_written(each, taken, scope, router) for each in (graph.nodes, graph.after))
    return WrittenGraph(graph, nodes, after)


def _all_written(
    emitted: tuple[Emitted, ...], taken: list[Edge], scope: Place, router: Router
) -> tuple[Written, ...]:
    done: list[Written] = []
    for node, opset, _ in emitted:
        route = router.route(node.domain, node.op_type, opset)
        if not route.steps:
            require_writable(node, route.final)
        result = _follow(node, opset, route, scope, router)
        done += result.nodes
        taken += result.steps
    return tuple(done)


def _goes_on(emitted: Emitted, node: Node, step: Edge) -> bool:
    """Whether the step's result is the same operator, so that the next step of its route follows."""
    return emitted.node is node or (
        emitted.opset == step.opset
        and emitted.node.op_type == node.op_type
        and emitted.node.domain == node.domain
    )


def _take(step: Edge, node: Node, scope: Place, router: Router) -> list[Emitted]:
    """What a step emits for a node, last first; one of it is the successor."""
    out = Rewriter(scope, step.source, step.target, step.opset, router.default_opset)
    assert step.function is not None
    try:
        step.function(node, out)
    except BROKEN_RULES as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        reason = f"it breaks a rule that the step relies on ({type(error).__name__}: {error})"
        raise CannotConvert(reason, remedy=MAYBE_UNSOUND) from error
    emitted = out.emitted
    if len(emitted) == 1:
        return emitted if emitted[0].successor else [emitted[0]._replace(successor=True)]
    if not any(each.successor for each in emitted):
        emitted[-1] = emitted[-1]._replace(successor=True)
    for each in emitted:
        scope.add_emitted(each.node, each.opset)
    emitted.reverse()
    return emitted
