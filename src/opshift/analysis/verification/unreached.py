"""Branches that no sample executes: equal outputs do not show whether their conversion is correct."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from opshift.analysis.verification.executable_graph import ModelRuntime
from opshift.analysis.verification.inputs import Feeds
from opshift.analysis.verification.runtimes import CannotRun
from opshift.converter.functions.inlining import called_functions
from opshift.inference.root_scopes import graph_scopes
from opshift.model.graphs import node_place
from opshift.model.messages import AttributeProto, ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, LocalFunction, canonical_domain, function_id

BRANCHES = {"then_branch": True, "else_branch": False}
"""Attributes of If, with the value of the condition for which each is executed."""


def unreached_branches(
    original: ModelRuntime, converted: ModelProto, samples: Iterable[Feeds]
) -> tuple[str, ...]:
    """Return the labels of changed branches that no sample executes, for If nodes of the main graph.

    A branch that calls a changed function is changed, too. If nodes with a condition that inference knows to
    be constant are skipped. The result is empty if the runtime cannot return the conditions.
    """
    graph = original.main_graph()
    scope, _ = next(graph_scopes(original.source.model, original.registry))
    kept = {
        (name, each.name, each.g.SerializeToString())
        for node in converted.graph.node
        for name in node.output[:1]
        for each in node.attribute
        if each.type == AttributeProto.GRAPH
    }
    functions = {function_id(each): each for each in original.source.model.functions}
    kept_functions = _nodes_of_functions(original.source.model) & _nodes_of_functions(converted)
    unchanged = {name for name, _ in kept_functions}
    changed = [
        (node, each.name)
        for node in graph.nodes
        if node.op_type == "If" and canonical_domain(node.domain) == DEFAULT_DOMAIN
        if scope.constant(node.input[0]) is None
        for each in node.attribute
        if each.name in BRANCHES
        if (node.output[0], each.name, each.g.SerializeToString()) not in kept
        or not unchanged.issuperset(map(function_id, called_functions(each.g, functions)))
    ]
    if not changed:
        return ()
    executed: set[tuple[str, bool]] = set()
    try:
        for feeds in samples:
            values = graph.values([node.input[0] for node, _ in changed], feeds)
            executed |= {(name, bool(np.asarray(value).all())) for name, value in values.items()}
    except CannotRun:
        return ()
    return tuple(
        f"{node_place('graph', node)}, {name}"
        for node, name in changed
        if (node.input[0], BRANCHES[name]) not in executed
    )


def _nodes_of_functions(model: ModelProto) -> set[tuple[LocalFunction, tuple[bytes, ...]]]:
    return {
        (function_id(each), tuple(node.SerializeToString() for node in each.node)) for each in model.functions
    }
