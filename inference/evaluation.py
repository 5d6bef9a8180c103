"""Evaluation of questions about the values of a model, on a stack of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from opshift.inference.facts import InferenceScope


class Answers(Protocol):
    """Facts of one kind about the values of a scope, which answer questions."""

    def is_known(self, name: str) -> bool:
        """Return whether the question about a value is answered."""
        ...

    def set_fact(self, name: str, fact: None) -> None:
        """Answer the question about a value."""
        ...

    def visit(self, name: str, scope: InferenceScope) -> Iterator[FactQuestion]:
        """Answer the question about a value; yield each question that has to be answered first."""
        ...


class FactQuestion(NamedTuple):
    """Question about a value: the facts of the scope that answer it, the value and the scope."""

    facts: Answers
    name: str
    scope: InferenceScope


class Unanswered(Exception):
    """A rule needs an unknown fact: it is applied again once the question is answered."""

    def __init__(self, question: FactQuestion) -> None:
        super().__init__(question.name)
        self.question = question


class Evaluation:
    """Evaluation of questions about the values of one model, shared by all its scopes.

    Only the values that an answer depends on are visited. The questions that a rule asks go on a stack, so
    that Python's own stack does not limit how long a chain of nodes may be.

    Attributes:
        is_running: whether a question is being answered.
    """

    def __init__(self) -> None:
        self.is_running = False

    def answer(self, question: FactQuestion) -> None:
        """Answer a question, and first those that it depends on."""
        self.is_running = True
        waiting = [_begin(question)]
        begun = {_key(question)}
        try:
            while waiting:
                first = next(waiting[-1], None)
                if first is None:
                    waiting.pop()
                elif first.facts.is_known(first.name):
                    continue
                elif _key(first) in begun:
                    # It waits for its own answer: the nodes of the invalid model form a cycle.
                    first.facts.set_fact(first.name, None)
                else:
                    begun.add(_key(first))
                    waiting.append(_begin(first))
        finally:
            self.is_running = False


def _begin(question: FactQuestion) -> Iterator[FactQuestion]:
    return question.facts.visit(question.name, question.scope)


def _key(question: FactQuestion) -> tuple[int, str]:
    return id(question.facts), question.name
