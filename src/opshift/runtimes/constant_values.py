"""Values that are the same in every run, which runtimes compute in advance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from opshift.inference.facts import InferenceScope
from opshift.model.node import Node
from opshift.model.offloaded_tensors import EXTERNAL

SIZED_BY_VALUES: Final = frozenset(
    {
        "Compress", "NonMaxSuppression", "NonZero", "OneHot", "Range", "Resize", "StringSplit", "Unique",
        "Upsample",
    }
)  # fmt: skip
"""Operators with output sizes that depend on elements of inputs of any type, not only of integers."""

INTEGERS: Final = ("int32", "int64")
"""Element types of inputs, such as `shape` of Reshape, whose elements may determine output sizes."""


class _Question(NamedTuple):
    """Question whether a value, or only its shape, is the same in every run; see `ConstantValues.contain`."""

    scope: InferenceScope
    name: str
    is_about_sizes: bool
    knows_sizes: bool
    allows_defaults: bool


class ConstantValues:
    """Cache of the answers whether values of a model are the same in every run.

    Without `has_defaults`, callers cannot override any initializer, as before IR version 4.
    """

    def __init__(self, *, has_defaults: bool = True) -> None:
        self._answers: dict[_Question, bool] = {}
        self._has_defaults = has_defaults

    def contain(
        self, scope: InferenceScope, name: str, *, knows_sizes: bool = False, allows_defaults: bool = True
    ) -> bool:
        """Return whether a value is the same in every run.

        A constant value depends only on constants and on sizes that are known before a run. With
        `knows_sizes`, all sizes count as known; with `allows_defaults`, defaults of graph inputs are
        constants.
        """
        allows_defaults = allows_defaults or not self._has_defaults
        asked = _Question(scope, name, False, knows_sizes, allows_defaults)
        if asked not in self._answers:
            self._answer(asked)
        return self._answers[asked]

    def _answer(self, asked: _Question) -> None:
        """Answer a question and the questions that it depends on; stop at the first negative answer."""
        answers = self._answers
        pending = [(asked, _needed(asked))]
        while pending:
            question, needed = pending[-1]
            first = None if needed is None else next((each for each in needed if not answers.get(each)), None)
            if needed is None or first in answers:
                # each pending question depends on the next one, so all answers are no
                answers.update((each, False) for each, _ in pending)
                return
            if first is None:
                answers[question] = True
                pending.pop()
            else:
                pending.append((first, _needed(first)))


def _needed(question: _Question) -> Iterator[_Question] | None:
    """Return the questions that must all have the answer yes for a yes; `None` if the answer is no."""
    scope, name, is_about_sizes, knows_sizes, allows_defaults = question
    while not scope.is_local(name) and scope.parent is not None:
        scope = scope.parent
    # Most kernels treat defaults of graph inputs as constants, too; constant folding does not.
    is_initializer = scope.initializer(name) is not None
    if is_initializer and not allows_defaults and scope.is_overridable(name):
        return None
    if is_initializer or scope.constant(name) is not None:
        return iter(())
    if is_about_sizes and (knows_sizes or has_known_sizes(scope, name)):
        return iter(())
    producer = scope.producer(name)
    operator = producer.operator if producer else None
    if (
        producer is None
        or operator is None
        or operator.holds_graphs
        or operator.determinism != "deterministic"
    ):
        return None
    return _questions_about(producer.node, question._replace(scope=scope))


def _questions_about(node: Node, question: _Question) -> Iterator[_Question]:
    """Yield the questions about inputs of a node on which a question about its output depends."""
    for each in filter(None, node.inputs):
        wanted = [node.op_type in ("Shape", "Size")]
        if question.is_about_sizes:
            element_type = question.scope.element_type(each)
            depends_on_elements = node.op_type in SIZED_BY_VALUES or element_type in INTEGERS
            wanted = [True, False] if depends_on_elements else [True]
        for is_about_sizes in wanted:
            yield question._replace(name=each, is_about_sizes=is_about_sizes)


def is_stored(scope: InferenceScope, name: str) -> bool:
    """Return whether a value is an initializer or the result of a Constant node."""
    while not scope.is_local(name) and scope.parent is not None:
        scope = scope.parent
    producer = scope.producer(name)
    return scope.initializer(name) is not None or (
        producer is not None and producer.node.op_type == "Constant"
    )


def has_typed_data(scope: InferenceScope, name: str) -> bool:
    """Return whether a value is stored, and not as raw bytes, but in a field such as `int32_data`."""
    while not scope.is_local(name) and scope.parent is not None:
        scope = scope.parent
    tensor, producer = scope.initializer(name), scope.producer(name)
    if tensor is None and producer is not None and producer.node.op_type == "Constant":
        tensor = producer.node.attribute("value")
        if tensor is None:
            return True
    return tensor is not None and not tensor.HasField("raw_data") and tensor.data_location != EXTERNAL


def has_known_sizes(scope: InferenceScope, name: str) -> bool:
    """Return whether all sizes of a value are known before a run."""
    shape = scope.shape(name)
    return shape is not None and None not in shape
