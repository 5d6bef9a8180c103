"""Find patterns of nodes that an optimizer replaces together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from opshift.analysis.runtime_support.constant_values import is_constant
from opshift.inference.facts import Producer
from opshift.inference.scope import Scope
from opshift.model.node import Node
from opshift.model.operator_ids import canonical_domain
from opshift.registry.models import OperatorVersion
from opshift.registry.runtimes.patterns import Pattern, pattern_nodes

COMMUTATIVE: Final = ("Add", "Mul")
"""Operators whose two inputs optimizers accept in any order."""

Bound = Mapping[str, str]
"""Values of the model by name in the pattern."""


class PatternSearch:
    """Search for nodes of a graph that form a pattern."""

    def __init__(self, pattern: Pattern, scope: Scope) -> None:
        *inner, self._last = pattern_nodes(pattern.nodes)
        self._producers = {name: each for each in inner for name in each.outputs}
        self._shared = pattern.shared
        self._attributes = pattern.attributes
        self._scalars = pattern.scalars
        self._skipped = (*pattern.skips, "Identity")  # optimizers remove Identity first
        self._scope = scope

    def ends_in(self, node: Node, operator: OperatorVersion | None) -> bool:
        """Return whether the last node of the pattern may be this one."""
        return any(True for _ in self._match(self._last, node, operator, {}))

    def _match(
        self, pattern: Node, node: Node, operator: OperatorVersion | None, bound: Bound
    ) -> Iterator[Bound]:
        """Yield the values of the names for each way in which a node and its producers match."""
        domains = canonical_domain(pattern.domain), canonical_domain(node.domain)
        if pattern.op_type != node.op_type or domains[0] != domains[1]:
            return
        known = operator.attributes if operator is not None else {}
        if any(node.attribute(name) not in each for name, each in self._attributes.items() if name in known):
            return
        names, count = pattern.inputs, len(pattern.inputs)
        is_variadic = operator is not None and operator.inputs and operator.inputs[-1].option == "variadic"
        further = node.inputs[count:] if is_variadic else ()
        if not all(any(True for _ in self._bind([(names[-1], each)], {})) for each in further):
            return
        given = [node.input(position) for position in range(count)]
        for values in (given, given[::-1]) if node.op_type in COMMUTATIVE else (given,):
            yield from self._bind([*zip(names, values, strict=True)], bound)

    def _bind(self, pairs: Sequence[tuple[str, str]], bound: Bound) -> Iterator[Bound]:
        """Yield the values of the names for each way in which names stand for given values."""
        if not pairs:
            yield bound
            return
        (name, value), *others = pairs
        if name in bound:
            if bound[name] == value:
                yield from self._bind(others, bound)
            return
        known, pattern = {**bound, name: value}, self._producers.get(name)
        if pattern is None:
            if name not in self._scalars or self._is_scalar(value):
                yield from self._bind(others, known)
            return
        found = self._producer(value, is_shared=name in self._shared)
        if found is not None and found.position == pattern.outputs.index(name):
            for each in self._match(pattern, found.node, found.operator, known):
                yield from self._bind(others, each)

    def _is_scalar(self, value: str) -> bool:
        constant = self._scope.constant(value)
        return constant is not None and len(constant.values) == 1

    def _producer(self, value: str, *, is_shared: bool) -> Producer | None:
        """Return the node that computes a value, unless an optimizer keeps or folds the value."""
        scope = self._scope
        while (found := scope.producer(value)) is not None:
            is_kept = value in scope.outputs or (scope.read_count(value) > 1 and not is_shared)
            if is_kept or is_constant(scope, value):
                return None
            if found.node.op_type not in self._skipped or found.node.domain:
                return found
            value = found.node.input(0)
        return None
