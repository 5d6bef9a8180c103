"""Propagation of facts (element types, shapes or ranks) through the nodes of a scope, in graph order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple

from opshift.inference.facts import FactT, InferenceScope
from opshift.model.graphs import NodeRecord
from opshift.model.node import Node
from opshift.model.node_key import MAX_KEYS, NodeKey, is_small_key, node_key_of
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry

Link = int | None
"""Position of the input that shares its fact with the first output, `MAXIMUM`, or `None`."""

MAXIMUM = -1
"""Link to all inputs: the fact is the maximum over them, as for ranks under broadcasting."""

InferenceKey = tuple[int, NodeKey, tuple[Any, ...]]
"""`id` of the operator version, key of the node, and facts about its inputs."""

_MISSING: Any = object()

_UNNAMED: Any = object()
"""Key for omitted outputs, which are never queried; the empty name has to keep its entry."""


class Inferred(NamedTuple, Generic[FactT]):
    """Facts about the outputs of a node, in order; the last ones may be missing.

    They are cacheable if they depend only on attributes and on facts of this kind about the inputs.
    """

    facts: Sequence[FactT | None]
    is_cacheable: bool


class FactKind(NamedTuple, Generic[FactT]):
    """Kind of fact about values, with the functions that determine it; `declared` reads the model."""

    query: Callable[[InferenceScope, str], FactT | None]
    declared: Callable[[InferenceScope, str], FactT | None]
    link: Callable[[OperatorVersion], Link]
    infer: Callable[[Node, OperatorVersion, InferenceScope], Inferred[FactT]]


class OperatorInfo(NamedTuple):
    """Operator of the default domain at one opset.

    Attributes:
        links_all_outputs: whether the link holds for all outputs.
        is_plain: whether facts inferred for a node hold for every node with the same key.
    """

    operator: OperatorVersion | None
    link: Link
    links_all_outputs: bool
    is_plain: bool


class InferenceCache:
    """Cache of facts of one kind at one opset, and operators of the default domain, shared between models."""

    def __init__(self) -> None:
        self.operators: dict[str, OperatorInfo] = {}
        self.facts: dict[InferenceKey, Sequence[Any]] = {}

    def store(self, key: InferenceKey, facts: Sequence[Any]) -> None:
        """Store the facts about the outputs of a node, if its key is small."""
        # Bounds the memory of a cache that outlives the model; cleared entries are inferred again.
        if len(self.facts) >= MAX_KEYS:
            self.facts.clear()
        if is_small_key(key[1]):
            self.facts[key] = facts


@lru_cache(maxsize=256)
def inference_cache_for(kind: FactKind[Any], registry: Registry, opset: int) -> InferenceCache:
    """Return the shared inference cache for one kind of fact at an opset of the default domain."""
    return InferenceCache()


class Propagation(Generic[FactT]):
    """Facts of one kind about the values of one scope: declared facts, and facts inferred from them.

    Nodes are visited in order, each once, only up to the producer of the queried value. Each query passes the
    scope: a stored reference to it would form a reference cycle.
    """

    def __init__(self, kind: FactKind[FactT], lines: Iterable[NodeRecord], cache: InferenceCache) -> None:
        self._kind = kind
        self._known: dict[str, FactT | None] = {"": None}
        self._cache = cache
        self._remaining = iter(lines)
        self._emitted_count = 0

    def fact_of(self, name: str, scope: InferenceScope) -> FactT | None:
        """Return the fact about a value; `None` if it is unknown."""
        known = self._known
        found = known.get(name, _MISSING)
        if found is not _MISSING:
            return found
        found = self._kind.declared(scope, name)
        if found is not None or scope.is_input_or_initializer(name):
            known[name] = found
        elif not scope.is_local(name):
            found = known[name] = self._kind.query(scope.parent, name) if scope.parent else None
        else:
            self._visit_until(name, scope)
            found = known.get(name)
        return found

    def set_fact(self, name: str, fact: FactT | None) -> None:
        """Set the fact about a value without producer."""
        self._known[name] = fact

    def _visit_until(self, name: str, scope: InferenceScope) -> None:
        known, operators, declared = self._known, self._cache.operators, scope.declared_positions.keys()
        is_plain_scope = scope.has_plain_nodes
        for record in self._remaining:
            _, domain, op_type, inputs, outputs = record
            found = None if domain else operators.get(op_type)
            operator, link, links_all, is_plain = found or self._operator_info(op_type, domain, scope)
            fact = None
            is_undeclared = declared.isdisjoint(outputs)
            if link is not None and (links_all or len(outputs) == 1) and is_undeclared:
                if link == MAXIMUM:
                    fact = self._greatest(inputs, scope)
                elif link < len(inputs):
                    source = inputs[link]
                    fact = known[source] if source in known else self.fact_of(source, scope)
            if fact is not None:
                for output in outputs:
                    known[output or _UNNAMED] = fact
            elif is_undeclared or not self._are_declared(outputs, scope):
                if operator is not None and is_plain and is_plain_scope:
                    self._infer_cached(record, operator, scope)
                else:
                    self._infer_record(record, scope, operator)
            if name in known:
                return
        self._visit_emitted(scope)

    def _operator_info(self, op_type: str, domain: str, scope: InferenceScope) -> OperatorInfo:
        operator = scope.operator(op_type, domain)
        if operator is None or domain:
            found = OperatorInfo(operator, None, links_all_outputs=False, is_plain=False)
        else:
            has_one = len(operator.outputs) == 1
            found = OperatorInfo(operator, self._kind.link(operator), has_one, operator.has_plain_attributes)
        if not domain:
            self._cache.operators[op_type] = found
        return found

    def _are_declared(self, outputs: Sequence[str], scope: InferenceScope) -> bool:
        """Whether the model declares the fact for all outputs, so that inference is unnecessary."""
        for name in outputs:
            fact = self._kind.declared(scope, name) if name else None
            if fact is None:
                return False
            self._known[name] = fact
        return True

    def _greatest(self, inputs: Sequence[str], scope: InferenceScope) -> FactT | None:
        known = self._known
        greatest: Any = None
        for name in filter(None, inputs):
            fact = known[name] if name in known else self.fact_of(name, scope)
            if fact is None:
                return None
            if greatest is None or fact > greatest:
                greatest = fact
        return greatest  # type: ignore[no-any-return]

    def _infer_record(
        self, record: NodeRecord, scope: InferenceScope, operator: OperatorVersion | None
    ) -> None:
        call_facts = scope.infer_call(record, self._kind.query)
        if call_facts is not None:
            self._record(record[4], call_facts, scope)
        elif operator is None or not operator.has_plain_attributes or not scope.has_plain_nodes:
            self._infer_node(scope.node_of(record), operator, scope)
        else:
            self._infer_cached(record, operator, scope)

    def _infer_cached(self, record: NodeRecord, operator: OperatorVersion, scope: InferenceScope) -> None:
        """Record the facts about the outputs of a node, from the cache if possible."""
        _, _, _, inputs, outputs = record
        input_facts = tuple(map(self._known.get, inputs))
        if None in input_facts:
            input_facts = tuple([self.fact_of(name, scope) for name in inputs])
        key = id(operator), node_key_of(record, scope.proto_of(record), inputs + outputs), input_facts
        found = self._cache.facts.get(key)
        if found is None:
            inferred = self._kind.infer(scope.node_of(record), operator, scope)
            found = inferred.facts
            if inferred.is_cacheable:
                self._cache.store(key, found)
        self._record(outputs, found, scope)

    def _visit_emitted(self, scope: InferenceScope) -> None:
        while self._emitted_count < len(scope.emitted):
            node, opset = scope.emitted[self._emitted_count]
            self._emitted_count += 1
            self._infer_node(node, scope.registry.at(node.op_type, opset, node.domain), scope)

    def _infer_node(self, node: Node, operator: OperatorVersion | None, scope: InferenceScope) -> None:
        self._record(node.outputs, self._kind.infer(node, operator, scope).facts if operator else (), scope)

    def _record(self, outputs: Sequence[str], facts: Sequence[FactT | None], scope: InferenceScope) -> None:
        known = self._known
        for position, name in enumerate(outputs):
            if name and name not in known:
                declared = self._kind.declared(scope, name) if name in scope.declared_positions else None
                inferred = facts[position] if position < len(facts) else None
                known[name] = inferred if declared is None else declared
