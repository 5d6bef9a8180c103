"""One kind of fact about the values of a scope, found node by node in the order of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from opshift.adapters.node import Node
from opshift.converter.lines import Line
from opshift.converter.statements import MOST, Outline, is_short, outline_of
from opshift.registry.catalogue import Registry
from opshift.registry.models import OperatorVersion

if TYPE_CHECKING:
    from opshift.converter.scope import Scope

Fact = TypeVar("Fact")
Link = int | None
GREATEST = -1
"""In place of an input: the fact is the greatest of those about all inputs."""
Key = tuple[int, Outline, tuple[Any, ...]]
"""The identity of an operator; of a node what it says, and the facts about its inputs."""
_MISSING: Any = object()
_UNNAMED: Any = object()
"""In place of the name of an output that is left out, which nobody asks for."""


class Inferred(NamedTuple, Generic[Fact]):
    """What follows of a node's outputs.

    Attributes:
        facts: in order, as many as can be told.
        is_lasting: whether they follow from its attributes and the facts of this kind about its inputs alone.
    """

    facts: Sequence[Fact | None]
    is_lasting: bool


class Kind(NamedTuple, Generic[Fact]):
    """One kind of fact about values.

    Attributes:
        of: what a scope knows of a value.
        stated: what the model says of a value of a scope.
        link: of an operator, the input that its first output is sure to share the fact with, or `GREATEST`.
        infer: what follows of a node's outputs.
    """

    of: Callable[[Scope, str], Fact | None]
    stated: Callable[[Scope, str], Fact | None]
    link: Callable[[OperatorVersion], Link]
    infer: Callable[[Node, OperatorVersion, Scope], Inferred[Fact]]


class Known(NamedTuple):
    """An operator of the default domain, what it links, and whether all outputs share it.

    `is_plain` says whether what follows of nodes may be remembered for those that state the same.
    """

    operator: OperatorVersion | None
    link: Link
    links_all: bool
    is_plain: bool


class Learned:
    """What is known of one kind, whatever the model, for as long as its operators are there.

    Attributes:
        operators: the default domain's operators, at one opset.
    """

    def __init__(self) -> None:
        self.operators: dict[str, Known] = {}
        self._facts: dict[Key, Sequence[Any]] = {}

    def facts(self, key: Key) -> Sequence[Any] | None:
        """What follows of nodes that are alike in all that matters."""
        return self._facts.get(key)

    def learn(self, key: Key, facts: Sequence[Any]) -> None:
        """Remember that, if it is said in few words."""
        _, outline, _ = key
        if not is_short(outline):
            return
        if len(self._facts) >= MOST:
            self._facts.clear()
        self._facts[key] = facts


@lru_cache(maxsize=256)
def learned_at(kind: Kind[Any], registry: Registry, opset: int) -> Learned:
    """What is known so far at an opset of the default domain."""
    return Learned()


class Following(Generic[Fact]):
    """What is known of the values of one scope: what the model states, and what follows from it.

    Nodes are looked at in order, each once, no further than to the one that makes the value asked for.
    Each question brings the scope along: one that is kept would keep itself alive.
    """

    def __init__(self, kind: Kind[Fact], lines: Iterable[Line], learned: Learned) -> None:
        self._kind = kind
        self._known: dict[str, Fact | None] = {"": None}
        self._learned = learned
        self._lines = iter(lines)
        self._emitted = 0

    def of(self, name: str, scope: Scope) -> Fact | None:
        """The fact about a value; `None` if it is not known."""
        known = self._known
        found = known.get(name, _MISSING)
        if found is not _MISSING:
            return found
        found = self._kind.stated(scope, name)
        if found is not None or scope.is_given(name):
            known[name] = found
        elif not scope.is_local(name):
            found = known[name] = self._kind.of(scope.parent, name) if scope.parent else None
        else:
            self._follow(name, scope)
            found = known.get(name)
        return found

    def tell(self, name: str, fact: Fact | None) -> None:
        """State the fact about a value that no node makes."""
        self._known[name] = fact

    def _follow(self, name: str, scope: Scope) -> None:
        known, operators, stated = self._known, self._learned.operators, scope.stated.keys()
        is_plain_scope = scope.has_plain_nodes
        for line in self._lines:
            _, domain, op_type, inputs, outputs = line
            found = None if domain else operators.get(op_type)
            operator, link, links_all, is_plain = found or self._operator(op_type, domain, scope)
            fact = None
            is_free = stated.isdisjoint(outputs)
            if link is not None and (links_all or len(outputs) == 1) and is_free:
                if link == GREATEST:
                    fact = self._greatest(inputs, scope)
                elif link < len(inputs):
                    source = inputs[link]
                    fact = known[source] if source in known else self.of(source, scope)
            if fact is not None:
                for output in outputs:
                    known[output or _UNNAMED] = fact
            elif is_free or not self._are_stated(outputs, scope):
                if operator is not None and is_plain and is_plain_scope:
                    self._remember(line, operator, scope)
                else:
                    self._look_at(line, scope, operator)
            if name in known:
                return
        self._follow_emitted(scope)

    def _operator(self, op_type: str, domain: str, scope: Scope) -> Known:
        operator = scope.operator(op_type, domain)
        if operator is None or domain:
            found = Known(operator, None, links_all=False, is_plain=False)
        else:
            has_one = len(operator.outputs) == 1
            found = Known(operator, self._kind.link(operator), has_one, operator.has_plain_attributes)
        if not domain:
            self._learned.operators[op_type] = found
        return found

    def _are_stated(self, outputs: Sequence[str], scope: Scope) -> bool:
        """Whether the model says it of all outputs, so that nothing need follow."""
        for name in outputs:
            fact = self._kind.stated(scope, name) if name else None
            if fact is None:
                return False
            self._known[name] = fact
        return True

    def _greatest(self, inputs: Sequence[str], scope: Scope) -> Fact | None:
        known = self._known
        greatest: Any = None
        for name in filter(None, inputs):
            fact = known[name] if name in known else self.of(name, scope)
            if fact is None:
                return None
            if greatest is None or fact > greatest:
                greatest = fact
        return greatest  # type: ignore[no-any-return]

    def _look_at(self, line: Line, scope: Scope, operator: OperatorVersion | None) -> None:
        made = scope.through_call(line, self._kind.of)
        if made is not None:
            self._note(line[4], made, scope)
        elif operator is None or not operator.has_plain_attributes or not scope.has_plain_nodes:
            self._look(scope.node_of(line), operator, scope)
        else:
            self._remember(line, operator, scope)

    def _remember(self, line: Line, operator: OperatorVersion, scope: Scope) -> None:
        """What follows of a node, as of one that states the same and whose inputs are the same."""
        _, _, _, inputs, outputs = line
        told = tuple(map(self._known.get, inputs))
        if None in told:
            told = tuple([self.of(name, scope) for name in inputs])
        key = id(operator), outline_of(line, scope.proto_of(line), inputs + outputs), told
        found = self._learned.facts(key)
        if found is None:
            inferred = self._kind.infer(scope.node_of(line), operator, scope)
            found = inferred.facts
            if inferred.is_lasting:
                self._learned.learn(key, found)
        self._note(outputs, found, scope)

    def _follow_emitted(self, scope: Scope) -> None:
        emitted = scope.emitted
        while self._emitted < len(emitted):
            node, opset = emitted[self._emitted]
            self._emitted += 1
            operator = scope.registry.at(node.op_type, opset, node.domain)
            self._look(node, operator, scope)

    def _look(self, node: Node, operator: OperatorVersion | None, scope: Scope) -> None:
        self._note(node.outputs, self._kind.infer(node, operator, scope).facts if operator else (), scope)

    def _note(self, outputs: Sequence[str], inferred: Sequence[Fact | None], scope: Scope) -> None:
        known = self._known
        for position, name in enumerate(outputs):
            if name and name not in known:
                stated = self._kind.stated(scope, name) if name in scope.stated else None
                follows = inferred[position] if position < len(inferred) else None
                known[name] = follows if stated is None else stated
