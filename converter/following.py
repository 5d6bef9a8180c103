"""One kind of fact about the values of a scope, found node by node in the order of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opshift.adapters.node import Node
from opshift.registry.models import OperatorVersion

if TYPE_CHECKING:
    from opshift.converter.scope import Scope

Fact = TypeVar("Fact")
Link = int | None
_MISSING: Any = object()


class Following(Generic[Fact]):
    """What is known of the values of one scope: what the model states, and what follows from it.

    Nodes are looked at in order, each once, no further than to the one that makes the value asked for.

    Args:
        scope: the graph or function, in topological order.
        stated: what the model says of a value of the scope.
        around: the same kind of fact in the graph around the scope.
        link: of an operator, the input that its first output is sure to share the fact with.
        infer: the facts of a node's outputs, as many as can be told.
    """

    def __init__(
        self,
        scope: Scope,
        stated: Callable[[str], Fact | None],
        around: Callable[[str], Fact | None],
        link: Callable[[OperatorVersion], Link],
        infer: Callable[[Node, OperatorVersion, Scope], Sequence[Fact | None]],
    ) -> None:
        self._scope = scope
        self._stated = stated
        self._around = around
        self._link = link
        self._infer = infer
        self._known: dict[str, Fact | None] = {"": None}
        self._links: dict[str, Link] = {}
        self._nodes = iter(scope.container.node)
        self._emitted = 0

    def of(self, name: str) -> Fact | None:
        """The fact about a value; `None` if it is not known."""
        known = self._known
        found = known.get(name, _MISSING)
        if found is not _MISSING:
            return found
        found = self._stated(name)
        if found is not None:
            known[name] = found
        elif not self._scope.is_local(name):
            found = known[name] = self._around(name)
        else:
            self._follow(name)
            found = known.get(name)
        return found

    def _follow(self, name: str) -> None:
        known, links, is_stated = self._known, self._links, self._scope.is_stated
        for proto in self._nodes:
            outputs = proto.output[:]
            link = links.get(proto.op_type, _MISSING) if not proto.domain else None
            if link is _MISSING:
                link = links[proto.op_type] = self._linked(proto.op_type)
            fact = None
            if link is not None and len(outputs) == 1 and not is_stated(outputs[0]):
                fact = self._linked_fact(proto, link)
            if fact is not None:
                known[outputs[0]] = fact
            elif outputs:
                self._look(Node.of(proto), self._scope.opset_of(proto.domain))
            if name in known:
                return
        self._follow_emitted()

    def _linked(self, op_type: str) -> Link:
        operator = self._scope.operator(op_type, "")
        return self._link(operator) if operator else None

    def _linked_fact(self, proto: Any, link: int) -> Fact | None:
        inputs = proto.input
        source = inputs[link] if link < len(inputs) else ""
        return self._known[source] if source in self._known else self.of(source)

    def _follow_emitted(self) -> None:
        emitted = self._scope.emitted
        while self._emitted < len(emitted):
            node, opset = emitted[self._emitted]
            self._emitted += 1
            self._look(node, opset)

    def _look(self, node: Node, opset: int) -> None:
        operator = self._scope.registry.at(node.op_type, opset, node.domain)
        inferred = self._infer(node, operator, self._scope) if operator else ()
        for position, name in enumerate(node.outputs):
            if name and name not in self._known:
                stated = self._stated(name)
                follows = inferred[position] if position < len(inferred) else None
                self._known[name] = follows if stated is None else stated
