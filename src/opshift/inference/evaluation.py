"""Answer questions about values of a model, such as their shapes, on an explicit stack, not Python's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from opshift.model.indirect_reads import NO_NAMED_VALUES

if TYPE_CHECKING:
    from opshift.inference.facts import InferenceScope


KnownT = TypeVar("KnownT")


class Answers(ABC, Generic[KnownT]):
    """Facts of one kind, such as shapes, about the values of a scope; each fact answers a question."""

    def __init__(self) -> None:
        self._known: dict[str, KnownT | None] = {}

    def is_known(self, name: str) -> bool:
        """Return whether the fact about a value is determined; it may be determined as unknown (`None`)."""
        return name in self._known

    def set_fact(self, name: str, fact: KnownT | None) -> None:
        """Store the fact about a value; `None` means unknown."""
        self._known[name] = fact

    def forget(self, names: Set[str]) -> None:
        """Remove the facts about values, in a time that grows with the smaller of the two numbers."""
        for name in self._known.keys() & names:
            del self._known[name]

    @abstractmethod
    def visit(self, name: str, scope: InferenceScope) -> Iterator[FactQuestion]:
        """Determine the fact about a value; yield each question that has to be answered first."""


class FactQuestion(NamedTuple):
    """Question about the value `name`: `facts` stores the answer, and `scope` contains the value."""

    facts: Answers[Any]
    name: str
    scope: InferenceScope


class Unanswered(Exception):
    """Exception: a rule needs a fact that is not determined yet; the rule is applied again afterwards."""

    def __init__(self, question: FactQuestion) -> None:
        super().__init__(question.name)
        self.question = question


ResultT = TypeVar("ResultT")

MANY_QUESTIONS = 16
"""Number of questions of a rule after which `questions_after` also yields similar questions."""


def answered(
    rule: Callable[[], ResultT], scope: InferenceScope, inputs: Sequence[str], outputs: Sequence[str]
) -> Generator[FactQuestion, None, ResultT]:
    """Apply the rule of a node, again after each question that the rule raises, and return its result."""
    number = 0
    while True:
        try:
            return rule()
        except Unanswered as error:
            number += 1
            yield from questions_after(error.question, number, scope, inputs, outputs)


def questions_after(
    question: FactQuestion, count: int, scope: InferenceScope, inputs: Sequence[str], outputs: Sequence[str]
) -> Iterator[FactQuestion]:
    """Yield question number `count` of a rule; every `MANY_QUESTIONS` questions, also yield similar ones.

    A rule is applied again after each question, which would take quadratic time for nodes with many inputs,
    or with many outputs that a body computes. Similar questions ask about the other inputs, or about the
    other outputs of the body: a subgraph of the node, or the function that it calls.
    """
    yield question
    if count % MANY_QUESTIONS:
        return
    facts, _, asked = question
    # A call may use only one of many outputs of a function: limit the number of questions.
    body_outputs = islice(asked.outputs, len(outputs) + 1) if asked.is_body_in(scope) else ()
    for name in inputs if asked is scope else body_outputs:
        if name and not facts.is_known(name):
            yield FactQuestion(facts, name, asked)


MAX_EVALUATED_ELEMENTS = 1 << 20
"""Maximum total number of elements of large evaluated values of a model; bounds time and memory."""


class Evaluation:
    """Evaluation of questions about the values of one model, shared by all its scopes.

    Only the values that an answer depends on are visited. The questions that a rule asks go on a stack, so
    that Python's own stack does not limit how long a chain of nodes may be.

    Attributes:
        is_running: whether a question is being answered.
        has_dynamic_inputs: whether the main graph has inputs of unknown sizes; `None` until it is determined.
        trusted_claims: names of node outputs whose declared shapes inference uses; `None` for all.
        assumes_positive_sizes: whether sizes known only at run time are not 0; set before the first question.
        names_sizes: whether each unknown size in a graph gets a symbol; set before the first question.
        named_values: values that attributes of nodes name; set before a scope of a subgraph is created.
    """

    assumes_positive_sizes = False
    names_sizes = False

    def __init__(self) -> None:
        self.is_running = False
        self.has_dynamic_inputs: bool | None = None
        self._budget = MAX_EVALUATED_ELEMENTS
        self.trusted_claims: frozenset[str] | None = None
        self.named_values = NO_NAMED_VALUES

    def spend(self, elements: int) -> bool:
        """Return whether the model's budget suffices for a number of elements; if so, reduce the budget."""
        if elements > self._budget:
            return False
        self._budget -= elements
        return True

    def answer(self, facts: Answers[Any], name: str, scope: InferenceScope) -> None:
        """Determine the fact about a value, and first the facts that it depends on."""
        self.is_running = True
        waiting = [facts.visit(name, scope)]
        begun = {(id(facts), name)}
        try:
            while waiting:
                first = next(waiting[-1], None)
                if first is None:
                    waiting.pop()
                    continue
                facts, name, scope = first
                if facts.is_known(name):
                    continue
                if (id(facts), name) in begun:
                    # The fact depends on itself: the nodes of the invalid model form a cycle.
                    facts.set_fact(name, None)
                else:
                    begun.add((id(facts), name))
                    waiting.append(facts.visit(name, scope))
        finally:
            self.is_running = False
