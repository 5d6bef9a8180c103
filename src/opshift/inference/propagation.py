"""Propagation of facts (element types, shapes or ranks) to a value from the values it is computed from."""

from collections.abc import Container, Generator, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from opshift.inference.fact_kinds import MAXIMUM, FactKind, InferenceCache, OperatorInfo, Shortcut
from opshift.inference.facts import (
    Answers,
    FactQuestion,
    FactT,
    InferenceScope,
    Unanswered,
    answered,
    questions_after,
)
from opshift.model.graphs import NodeRecord
from opshift.model.node import Node
from opshift.model.node_key import has_small_tensors
from opshift.registry.models import OperatorVersion

_MISSING: Any = object()

_Dependency = tuple[int, NodeRecord | None, OperatorInfo | None, str, Sequence[str]]
"""Node to infer, or chain of values that all have the fact of the value at its start (see `Link`).

For a node: position, record, operator, name of an output, and inputs that determine the fact. For a chain:
position of the first node, `None` twice, an empty name, and the chain (see `_record_chain`). It is a plain
tuple, because one is created for each visited node.
"""

_position = itemgetter(0)


class Propagation(Answers[FactT]):
    """Facts of one kind about the values of one scope: declared facts, and facts inferred from them.

    Declarations of inputs and initializers are trusted. Declarations of the outputs of nodes are claims,
    which may be outdated: claimed shapes and ranks complete inferred ones, and never replace them. Claimed
    element types are trusted. The scope is an argument, because storing it would form a reference cycle.
    """

    def __init__(self, kind: FactKind[FactT], cache: InferenceCache) -> None:
        super().__init__()
        self.set_fact("", None)
        self._kind = kind
        self._cache = cache

    def fact_of(self, name: str, scope: InferenceScope) -> FactT | None:
        """Return the fact about a value; `None` if it is unknown.

        Raises:
            Unanswered: a rule needs this fact before it is determined; the rule is applied again afterwards.
        """
        found = self._known.get(name, _MISSING)
        if found is _MISSING:
            if scope.evaluation.is_running:
                raise Unanswered(FactQuestion(self, name, scope))
            if not self._infer_directly(name, scope):
                scope.evaluation.answer(self, name, scope)
            found = self._known[name]
        return found

    def _infer_directly(self, name: str, scope: InferenceScope) -> bool:
        """Determine a fact without questions about other values; return whether this succeeded.

        Nearly all facts are determined in this way if callers visit the values in the order of the nodes. It
        takes less than half the time of `visit`.
        """
        scope.evaluation.is_running = True
        try:
            return self._infer_from_known(name, scope)
        except Unanswered:
            return False
        finally:
            scope.evaluation.is_running = False

    def _infer_from_known(self, name: str, scope: InferenceScope) -> bool:
        """Determine a fact if the facts that it depends on are known; return whether this succeeded."""
        record = scope.producing_records.get(name)
        if record is None:
            self._record_source(name, scope)
            return True
        _, domain, op_type, inputs, outputs = record
        if name in self._trusted_claims(scope):
            if self._are_claimed(outputs, scope):
                return True
        elif not domain and name == outputs[0]:
            link = self._cache.links.get(op_type)
            if link is not None and link < len(inputs):
                if inputs[link] not in self._known:
                    return False
                self._record_chain([name, inputs[link]], scope)
                return True
        info = self._operator_info(record, scope)
        fact = info.shortcut(scope, name) if info.shortcut else None
        if fact is not None:
            self._known[name] = fact
            return True
        asked = info.queried_names(inputs)
        if not all(map(self._known.__contains__, asked)):
            return False
        self._infer_record(record, info, asked, scope)
        return True

    def visit(self, name: str, scope: InferenceScope) -> Iterator[FactQuestion]:
        """Find the fact about a value; yield questions about other kinds or scopes to answer first."""
        dependencies = yield from self._dependencies(name, scope)
        dependencies.sort(key=_position)
        for _, record, info, output, names in dependencies:
            number = 0
            while True:  # inlines `answered`, because a call for each node is slow
                try:
                    if record is None or info is None:
                        assert isinstance(names, list)
                        self._record_chain(names, scope)
                    elif output not in self._known:
                        self._infer_record(record, info, names, scope)
                    break
                except Unanswered as error:
                    number += 1
                    inputs, outputs = ((), ()) if record is None else record[3:]
                    yield from questions_after(error.question, number, scope, inputs, outputs)

    def _dependencies(
        self, name: str, scope: InferenceScope
    ) -> Generator[FactQuestion, None, list[_Dependency]]:
        """Return the nodes and chains of links to process for a fact; record the facts they start from."""
        known, producers = self._known, scope.producing_records
        links, operators = self._cache.links, self._cache.operators
        claimed = self._trusted_claims(scope)
        found: list[_Dependency] = []
        seen: set[str] = set()
        pending = [name]
        while pending:
            name = pending.pop()
            linked: list[str] = []
            while name not in known and name not in seen:
                record = producers.get(name)
                if record is None:
                    yield from self._find_source(name, scope)
                    continue
                seen.add(name)
                position, domain, op_type, inputs, outputs = record
                if not domain and name == outputs[0]:
                    link = links.get(op_type)
                    if link is not None and name not in claimed and link < len(inputs):
                        linked.append(name)
                        name = inputs[link]
                        continue
                if name in claimed and self._are_claimed(outputs, scope):
                    break
                info = (None if domain else operators.get(op_type)) or self._operator_info(record, scope)
                if info.shortcut and (yield from self._take_shortcut(info.shortcut, name, scope)):
                    break
                asked = inputs if info.asked_inputs is None else info.queried_names(inputs)
                pending += asked
                found.append((position, record, info, name, asked))
                break
            if linked:
                found += self._unfinished_chain([*linked, name], scope)
        return found

    def _trusted_claims(self, scope: InferenceScope) -> Container[str]:
        """Return the names of the values whose claims make inference unnecessary."""
        return scope.declared_positions if self._kind.trusts_claims else ()

    def _unfinished_chain(self, chain: list[str], scope: InferenceScope) -> Iterable[_Dependency]:
        """Record a known fact about the start for all linked values; otherwise return the chain."""
        *linked, start = chain
        if self._known.get(start) is None:
            return [(scope.producing_records[linked[-1]][0], None, None, "", chain)]
        self._record_chain(chain, scope)
        return ()

    def _take_shortcut(
        self, shortcut: Shortcut[FactT], name: str, scope: InferenceScope
    ) -> Generator[FactQuestion, None, bool]:
        """Return whether a shortcut finds the fact about a value; if so, record the fact."""
        fact = yield from answered(partial(shortcut, scope, name), scope, (), ())
        if fact is not None:
            self._known[name] = fact
        return fact is not None

    def _record_chain(self, chain: list[str], scope: InferenceScope) -> None:
        """Record the fact about the start of a chain for all linked values; if unknown, infer each value.

        The last element of `chain` is the start, the others are the linked values, the last one first.
        """
        known, kind = self._known, self._kind
        fact = known.get(chain[-1])
        # If claims are trusted, no value in a chain has a claim to merge.
        if fact is not None and (kind.trusts_claims or not kind.needs_claim(fact)):
            for name in chain:
                known[name] = fact
            return
        while len(chain) > 1:
            name = chain[-2]
            if fact is None:
                record = scope.producing_records[name]
                inputs = record[3]
                info = self._operator_info(record, scope)
                self._infer_record(record, info, info.queried_names(inputs), scope)
            else:
                self._record_facts((name,), (fact,), scope)
            fact = known[name]
            # If the next inference raises `Unanswered`, the repeated call starts from this value.
            chain.pop()

    def _infer_record(
        self, record: NodeRecord, info: OperatorInfo, asked: Sequence[str], scope: InferenceScope
    ) -> None:
        """Infer and record the facts about the outputs of a node, which depend on the inputs `asked`."""
        if info.takes_maximum:
            facts: list[Any] = list(map(self._known.get, filter(None, asked)))
            if facts and None not in facts:
                self._record_facts(record[4], (max(facts),), scope)
                return
        operator = info.operator
        if operator is None:
            call_facts = scope.infer_call(record, self._kind.query)
            self._record_facts(record[4], call_facts or (), scope)
        elif (
            scope.has_plain_nodes
            and record[2] not in self._cache.uncacheable
            and (info.is_plain or record[0] in scope.node_keys or has_small_tensors(scope.proto_of(record)))
        ):
            self._record_facts(record[4], self._infer_cached(record, operator, asked, scope), scope)
        else:
            self._infer_node(scope.node_of(record), operator, scope)

    def _find_source(self, name: str, scope: InferenceScope) -> Iterable[FactQuestion]:
        """Record the fact about a value that no original node of the scope produces.

        Return the questions that have to be answered first.
        """
        rule = partial(self._record_source, name, scope)
        # Few rules query other facts: try without a generator first, because creating one takes time.
        try:
            rule()
        except Unanswered:
            emitted = scope.emitted_producers.get(name)
            names = ((), ()) if emitted is None else (emitted[0].inputs, emitted[0].outputs)
            return answered(rule, scope, *names)
        return ()

    def _record_source(self, name: str, scope: InferenceScope) -> None:
        if name in scope.emitted_producers:
            node, _, opset = scope.emitted_producers[name]
            self._infer_node(node, scope.registry.known_at(node.op_type, opset, node.domain), scope)
        elif name in scope.defined_names or name in scope.added_constants:
            self._known[name] = self._kind.declared(scope, name)
        else:
            # Query the scope that defines the value directly, not through each enclosing scope.
            owner = scope.parent
            while owner is not None and not owner.is_local(name):
                owner = owner.parent
            self._known[name] = self._kind.query(owner, name) if owner else None

    def _operator_info(self, record: NodeRecord, scope: InferenceScope) -> OperatorInfo:
        _, domain, op_type, _, _ = record
        found = None if domain else self._cache.operators.get(op_type)
        if found is not None:
            return found
        operator, kind = scope.operator_for_inference(op_type, domain), self._kind
        if operator is None:
            found = OperatorInfo(None, takes_maximum=False, is_plain=False, asked_inputs=(), shortcut=None)
        else:
            has_one, link = len(operator.outputs) == 1, None if domain else kind.link(operator)
            shortcut = kind.shortcut(operator) if has_one else None
            is_plain, asked_inputs = operator.has_plain_attributes, kind.asked_inputs(operator)
            found = OperatorInfo(
                operator,
                takes_maximum=has_one and link == MAXIMUM,
                is_plain=is_plain,
                asked_inputs=asked_inputs,
                shortcut=shortcut,
            )
            if link not in (None, MAXIMUM):
                self._cache.links[op_type] = link
        if not domain:
            self._cache.operators[op_type] = found
        return found

    def _are_claimed(self, outputs: Sequence[str], scope: InferenceScope) -> bool:
        """Return whether the model claims the facts about all outputs; if so, record the claims."""
        if not any(name in scope.declared_positions for name in outputs):
            return False
        claims = {name: self._kind.claimed(scope, name) for name in filter(None, outputs)}
        if None in claims.values():
            return False
        self._known.update(claims)
        return True

    def _infer_cached(
        self, record: NodeRecord, operator: OperatorVersion, asked: Sequence[str], scope: InferenceScope
    ) -> Sequence[FactT | None]:
        """Return the facts about the outputs of a node, from the cache if possible."""
        known, ask, cache = self._known, self.fact_of, self._cache
        input_facts = tuple([known[name] if name in known else ask(name, scope) for name in asked])
        read, inputs = cache.constants.get(record[2], ()), record[3]
        elements = scope.small_elements([inputs[each] for each in read if each < len(inputs)])
        # Another thread may replace the positions at any time: store elements only together with their
        # positions.
        constants = read, elements
        key = id(operator), scope.node_key_of(record, scope.proto_of(record)), input_facts, constants
        found = None if elements is None else cache.facts.get(key)
        if found is None:
            inferred = self._kind.infer(scope.node_of(record), operator, scope)
            found = inferred.facts
            if not inferred.is_cacheable:
                cache.uncacheable.add(record[2])
            elif not inferred.constants <= set(read):
                cache.constants[record[2]] = tuple(sorted(inferred.constants | set(read)))
            elif inferred.is_shared and elements is not None:
                cache.store(key, found)
        return found

    def _infer_node(self, node: Node, operator: OperatorVersion | None, scope: InferenceScope) -> None:
        self._record_facts(
            node.outputs, self._kind.infer(node, operator, scope).facts if operator else (), scope
        )

    def _record_facts(
        self, outputs: Sequence[str], facts: Sequence[FactT | None], scope: InferenceScope
    ) -> None:
        known, count = self._known, len(facts)
        for position, name in enumerate(outputs):
            if name and name not in known:
                fact = facts[position] if position < count else None
                if name in scope.declared_positions and self._kind.needs_claim(fact):
                    fact = self._kind.merge(fact, self._kind.claimed(scope, name))
                if scope.evaluation.names_sizes:
                    fact = self._kind.completed(fact, name, scope)
                known[name] = fact
