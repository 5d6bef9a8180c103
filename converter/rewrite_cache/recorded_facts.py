"""Recorder of the facts that the steps of a node query, and of the names and constants that they create."""

from __future__ import annotations

from typing import Any

from opshift.converter.rewrite.workspace import Workspace
from opshift.converter.rewrite_cache.cached_rewrite import Question
from opshift.model.node import Graph, Node, Tensor
from opshift.model.types import Shape
from opshift.registry.steps import Allow


class FactRecorder:
    """Facts of a scope for the steps of one node, with a record of all queries.

    Attributes:
        fresh_names: fresh names that the steps requested, each with its hint.
        constants: constants that the steps added, by name.
        is_complete: whether the rewrite depends only on recorded facts about the node's inputs and outputs,
            so that it can be cached.
    """

    def __init__(self, workspace: Workspace, names: tuple[str, ...]) -> None:
        self._scope = workspace.scope
        self._workspace = workspace
        self._positions = {name: position for position, name in enumerate(names) if name}
        self._answers: dict[tuple[str, int], Any] = {}
        self.fresh_names: dict[str, str] = {}
        self.constants: dict[str, Tensor] = {}
        # A name that occurs twice has no unique position.
        self.is_complete = len(self._positions) == len(list(filter(None, names)))

    def element_type(self, name: str) -> str | None:
        """Return the element type of a value, and record the query."""
        return self._query("element_type", name)  # type: ignore[no-any-return]

    def shape(self, name: str) -> Shape | None:
        """Return the shape of a value, and record the query."""
        return self._query("shape", name)  # type: ignore[no-any-return]

    def rank(self, name: str) -> int | None:
        """Return the rank of a value, and record the query."""
        return self._query("rank", name)  # type: ignore[no-any-return]

    def constant(self, name: str) -> Tensor | None:
        """Return the value of a constant, and record the query."""
        return self._query("constant", name)  # type: ignore[no-any-return]

    def is_used(self, name: str) -> bool:
        """Return whether a value is used, and record the query."""
        return self._query("is_used", name)  # type: ignore[no-any-return]

    def nested_shape(self, graph: Any, name: str) -> Shape | None:
        """Return the shape of a value in a subgraph; not cached, as subgraphs are specific to a node."""
        self.is_complete = False
        return self._scope.nested_shape(graph, name)

    def fresh(self, hint: str) -> str:
        """Return a fresh name, and record its hint."""
        # A hint that contains a name of the node differs for other nodes, so the rewrite cannot be cached.
        found = self._workspace.fresh(hint)
        self.fresh_names[found] = hint
        self.is_complete &= not any(name in hint for name in self._positions)
        return found

    def add_constant(self, tensor: Tensor) -> str:
        """Add a constant, record it, and return its name."""
        found = self._workspace.add_constant(tensor)
        self.constants[found] = tensor
        return found

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether an inexact conversion is allowed; not cached, as uses are recorded per node."""
        self.is_complete = False
        return self._workspace.allow(kind, reason)

    def add_emitted(self, node: Node, opset: int) -> None:
        """Make the outputs of an emitted node available to inference."""
        # Not recorded: only queries about the new values matter, and these prevent caching.
        self._workspace.add_emitted(node, opset)

    def add_graph(self, graph: Graph) -> None:
        """Make the values of an emitted graph available to inference; nodes with graphs are not cached."""
        self.is_complete = False
        self._workspace.add_graph(graph)

    def questions(self) -> tuple[Question, ...]:
        """Return the queries with their answers, each query once."""
        return tuple(Question(*each, answer) for each, answer in self._answers.items())

    def _query(self, question: str, name: str) -> Any:
        answer = getattr(self._scope, question)(name)
        position = self._positions.get(name)
        if position is None:
            self.is_complete = False
        else:
            self._answers[question, position] = answer
        return answer
