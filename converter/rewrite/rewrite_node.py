"""Rewriting of one node: apply its steps, and the steps of emitted nodes, until all are at the target."""

from __future__ import annotations

from typing import Protocol

from opshift.adapters.core.rewriter import Output, Rewriter
from opshift.converter.rewrite.result import ComputedRewrite, Emission, EmittedGraph
from opshift.converter.rewrite.routes import Route, Router
from opshift.converter.rewrite.validation import (
    CHECK_MODEL_REMEDY,
    validate_emitted_attributes,
    validate_node,
)
from opshift.converter.rewrite.version_steps import VersionStep
from opshift.inference.facts import Facts
from opshift.model.errors import CannotConvert
from opshift.model.node import Emitted, Graph, Node

MAX_STEPS = 10_000
"""Maximum number of steps per node; more mean that steps undo each other in a cycle."""

INVALID_NODE_ERRORS = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    StopIteration,
    RuntimeError,
)
"""Errors of a step that reads a missing or malformed part of an invalid node."""


class RewriteOutput(Output, Protocol):
    """Output of the steps of a node, which also accepts the values of emitted nodes."""

    def add_emitted(self, node: Node, opset: int) -> None:
        """Make the outputs of an emitted node available to inference."""

    def add_graph(self, graph: Graph) -> None:
        """Make the values of an emitted graph available to inference."""


def rewrite_node(
    node: Node, source: int, facts: Facts, output: RewriteOutput, router: Router
) -> ComputedRewrite:
    """Rewrite a node for the target opsets.

    Args:
        node: the node.
        source: opset of its domain that it is written for.
        facts: facts about its graph.
        output: receives what the steps add to the graph.
        router: routes to the target opsets.

    Raises:
        CannotConvert: the node is invalid, or a step refuses it.
        ResolveError: a step emitted a node with an unknown operator.
    """
    first = router.route(node.domain, node.op_type, source)
    try:
        result = _apply_steps(node, source, first, facts, output, router)
    except CannotConvert:
        # If the node is invalid, that is the better error. Validation is slow, so it runs only when needed.
        validate_node(node, first.operator, first.older_versions)
        raise
    if len(result.nodes) != 1 or result.nodes[0].node is not node:
        validate_node(node, first.operator, first.older_versions)
    return result


def _apply_steps(
    node: Node, source: int, first: Route, facts: Facts, output: RewriteOutput, router: Router
) -> ComputedRewrite:
    pending = [Emitted(node, source, True)]
    done: list[Emission] = []
    applied_steps: list[VersionStep] = []
    while pending:
        current, opset, successor = pending.pop()
        route = first if current is node else router.route(current.domain, current.op_type, opset)
        for step in route.steps:
            applied_steps.append(step)
            emitted = _run_step(step, current, facts, output, router)
            if len(emitted) > 1 or not _continues_route(emitted[0], current, step):
                pending += emitted if successor else [each._replace(is_replacement=False) for each in emitted]
                break
            current = emitted[0].node
        else:
            if current is not node:
                validate_emitted_attributes(current, route.final)
            if route.status.has_graphs:
                current = _with_converted_graphs(current, applied_steps, facts, output, router)
            done.append(Emission(current, route.final, successor))
        if len(applied_steps) > MAX_STEPS:
            raise AssertionError(f"the steps from {route.operator.id} do not terminate")
    return ComputedRewrite(first.operator, node, tuple(done), tuple(applied_steps))


def _with_converted_graphs(
    node: Node, applied_steps: list[VersionStep], facts: Facts, output: RewriteOutput, router: Router
) -> Node:
    """Convert the graphs that adapters emitted in a node; subgraphs of the model are planned separately."""
    graphs = {name: value for name, value in node.attributes.items() if isinstance(value, Graph)}
    if not graphs:
        return node
    written = {
        name: _convert_graph(graph, applied_steps, facts, output, router) for name, graph in graphs.items()
    }
    return node.with_(attributes={**node.attributes, **written})


def _convert_graph(
    graph: Graph, applied_steps: list[VersionStep], facts: Facts, output: RewriteOutput, router: Router
) -> EmittedGraph:
    output.add_graph(graph)
    nodes, after = (
        _convert_nodes(each, applied_steps, facts, output, router)
        for each in (graph.nodes, graph.nodes_after)
    )
    return EmittedGraph(graph, nodes, after)


def _convert_nodes(
    emitted: tuple[Emitted, ...],
    applied_steps: list[VersionStep],
    facts: Facts,
    output: RewriteOutput,
    router: Router,
) -> tuple[Emission, ...]:
    done: list[Emission] = []
    for node, opset, _ in emitted:
        route = router.route(node.domain, node.op_type, opset)
        if not route.steps:
            validate_emitted_attributes(node, route.final)
        result = _apply_steps(node, opset, route, facts, output, router)
        done += result.nodes
        applied_steps += result.steps
    return tuple(done)


def _continues_route(emitted: Emitted, node: Node, step: VersionStep) -> bool:
    """Whether the result of a step is the same operator, so that the next step of the route applies."""
    return emitted.node is node or (
        emitted.opset == step.opset
        and emitted.node.op_type == node.op_type
        and emitted.node.domain == node.domain
    )


def _run_step(
    step: VersionStep, node: Node, facts: Facts, output: RewriteOutput, router: Router
) -> list[Emitted]:
    """Return the nodes that a step emits, last first; one of them is the replacement."""
    out = Rewriter(facts, output, step.source, step.target, step.opset, router.default_opset)
    assert step.function is not None
    try:
        step.function(node, out)
    except INVALID_NODE_ERRORS as error:
        if isinstance(error, UnicodeDecodeError):
            raise  # reported as an invalid model
        reason = f"it violates an assumption of the step ({type(error).__name__}: {error})"
        raise CannotConvert(reason, remedy=CHECK_MODEL_REMEDY) from error
    emitted = out.emitted
    if len(emitted) == 1:
        return emitted if emitted[0].is_replacement else [emitted[0]._replace(is_replacement=True)]
    if not any(each.is_replacement for each in emitted):
        emitted[-1] = emitted[-1]._replace(is_replacement=True)
    for each in emitted:
        output.add_emitted(each.node, each.opset)
    emitted.reverse()
    return emitted
