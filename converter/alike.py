"""Nodes that are alike are rewritten alike: what became of one serves all that differ in names alone.

A step is a pure function of its node and of the facts it asks for. So its result for one node is the
result for every node that states the same and gives the same answers, with other names in it: in the
same model, and in the next one that goes to the same opsets.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from opshift.adapters.node import Node
from opshift.converter.mould import Names
from opshift.converter.pattern import Pattern, Renamed, Result
from opshift.converter.recorder import Recorder
from opshift.converter.rewrite import rewrite
from opshift.converter.route import Router
from opshift.converter.scope import Scope
from opshift.converter.soundness import require_text

MOST_PATTERNS = 16
"""Of nodes that state the same; where facts differ more often than this, nothing more is remembered."""
MOST_SHARED = 512
"""Statements of which the first pattern is remembered for other models."""
LARGEST_SHARED = 1024
"""Bytes of the attributes in such a statement."""
Statement = tuple[Any, ...]
"""All that a node says but for its names."""
_SHARED: WeakKeyDictionary[Router, dict[Statement, Pattern]] = WeakKeyDictionary()


class Alike:
    """Rewrites the nodes of one scope."""

    def __init__(self, scope: Scope, router: Router) -> None:
        self._scope = scope
        self._router = router
        self._shared = _SHARED.setdefault(router, {})
        self._patterns: dict[Statement, list[Pattern]] = {}
        self._constants: dict[Pattern, Names] = {}

    def rewrite(self, node: Node, source: int) -> Result:
        """As `opshift.converter.rewrite.rewrite`."""
        operator = self._router.route(node.domain, node.op_type, source).operator
        if not node.is_original or not operator.has_plain_attributes:
            return rewrite(node, source, self._scope, self._router)
        names = node.inputs + node.outputs
        absent = tuple(map(bool, names)) if "" in names else ()
        numbers = (source, len(node.inputs), len(names))
        statement = (node.op_type, node.domain, numbers, absent, *node.attribute_bytes())
        patterns = self._patterns.get(statement)
        if patterns is None:
            shared = self._shared.get(statement)
            patterns = self._patterns[statement] = [shared] if shared else []
        for pattern in patterns:
            if pattern.fits(names, self._scope):
                if not pattern.is_unchanged:
                    require_text(names)
                return Renamed(pattern, names + self._made(pattern))
        recorder = Recorder(self._scope, names)
        result = rewrite(node, source, recorder, self._router)
        if not recorder.is_complete or len(patterns) >= MOST_PATTERNS:
            return result
        pattern = Pattern(node, result, recorder.asked(), recorder.fresh_names, recorder.constants)
        patterns.append(pattern)
        self._constants[pattern] = (*recorder.constants, "")
        self._share(statement, pattern)
        return Renamed(pattern, (*names, *recorder.fresh_names, *recorder.constants, ""))

    def _made(self, pattern: Pattern) -> Names:
        """The names that a pattern leaves open: new ones, and those that its constants have in this scope."""
        constants = self._constants.get(pattern)
        fresh = tuple(map(self._scope.fresh, pattern.hints)) if pattern.hints else ()
        if constants is None:
            constants = (*map(self._scope.add_constant, pattern.constants), "")
            self._constants[pattern] = constants
        return fresh + constants

    def _share(self, statement: Statement, pattern: Pattern) -> None:
        if len(self._shared) >= MOST_SHARED:
            self._shared.clear()
        is_small = sum(len(each) for each in statement if isinstance(each, bytes)) <= LARGEST_SHARED
        if is_small and pattern.is_small and statement not in self._shared:
            self._shared[statement] = pattern
