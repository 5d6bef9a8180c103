"""Values after runtimes inline local functions and remove nodes that change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from opshift.inference.facts import InferenceScope
from opshift.inference.function_scope import CallScope
from opshift.inference.scope import Scope
from opshift.model.graphs import NodeRecord
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain

NEUTRAL: Final = ("Dropout", "Identity")
"""Operators that optimizers remove."""

MAX_CALLS: Final = 1_000
"""Maximum number of calls that a search for a source enters: nested calls may double them at each level."""


# Keyed by scope; the values have no reference to the scope, which would keep it in memory. Without the cache,
# a chain of n neutral nodes would take n * n steps.
_SOURCES: WeakKeyDictionary[InferenceScope, dict[str, tuple[str, str]]] = WeakKeyDictionary()
"""Name and operator of the sources that `source_of` found in the same scope, by name of the value."""


class Source(NamedTuple):
    """Value of a graph or function; `op_type` is the operator that computes it, empty if no node does."""

    scope: InferenceScope
    name: str
    op_type: str


def is_unnecessary_cast(scope: InferenceScope, node: Node) -> bool:
    """Return whether a node is a Cast to the type of its input, which optimizers remove."""
    if node.op_type != "Cast" or canonical_domain(node.domain) != DEFAULT_DOMAIN:
        return False
    given = scope.element_type(node.input(0))
    return given is not None and given == scope.element_type(node.output(0))


def source_of(scope: InferenceScope, name: str) -> Source:
    """Return the source of a value, after a runtime removes neutral nodes and inlines functions.

    The source of an input of a function is the value that the call passes. The source of a result of a call
    is the value in the function, or, after `MAX_CALLS` calls, the result itself. Calls with equal facts share
    a scope, which knows only the first call.
    """
    known, visited = _SOURCES.setdefault(scope, {}), list[str]()
    found = _search_source(scope, name, known, visited)
    if found.scope is scope:
        known.update(dict.fromkeys(visited, (found.name, found.op_type)))
    return found


def _search_source(
    scope: InferenceScope, name: str, known: Mapping[str, tuple[str, str]], visited: list[str]
) -> Source:
    """Search for the source of a value; add the values of its scope that have this source to `visited`."""
    calls: list[tuple[InferenceScope, Node]] = []
    entered, start = 0, scope
    while name:
        if scope is start and not calls:
            if name in known:
                return Source(scope, *known[name])
            visited.append(name)
        record = scope.producing_records.get(name)
        if record is None:
            if (outer := _argument(scope, name, calls)) is None:
                break
            scope, name = outer
        elif (body := called_scope(scope, record)) is not None:
            entered += 1
            if entered > MAX_CALLS:
                return Source(scope, name, scope.node_of(record).op_type)
            calls.append((scope, scope.node_of(record)))
            name = [*body.outputs][scope.output_position(record, name)]
            scope = body
        else:
            node = scope.node_of(record)
            is_neutral = node.op_type in NEUTRAL and canonical_domain(node.domain) == DEFAULT_DOMAIN
            if not is_neutral and not is_unnecessary_cast(scope, node):
                return Source(scope, name, node.op_type)
            name = node.input(0)
    return Source(scope, name, "")


def _argument(
    scope: InferenceScope, name: str, calls: list[tuple[InferenceScope, Node]]
) -> tuple[InferenceScope, str] | None:
    """Return scope and name of the value that a call passes to a function input, or `None`; pop the call."""
    if calls:
        inputs = [*map(str, scope.container.input)]
        if name not in inputs:
            return None
        outer, call = calls.pop()
        return outer, call.input(inputs.index(name))
    return next(iter(scope.arguments(name)), None)


def called_scope(scope: InferenceScope, record: NodeRecord) -> Scope | None:
    """Return the scope of the local function that a node calls; `None` for other nodes."""
    if not isinstance(scope, CallScope) or not scope.is_call(record):
        return None
    proto = scope.proto_of(record)
    index = scope.functions.find(proto)
    return None if index is None else scope.functions.scope_of_call(index, proto, scope)


def calling_scope(scope: Scope) -> Scope:
    """Return the scope of the graph into which a runtime inlines a function; for a graph, its own scope."""
    while isinstance(scope, CallScope) and scope.call_facts is not None:
        caller = scope.call_facts.calls[0].scope
        assert isinstance(caller, Scope)
        scope = caller
    return scope


def called_scopes(scope: Scope) -> Iterator[Scope]:
    """Yield the scope of the called function for each node that calls one."""
    bodies = (called_scope(scope, record) for record in scope.node_records)
    return (each for each in bodies if each is not None)
