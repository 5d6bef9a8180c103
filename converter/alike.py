"""Nodes that are alike are rewritten alike: what became of one serves all that differ in names alone.

A step is a pure function of its node and of the facts it asks for. So its result for one node is the
result for every node that states the same and gives the same answers, with other names in it: in the
same model, and in the next one that goes to the same opsets.
"""

from __future__ import annotations

from typing import Any

from opshift.adapters.node import Node
from opshift.converter.lines import Line
from opshift.converter.mould import Names
from opshift.converter.pattern import Pattern, Renamed, Result
from opshift.converter.recorder import Recorder
from opshift.converter.rewrite import rewrite
from opshift.converter.route import Router
from opshift.converter.scope import Scope
from opshift.converter.statements import Outline, is_short, outline_of

MOST_PATTERNS = 16
"""Of nodes that state the same; where facts differ more often than this, nothing more is remembered."""
MOST_SHARED = 512
"""Statements of which the first pattern is remembered for other models."""


class Alike:
    """Rewrites the nodes of one scope."""

    def __init__(self, scope: Scope, router: Router) -> None:
        self._scope = scope
        self._router = router
        self._shared: dict[tuple[int, Outline], Pattern] = router.remembered
        self._patterns: dict[Outline, list[Pattern]] = {}
        self._constants: dict[Pattern, Names] = {}
        self._are_plain: dict[str, bool] = {}

    def known(self, line: Line, proto: Any, source: int) -> Renamed | None:
        """What takes the place of a node, written for the opset `source`, if that is known of one like it."""
        _, domain, op_type, inputs, outputs = line
        is_plain = None if domain else self._are_plain.get(op_type)
        if is_plain is None:
            is_plain = self._is_plain(domain, op_type, source)
        if not is_plain:
            return None
        names = inputs + outputs
        outline = outline_of(line, proto, names)
        patterns = self._patterns.get(outline)
        for pattern in self._kept(outline, source) if patterns is None else patterns:
            if not pattern.asked or pattern.fits(names, self._scope):
                return Renamed(pattern, names + self._made(pattern))
        return None

    def rewrite(self, node: Node, line: Line, proto: Any, source: int) -> Result:
        """As `opshift.converter.rewrite.rewrite`; `node` is the view of a node in this scope."""
        known = self.known(line, proto, source) if node.is_original else None
        return known or self.learn(node, line, proto, source)

    def learn(self, node: Node, line: Line, proto: Any, source: int) -> Result:
        """As `rewrite`, of a node of whose like nothing is known."""
        if not node.is_original or not self._is_plain(node.domain, node.op_type, source):
            return rewrite(node, source, self._scope, self._router)
        names = node.inputs + node.outputs
        recorder = Recorder(self._scope, names)
        result = rewrite(node, source, recorder, self._router)
        outline = outline_of(line, proto, names)
        patterns = self._patterns.setdefault(outline, [])
        if not recorder.is_complete or len(patterns) >= MOST_PATTERNS:
            return result
        pattern = Pattern(node, result, recorder.asked(), recorder.fresh_names, recorder.constants)
        patterns.append(pattern)
        self._constants[pattern] = (*recorder.constants, "")
        self._share(outline, source, pattern)
        return Renamed(pattern, (*names, *recorder.fresh_names, *recorder.constants, ""))

    def _is_plain(self, domain: str, op_type: str, source: int) -> bool:
        """Whether an operator has attributes that are quickly compared."""
        found = self._router.route(domain, op_type, source).operator.has_plain_attributes
        if not domain:
            self._are_plain[op_type] = found
        return found

    def _kept(self, outline: Outline, source: int) -> list[Pattern]:
        """What is known from other models."""
        shared = self._shared.get((source, outline))
        found = self._patterns[outline] = [shared] if shared else []
        return found

    def _made(self, pattern: Pattern) -> Names:
        """The names that a pattern leaves open: new ones, and those that its constants have in this scope."""
        constants = self._constants.get(pattern)
        fresh = tuple(map(self._scope.fresh, pattern.hints)) if pattern.hints else ()
        if constants is None:
            constants = (*map(self._scope.add_constant, pattern.constants), "")
            self._constants[pattern] = constants
        return fresh + constants

    def _share(self, outline: Outline, source: int, pattern: Pattern) -> None:
        if len(self._shared) >= MOST_SHARED:
            self._shared.clear()
        if is_short(outline) and pattern.is_small and (source, outline) not in self._shared:
            self._shared[source, outline] = pattern
