"""Search for operators that compute a value, directly or through other nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from opshift.inference.evaluator.element_facts import defining_scope
from opshift.inference.facts import InferenceScope, Producer
from opshift.inference.infer_types import parameter_at


class _Question(NamedTuple):
    """Question whether a value is a result of one of some operators; see `ValueOrigins.include`."""

    scope: InferenceScope
    name: str
    operators: tuple[str, ...]
    any_type: bool


class ValueOrigins:
    """Cache of the answers whether operators compute values of a model, directly or indirectly.

    Without the cache, the search for all nodes would take quadratic time.
    """

    def __init__(self) -> None:
        self._answers: dict[_Question, bool] = {}

    def include(
        self, scope: InferenceScope, name: str, operators: tuple[str, ...], *, any_type: bool = False
    ) -> bool:
        """Return whether a value is a result of an operator, or of nodes that compute it from such a result.

        Args:
            scope: the scope that reads the value.
            name: the name of the value.
            operators: operator types of any domain.
            any_type: whether these nodes may change the element type; otherwise, their definitions have one
                type variable for the result and the input.
        """
        asked = _Question(scope, name, operators, any_type)
        if asked not in self._answers:
            self._answer(asked)
        return self._answers[asked]

    def _answer(self, asked: _Question) -> None:
        """Answer a question and the questions that it depends on; stop at the first positive answer."""
        answers = self._answers
        answers[asked], further = _examine(asked)
        pending = [(asked, further)]
        while pending:
            source = next(pending[-1][1], None)
            if source is None:  # no source is a result of an operator: the answer remains no
                pending.pop()
                continue
            if source not in answers:
                answers[source], further = _examine(source)
                pending.append((source, further))
            if answers[source]:
                # each pending question depends on the next one, so all answers are yes
                answers.update((each, True) for each, _ in pending)
                return


def _examine(question: _Question) -> tuple[bool, Iterator[_Question]]:
    """Return whether one of the operators produces a value, and if not, questions about its inputs."""
    owner = defining_scope(question.scope, question.name)
    producer = owner.producer(question.name) if owner is not None else None
    if owner is None or producer is None:
        return False, iter(())
    if producer.node.op_type in question.operators:
        return True, iter(())
    names = filter(None, producer.node.inputs) if question.any_type else _inputs_of_same_type(producer)
    return False, (question._replace(scope=owner, name=each) for each in names)


def _inputs_of_same_type(producer: Producer) -> Iterator[str]:
    """Yield the inputs of a node that have the same type variable as the produced value."""
    operator = producer.operator
    output = parameter_at(operator.outputs, producer.position) if operator is not None else None
    if operator is None or output is None or output.type not in operator.type_constraints:
        return
    for position, name in enumerate(producer.node.inputs):
        parameter = parameter_at(operator.inputs, position)
        if name and parameter is not None and parameter.type == output.type:
            yield name
