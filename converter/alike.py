"""Nodes that are alike are rewritten alike: what became of one serves all that differ in names alone.

A step is a pure function of its node and of the facts it asks for. So its result for one node is the
result for every node that states the same and gives the same answers, with other names in it.
"""

from __future__ import annotations

from typing import Any

from opshift.adapters.bodies import Graph
from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Concession
from opshift.converter.pattern import Asked, Pattern, Renamed
from opshift.converter.rewrite import Rewritten, rewrite
from opshift.converter.route import Router
from opshift.converter.scope import Scope
from opshift.converter.types import Shape

MOST_PATTERNS = 16
"""Of nodes that state the same; where facts differ more often than this, nothing more is remembered."""


class Alike:
    """Rewrites the nodes of one scope."""

    def __init__(self, scope: Scope, router: Router) -> None:
        self._scope = scope
        self._router = router
        self._patterns: dict[tuple[Any, ...], list[Pattern]] = {}

    def rewrite(self, node: Node, source: int) -> Rewritten | Renamed:
        """As `opshift.converter.rewrite.rewrite`."""
        operator = self._router.route(node.domain, node.op_type, source).operator
        if not node.is_original or not operator.has_plain_attributes:
            return rewrite(node, source, self._scope, self._router)
        names = node.inputs + node.outputs
        absent = tuple(map(bool, names)) if "" in names else ()
        key = (node.op_type, node.domain, len(node.inputs), len(names), absent, *node.attribute_bytes())
        patterns = self._patterns.get(key)
        if patterns is None:
            patterns = self._patterns[key] = []
        for pattern in patterns:
            if pattern.fits(names, self._scope):
                fresh = tuple([self._scope.fresh(hint) for hint in pattern.hints])
                return Renamed(pattern, node, names + fresh + pattern.constants)
        return self._rewritten(node, source, names, patterns)

    def _rewritten(
        self, node: Node, source: int, names: tuple[str, ...], patterns: list[Pattern]
    ) -> Rewritten | Renamed:
        recorder = _Recorder(self._scope, names)
        result = rewrite(node, source, recorder, self._router)
        if not recorder.is_complete or len(patterns) >= MOST_PATTERNS:
            return result
        pattern = Pattern(node, recorder.asked(), recorder.made, result)
        patterns.append(pattern)
        return Renamed(pattern, node, pattern.names)


class _Recorder:
    """The facts of a scope, with a note of each question about a value of one node."""

    def __init__(self, scope: Scope, names: tuple[str, ...]) -> None:
        self._scope = scope
        self._positions = {name: position for position, name in enumerate(names) if name}
        self._asked: dict[tuple[str, int], Any] = {}
        self.made: list[tuple[str, str]] = []
        self.is_complete = len(self._positions) == len(list(filter(None, names)))
        """Whether all that the steps went by is noted, and in terms of the node's own values."""

    def element_type(self, name: str) -> str | None:
        """As that of the scope; so are those that follow."""
        return self._ask("element_type", name)  # type: ignore[no-any-return]

    def shape(self, name: str) -> Shape | None:
        return self._ask("shape", name)  # type: ignore[no-any-return]

    def rank(self, name: str) -> int | None:
        return self._ask("rank", name)  # type: ignore[no-any-return]

    def shape_within(self, graph: Any, name: str) -> Shape | None:
        self.is_complete = False
        return self._scope.shape_within(graph, name)

    def constant(self, name: str) -> Tensor | None:
        return self._ask("constant", name)  # type: ignore[no-any-return]

    def is_used(self, name: str) -> bool:
        return self._ask("is_used", name)  # type: ignore[no-any-return]

    def fresh(self, hint: str) -> str:
        found = self._scope.fresh(hint)
        self.made.append((hint, found))
        self.is_complete &= not any(name in hint for name in self._positions)
        return found

    def add_constant(self, tensor: Tensor) -> str:
        return self._scope.add_constant(tensor)

    def concede(self, kind: Concession, reason: str) -> bool:
        self.is_complete = False
        return self._scope.concede(kind, reason)

    def add_emitted(self, node: Node, opset: int) -> None:
        self._scope.add_emitted(node, opset)

    def add_graph(self, graph: Graph) -> None:
        self.is_complete = False
        self._scope.add_graph(graph)

    def _ask(self, question: str, name: str) -> Any:
        answer = getattr(self._scope, question)(name)
        position = self._positions.get(name)
        if position is None:
            self.is_complete = False
        else:
            self._asked[question, position] = answer
        return answer

    def asked(self) -> tuple[Asked, ...]:
        """The questions, each once, and the answers."""
        return tuple(Asked(*each, answer) for each, answer in self._asked.items())
