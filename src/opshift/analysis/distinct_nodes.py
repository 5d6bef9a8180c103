"""Copy of a model with one node of each kind, to test quickly whether a conversion helps a runtime."""

from __future__ import annotations

from collections.abc import Hashable
from copy import deepcopy
from itertools import chain
from typing import NamedTuple

from opshift.converter.functions.inlining import called_functions
from opshift.inference.root_scopes import graph_scopes, nested_scopes
from opshift.inference.scope import Scope
from opshift.model.graphs import (
    NodeRecord,
    captured_names,
    graphs_of,
    is_graph,
    names_outside_nodes,
    nested_containers,
    remove_messages,
)
from opshift.model.messages import GraphProto, ModelProto
from opshift.model.operator_ids import function_id
from opshift.registry.registry import Registry

MAX_KEPT = 0.5
"""Maximum fraction of the nodes that the copy may keep; a larger copy would save too little time."""


def with_distinct_nodes(
    model: ModelProto, registry: Registry, scope: Scope | None = None
) -> ModelProto | None:
    """Return a copy of a model with one node of each kind; `None` if it would keep too many nodes.

    Nodes of one kind have equal attributes, equal facts about inputs and outputs, and inputs from nodes with
    equal operators and attributes, so a conversion treats them in the same way. A runtime that does not run
    the converted copy does not run the converted model, unless a restriction of a refused node depends on
    more nodes than the producers of its inputs. A runtime that runs the copy probably runs the model.

    The copy keeps nodes with outputs that subgraphs read or return, and the called functions with all their
    nodes. Models with training graphs get no copy. `scope` is a scope of the main graph with cached facts.
    """
    if model.training_info:
        return None
    scopes = graph_scopes(model, registry) if scope is None else nested_scopes(scope, "graph")
    found = [_find_repetitions(each) for each, _ in scopes]
    repeated = sum(each.is_repeated.count(True) for each in found)
    kept = sum(each.is_repeated.count(False) for each in found)
    functions = {function_id(each): each for each in model.functions}
    called = {function_id(each) for each in called_functions(model.graph, functions)}
    is_uncalled = [each not in called for each in functions]
    for function, is_removed in zip(model.functions, is_uncalled, strict=True):
        count = 1 + len(function.node)
        kept, repeated = (kept, repeated + count) if is_removed else (kept + count, repeated)
    if kept > MAX_KEPT * (kept + repeated):
        return None
    copy = deepcopy(model)
    containers = [scope.container for scope, _ in graph_scopes(copy, registry)]
    for container, repetitions in zip(containers, found, strict=True):
        if is_graph(container):
            _remove_repeated(container, repetitions)
    remove_messages(copy.functions, is_uncalled)
    return copy


def lacks_nodes(copy: ModelProto, model: ModelProto) -> bool:
    """Return whether a copy lacks nodes of the main graph or its subgraphs, not only uncalled functions."""
    kept, full = (sum(len(each.node) for each in nested_containers([m.graph])) for m in (copy, model))
    return kept < full


class _Repetitions(NamedTuple):
    """Nodes of a graph that repeat an earlier node.

    Attributes:
        is_repeated: for each node, whether it repeats an earlier node.
        renamed: for each output of a repeated node, the output of the first node of the same kind.
    """

    is_repeated: list[bool]
    renamed: dict[str, str]


def _find_repetitions(scope: Scope) -> _Repetitions:
    keys, first = _NodeKeys(scope), dict[Hashable, NodeRecord]()
    found = _Repetitions([], {})
    required = {*names_outside_nodes(scope.container)}
    if scope.parent is None:
        # The copy need not return the outputs of the model; only outputs of subgraphs must remain.
        required.difference_update(scope.outputs)
    for record in scope.node_records:
        is_fixed = not required.isdisjoint(record[4]) or any(map(scope.is_captured, record[4]))
        same = record if is_fixed else first.setdefault(keys.key(record), record)
        found.is_repeated.append(same is not record)
        if same is not record:
            found.renamed.update(zip(record[4], same[4], strict=True))
    found.renamed.pop("", None)
    return found


class _NodeKeys:
    """Keys of the nodes of a graph: conversions and runtimes treat nodes with equal keys in the same way."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._outputs = frozenset(scope.outputs)
        self._numbers: dict[Hashable, int] = {}
        self._number_of_node: dict[int, int] = {}

    def key(self, record: NodeRecord) -> Hashable:
        """Return a key of a node: its operator, types, shapes, producers, and the use of its outputs."""
        scope, (inputs, outputs) = self._scope, record[3:]
        types = tuple(
            name and (scope.element_type(name), scope.declared_type(name)) for name in inputs + outputs
        )
        premises = tuple("large" if isinstance(each, int) else each for each in scope.premises(inputs))
        shapes = tuple(name and scope.claimed_shape(name) for name in outputs)
        producers = tuple(map(self._producer_key, inputs))
        readers = tuple((scope.is_used(name), name in self._outputs) for name in outputs)
        return self._operator_number(record), types, premises, shapes, producers, readers

    def _producer_key(self, name: str) -> Hashable:
        """Return the operator number of a value's producer, and the position of the value in its outputs.

        For a value without a producer, return whether it has a name, is an initializer, and is overridable.
        """
        scope = self._scope
        record = scope.producing_records.get(name) if name else None
        if record is None:
            return bool(name), scope.initializer(name) is not None, scope.is_overridable(name)
        _, domain, op_type, _, _ = record
        operator, position = scope.operator(op_type, domain), scope.output_position(record, name)
        last = len(operator.outputs) - 1 if operator else position
        # all values of a variadic output count as one output
        return self._operator_number(record), min(position, last)

    def _operator_number(self, record: NodeRecord) -> int:
        """Return a number that nodes with equal node keys share."""
        # Hashing the key of a node with many values is slow: hash it once, not for each reader.
        if record[0] not in self._number_of_node:
            key = self._scope.node_key_of(record, self._scope.proto_of(record))
            self._number_of_node[record[0]] = self._numbers.setdefault(key, len(self._numbers))
        return self._number_of_node[record[0]]


def _remove_repeated(graph: GraphProto, repetitions: _Repetitions) -> None:
    """Remove the repeated nodes of a graph, their outputs, and the initializers that only they read."""
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
    """Return the names of the values that nodes and subgraphs read, and of the outputs of a graph."""
    captured = chain.from_iterable(captured_names(each) for node in graph.node for each in graphs_of(node))
    return {*chain.from_iterable(node.input for node in graph.node), *captured, *names_outside_nodes(graph)}
