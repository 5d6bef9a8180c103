"""Propagation of facts (element types, shapes or ranks) from the values that a question depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from opshift.inference.evaluation import FactQuestion, Unanswered
from opshift.inference.fact_kinds import MAXIMUM, FactKind, InferenceCache, OperatorInfo
from opshift.inference.facts import FactT, InferenceScope
from opshift.model.graphs import NodeRecord
from opshift.model.node import Node
from opshift.model.node_key import node_key_of
from opshift.registry.models import OperatorVersion

_MISSING: Any = object()


class Propagation(Generic[FactT]):
    """Facts of one kind about the values of one scope: declared facts, and facts inferred from them.

    Declarations of inputs and initializers are facts. Declarations of the outputs of nodes are claims, which
    editors of models forget to update: they complete an inferred fact, and never replace it. Each query
    passes the scope: a stored reference to it would form a reference cycle.
    """

    def __init__(self, kind: FactKind[FactT], cache: InferenceCache) -> None:
        self._kind = kind
        self._known: dict[str, FactT | None] = {"": None}
        self._cache = cache

    def fact_of(self, name: str, scope: InferenceScope) -> FactT | None:
        """Return the fact about a value; `None` if it is unknown.

        Raises:
            Unanswered: a rule asks, and the question has to be answered first.
        """
        found = self._known.get(name, _MISSING)
        if found is _MISSING:
            question = FactQuestion(self, name, scope)
            if scope.evaluation.is_running:
                raise Unanswered(question)
            scope.evaluation.answer(question)
            found = self._known[name]
        return found

    def is_known(self, name: str) -> bool:
        """Return whether the question about a value is answered."""
        return name in self._known

    def set_fact(self, name: str, fact: FactT | None) -> None:
        """Set the fact about a value."""
        self._known[name] = fact

    def visit(self, name: str, scope: InferenceScope) -> FactQuestion | None:
        """Find the fact about a value, or return a question about another kind or scope to answer first."""
        known = self._known
        pending = [self._follow_links(name, scope)]
        begun: set[str] = set()
        try:
            while pending:
                origin, linked = pending[-1]
                if origin not in known:
                    missing = self._visit_origin(origin, scope)
                    if missing and origin in begun:
                        known[origin] = None  # the nodes of the invalid model form a cycle
                    elif missing:
                        begun.add(origin)
                        pending += [self._follow_links(each, scope) for each in missing]
                        continue
                if linked:
                    self._record_linked(linked, known[origin], scope)
                pending.pop()
        except Unanswered as error:
            return error.question
        return None

    def _follow_links(self, name: str, scope: InferenceScope) -> tuple[str, list[str]]:
        """Return the value at the start of a chain of links, and the values from it to `name`, last first."""
        known, links, producers = self._known, self._cache.links, scope.producing_records
        operators = self._cache.operators
        claimed = scope.declared_positions if self._kind.trusts_claims else ()
        linked: list[str] = []
        position = len(scope.node_records)
        while name not in known and name not in claimed:
            record = producers.get(name)
            if record is None or record[0] >= position:
                break  # without producer, or the nodes of the invalid model are not in order
            position, domain, op_type, inputs, outputs = record
            link = None if domain else links.get(op_type)
            if link is None:
                known_info = None if domain else operators.get(op_type)
                info = known_info or self._operator_info(op_type, domain, scope)
                if len(outputs) != 1 or info.link is None or info.link == MAXIMUM:
                    break
                link = info.link
            if link >= len(inputs):
                break
            linked.append(name)
            name = inputs[link]
        return name, linked

    def _record_linked(self, linked: list[str], fact: FactT | None, scope: InferenceScope) -> None:
        """Record the fact that the values of a chain share, from the start of the chain on."""
        claimed = scope.declared_positions.keys()
        if fact is not None and (not self._kind.needs_claim(fact) or claimed.isdisjoint(linked)):
            self._known.update(dict.fromkeys(linked, fact))
            return
        for name in reversed(linked):
            if fact is None:
                self._infer_record(scope.producing_records[name], scope)
            else:
                self._record((name,), (fact,), scope)
            fact = self._known[name]

    def _visit_origin(self, name: str, scope: InferenceScope) -> Sequence[str]:
        """Find the fact about a value that does not follow a link, or return the inputs to visit first."""
        known, producers = self._known, scope.producing_records
        record = producers.get(name)
        if record is None:
            self._find_source(name, scope)
            return ()
        position, domain, op_type, inputs, outputs = record
        if self._kind.trusts_claims and self._are_claimed(outputs, scope):
            return ()
        info = self._operator_info(op_type, domain, scope)
        if info.asks_inputs and not self._infer_alone(record, info, scope):
            missing = []
            for each in inputs:
                if each not in known:
                    earlier = producers.get(each)
                    if earlier is None:
                        self._find_source(each, scope)
                    elif earlier[0] < position:
                        missing.append(each)
                    else:
                        known[each] = None  # the nodes of the invalid model are not in order
            if missing:
                return missing
        if name not in known:
            self._infer_record(record, scope)
        return ()

    def _infer_alone(self, record: NodeRecord, info: OperatorInfo, scope: InferenceScope) -> bool:
        """Return whether the facts follow from the node alone; if so, record them."""
        _, _, op_type, _, outputs = record
        operator, infer = info.operator, self._kind.infer_alone
        if infer is None or operator is None or op_type in self._cache.dependent:
            return False
        facts = infer(scope.node_of(record), operator, scope)
        if len(facts) < len(outputs) or None in facts:
            self._cache.dependent.add(op_type)
            return False
        self._record(outputs, facts, scope)
        return True

    def _infer_record(self, record: NodeRecord, scope: InferenceScope) -> None:
        """Infer the facts about the outputs of a node."""
        _, domain, op_type, inputs, outputs = record
        operator, link, links_all, is_plain, asks_inputs = self._operator_info(op_type, domain, scope)
        if link == MAXIMUM and links_all:
            facts: list[Any] = [self._known[name] for name in inputs if name]
            if facts and None not in facts:
                self._record(outputs, (max(facts),), scope)
                return
        call_facts = scope.infer_call(record, self._kind.query) if operator is None else None
        if call_facts is not None:
            self._record(outputs, call_facts, scope)
        elif operator is not None and is_plain and scope.has_plain_nodes:
            self._infer_cached(record, operator, asks_inputs, scope)
        else:
            self._infer_node(scope.node_of(record), operator, scope)

    def _find_source(self, name: str, scope: InferenceScope) -> None:
        """Find the fact about a value that no node of the scope's graph produces."""
        emitted = scope.emitted_producer(name)
        if emitted is not None:
            self._infer_node(*emitted, scope)
        elif scope.is_local(name):
            self._known[name] = self._kind.declared(scope, name)
        else:
            self._known[name] = self._kind.query(scope.parent, name) if scope.parent else None

    def _operator_info(self, op_type: str, domain: str, scope: InferenceScope) -> OperatorInfo:
        found = None if domain else self._cache.operators.get(op_type)
        if found is not None:
            return found
        operator, kind = scope.operator(op_type, domain), self._kind
        if operator is None:
            found = OperatorInfo(None, None, links_all_outputs=False, is_plain=False, asks_inputs=False)
        else:
            has_one, is_plain = len(operator.outputs) == 1, operator.has_plain_attributes
            link = None if domain else kind.link(operator)
            found = OperatorInfo(operator, link, has_one, is_plain, kind.asks_inputs(operator))
        if not domain:
            self._cache.operators[op_type] = found
            if found.links_all_outputs and found.link not in (None, MAXIMUM):
                self._cache.links[op_type] = found.link
        return found

    def _are_claimed(self, outputs: Sequence[str], scope: InferenceScope) -> bool:
        """Whether the model claims the fact for all outputs; if so, record it."""
        if not any(name in scope.declared_positions for name in outputs):
            return False
        claims = {name: self._kind.claimed(scope, name) for name in filter(None, outputs)}
        if None in claims.values():
            return False
        self._known.update(claims)
        return True

    def _infer_cached(
        self, record: NodeRecord, operator: OperatorVersion, asks_inputs: bool, scope: InferenceScope
    ) -> None:
        """Record the facts about the outputs of a node, from the cache if possible."""
        _, _, _, inputs, outputs = record
        input_facts = tuple([self.fact_of(name, scope) for name in inputs]) if asks_inputs else ()
        key = id(operator), node_key_of(record, scope.proto_of(record), inputs + outputs), input_facts
        found = self._cache.facts.get(key)
        if found is None:
            inferred = self._kind.infer(scope.node_of(record), operator, scope)
            found = inferred.facts
            if inferred.is_cacheable:
                self._cache.store(key, found)
        self._record(outputs, found, scope)

    def _infer_node(self, node: Node, operator: OperatorVersion | None, scope: InferenceScope) -> None:
        self._record(node.outputs, self._kind.infer(node, operator, scope).facts if operator else (), scope)

    def _record(self, outputs: Sequence[str], facts: Sequence[FactT | None], scope: InferenceScope) -> None:
        known = self._known
        for position, name in enumerate(outputs):
            if name and name not in known:
                fact = facts[position] if position < len(facts) else None
                if name in scope.declared_positions and self._kind.needs_claim(fact):
                    fact = self._kind.merge(fact, self._kind.claimed(scope, name))
                known[name] = fact
