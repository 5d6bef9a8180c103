"""Cached rewrite of a node, and its instance for another node with the same key and facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from opshift.converter.rewrite.rewrite_node import Emission, NodeRewrite
from opshift.converter.rewrite.version_steps import VersionStep
from opshift.converter.rewrite_cache.node_template import NodeTemplate, ValueNames
from opshift.inference.facts import Facts
from opshift.model.node import Node, Tensor
from opshift.registry.models import OperatorVersion

MAX_SHARED_ELEMENTS = 1024
"""Maximum number of constant elements in a rewrite that is shared between models; bounds memory."""


class Question(NamedTuple):
    """Query of a step about an input or output of its node, with the answer.

    Attributes:
        question: name of the method of `Facts`.
        position: position of the value among the inputs and outputs of the node.
        answer: answer for the node that was rewritten first.
    """

    question: str
    position: int
    answer: Any


class CachedRewrite:
    """Rewrite of a node, with value names left open; it does not keep a model alive.

    Attributes:
        questions: queries of its steps.
        name_hints: hints for the fresh names that its steps requested.
        constants: constants that its steps added.
        operator: operator version of the node.
        steps: steps that rewrote it.
        templates: templates of the nodes that replace it.
        operators: operator versions of these nodes.
        replacement_index: position of the replacement among these nodes.
        is_unchanged: whether the node does not change.
    """

    def __init__(
        self,
        node: Node,
        result: NodeRewrite,
        asked: tuple[Question, ...],
        fresh: Mapping[str, str],
        constants: Mapping[str, Tensor],
    ) -> None:
        self.questions = asked
        self.name_hints = tuple(fresh.values())
        self.constants = tuple(constants.values())
        self.operator = result.operator
        self.steps = result.steps
        self.operators = result.operators
        self.replacement_index = result.replacement_index
        self.is_unchanged = result.is_same_as(node)
        names = (*node.inputs, *node.outputs, *fresh, *constants, "")
        positions = {name: position for position, name in enumerate(names)}
        self.templates = tuple(
            NodeTemplate.of(each, node, position == self.replacement_index, positions)
            for position, each in enumerate(result.nodes)
        )

    @property
    def is_small(self) -> bool:
        """Whether it is small enough to be shared between models."""
        tensors = (
            *self.constants,
            *(each.answer for each in self.questions if isinstance(each.answer, Tensor)),
        )
        return sum(len(each.values) for each in tensors) <= MAX_SHARED_ELEMENTS

    def matches(self, names: ValueNames, facts: Facts) -> bool:
        """Return whether all queries have the same answers for a node with other names."""
        for question, position, answer in self.questions:
            if not _is_same(getattr(facts, question)(names[position]), answer):
                return False
        return True


class CacheHit:
    """Rewrite of a node that matches a cached rewrite.

    Attributes:
        cached: the cached rewrite.
        names: names of the node, then fresh names, names of constants, and the empty name.
    """

    __slots__ = ("cached", "names")

    def __init__(self, pattern: CachedRewrite, names: ValueNames) -> None:
        self.cached = pattern
        self.names = names

    @property
    def operator(self) -> OperatorVersion:
        """Operator version of the node."""
        return self.cached.operator

    @property
    def steps(self) -> tuple[VersionStep, ...]:
        """Steps that rewrote the node."""
        return self.cached.steps

    @property
    def operators(self) -> tuple[OperatorVersion, ...]:
        """Operator versions of the nodes that replace it."""
        return self.cached.operators

    @property
    def replacement_index(self) -> int:
        """Position of the replacement among the new nodes."""
        return self.cached.replacement_index

    @property
    def nodes(self) -> tuple[Emission, ...]:
        """Nodes that replace it."""
        return tuple(template.instantiate(self.names) for template in self.cached.templates)

    def is_same_as(self, node: Node) -> bool:
        """Return whether the rewritten node does not change; `node` is that node."""
        return self.cached.is_unchanged


RewriteResult = NodeRewrite | CacheHit


def _is_same(answer: Any, other: Any) -> bool:
    """Compare two answers; floats by their text as well, because 0.0 equals -0.0."""
    if answer is other or answer != other or not isinstance(answer, Tensor):
        return bool(answer == other)
    has_floats = any(isinstance(each, float) for each in answer.values)
    return not has_floats or repr(answer.values) == repr(other.values)
