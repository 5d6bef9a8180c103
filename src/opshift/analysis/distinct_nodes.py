"""Copies of models with one node of each kind, to find out soon which conversions do not help."""

from __future__ import annotations

from collections.abc import Hashable
from copy import deepcopy
from itertools import chain
from typing import NamedTuple

from opshift.inference.root_scopes import graph_scopes
from opshift.inference.scope import Scope
from opshift.model.graphs import (
    NodeRecord,
    captured_names,
    graphs_of,
    is_graph,
    names_outside_nodes,
    remove_messages,
)
from opshift.model.messages import GraphProto, ModelProto
from opshift.registry.registry import Registry

MAX_KEPT = 0.5
"""Maximum part of the nodes that a useful copy keeps."""


def with_distinct_nodes(model: ModelProto, registry: Registry) -> ModelProto | None:
    """Return a copy of a model with one node of each kind, or `None` if most nodes are of different kinds.

    The nodes of a kind have equal attributes, the same facts about inputs and outputs, and inputs from equal
    nodes, so that a conversion treats them in the same way. If a runtime does not run the converted copy, it
    does not run the converted model; the reverse is likely only.

    Nodes with subgraphs, nodes that subgraphs read, and the nodes of functions remain.
    """
    if model.training_info:
        return None
    found = [_repetitions(scope) for scope, _ in graph_scopes(model, registry)]
    repeated = sum(each.is_repeated.count(True) for each in found)
    kept = sum(each.is_repeated.count(False) for each in found) + sum(
        len(each.node) for each in model.functions
    )
    if kept > MAX_KEPT * (kept + repeated):
        return None
    copy = deepcopy(model)
    containers = [scope.container for scope, _ in graph_scopes(copy, registry)]
    for container, repetitions in zip(containers, found, strict=True):
        if is_graph(container):
            _remove(container, repetitions)
    return copy


class _Repetitions(NamedTuple):
    """Nodes of a graph that repeat an earlier one.

    Attributes:
        is_repeated: for each node, whether it repeats an earlier one.
        renamed: the outputs of these nodes, each with that of the first node of the kind.
    """

    is_repeated: list[bool]
    renamed: dict[str, str]


def _repetitions(scope: Scope) -> _Repetitions:
    first: dict[Hashable, NodeRecord] = {}
    found = _Repetitions([], {})
    outputs = frozenset(scope.outputs)
    required = {*names_outside_nodes(scope.container)}
    if scope.parent is None:
        required -= outputs  # the outputs of the model may be fewer, but not those of subgraphs
    for record in scope.node_records:
        is_fixed = not required.isdisjoint(record[4]) or any(map(scope.is_captured, record[4]))
        same = record
        if not is_fixed and not any(graphs_of(scope.proto_of(record))):
            same = first.setdefault(_kind(scope, record, outputs), record)
        found.is_repeated.append(same is not record)
        if same is not record:
            found.renamed.update(zip(record[4], same[4], strict=True))
    found.renamed.pop("", None)
    return found


def _kind(scope: Scope, record: NodeRecord, outputs: frozenset[str]) -> Hashable:
    """Return the key of the nodes that conversions and runtimes treat in the same way."""
    names = (*record[3], *record[4])
    types = tuple(name and (scope.element_type(name), scope.declared_type(name)) for name in names)
    premises = tuple("large" if isinstance(each, int) else each for each in scope.premises(record[3]))
    shapes = tuple(name and scope.claimed_shape(name) for name in record[4])
    producers = tuple(_producer_key(scope, name) for name in record[3])
    readers = tuple((scope.is_used(name), name in outputs) for name in record[4])
    return scope.node_key_of(record, scope.proto_of(record)), types, premises, shapes, producers, readers


def _producer_key(scope: Scope, name: str) -> Hashable:
    """Return the key of the node that produces a value, and its position among the outputs of the node.

    For a value without a producer, whether it is an initializer, and whether callers can override it.
    """
    record = scope.producing_records.get(name) if name else None
    if record is None:
        return bool(name), scope.initializer(name) is not None, scope.is_overridable(name)
    return scope.node_key_of(record, scope.proto_of(record)), record[4].index(name)


def _remove(graph: GraphProto, repetitions: _Repetitions) -> None:
    """Remove the repeated nodes of a graph, and the initializers that only they read."""
    is_repeated, renamed = repetitions
    before = _read_names(graph)
    remove_messages(graph.node, is_repeated)
    for node in graph.node:
        if not renamed.keys().isdisjoint(node.input):
            node.input[:] = [renamed.get(name, name) for name in node.input]
    remove_messages(graph.output, [each.name in renamed for each in graph.output])
    remove_messages(graph.value_info, [each.name in renamed for each in graph.value_info])
    unread = before - _read_names(graph) - {each.name for each in graph.input}
    remove_messages(graph.initializer, [each.name in unread for each in graph.initializer])


def _read_names(graph: GraphProto) -> set[str]:
    """Return the names that the nodes of a graph and of its subgraphs read, and those of its outputs."""
    captured = chain.from_iterable(captured_names(each) for node in graph.node for each in graphs_of(node))
    return {*chain.from_iterable(node.input for node in graph.node), *captured, *names_outside_nodes(graph)}
