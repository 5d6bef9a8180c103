"""What the steps of one node go by: the facts of a scope, with a note of all that is asked and made."""

from __future__ import annotations

from typing import Any

from opshift.adapters.bodies import Graph
from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Concession
from opshift.converter.pattern import Asked
from opshift.converter.scope import Scope
from opshift.converter.types import Shape


class Recorder:
    """A scope as the steps of one node see it.

    Attributes:
        fresh_names: the names that were made up, and what after.
        constants: the constants that were asked for, by name.
        is_complete: whether all that the steps went by is noted, and in terms of the node's own values.
    """

    def __init__(self, scope: Scope, names: tuple[str, ...]) -> None:
        self._scope = scope
        self._positions = {name: position for position, name in enumerate(names) if name}
        self._asked: dict[tuple[str, int], Any] = {}
        self.fresh_names: dict[str, str] = {}
        self.constants: dict[str, Tensor] = {}
        self.is_complete = len(self._positions) == len(list(filter(None, names)))

    def element_type(self, name: str) -> str | None:
        """Noted as a question of a value; so are those that follow."""
        return self._ask("element_type", name)  # type: ignore[no-any-return]

    def shape(self, name: str) -> Shape | None:
        """Noted."""
        return self._ask("shape", name)  # type: ignore[no-any-return]

    def rank(self, name: str) -> int | None:
        """Noted."""
        return self._ask("rank", name)  # type: ignore[no-any-return]

    def constant(self, name: str) -> Tensor | None:
        """Noted."""
        return self._ask("constant", name)  # type: ignore[no-any-return]

    def is_used(self, name: str) -> bool:
        """Noted."""
        return self._ask("is_used", name)  # type: ignore[no-any-return]

    def shape_within(self, graph: Any, name: str) -> Shape | None:
        """Of a value in a graph of the node, which other nodes do not have."""
        self.is_complete = False
        return self._scope.shape_within(graph, name)

    def fresh(self, hint: str) -> str:
        """Noted; a hint that holds a name of the node is another one for another node."""
        found = self._scope.fresh(hint)
        self.fresh_names[found] = hint
        self.is_complete &= not any(name in hint for name in self._positions)
        return found

    def add_constant(self, tensor: Tensor) -> str:
        """Noted."""
        found = self._scope.add_constant(tensor)
        self.constants[found] = tensor
        return found

    def concede(self, kind: Concession, reason: str) -> bool:
        """What is conceded is said of every node by itself."""
        self.is_complete = False
        return self._scope.concede(kind, reason)

    def add_emitted(self, node: Node, opset: int) -> None:
        """Only what is asked of the new values counts."""
        self._scope.add_emitted(node, opset)

    def add_graph(self, graph: Graph) -> None:
        """Graphs are written for every node by itself."""
        self.is_complete = False
        self._scope.add_graph(graph)

    def asked(self) -> tuple[Asked, ...]:
        """The questions, each once, and the answers."""
        return tuple(Asked(*each, answer) for each, answer in self._asked.items())

    def _ask(self, question: str, name: str) -> Any:
        answer = getattr(self._scope, question)(name)
        position = self._positions.get(name)
        if position is None:
            self.is_complete = False
        else:
            self._asked[question, position] = answer
        return answer
