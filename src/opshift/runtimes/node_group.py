"""Nodes of a model that most runtimes treat in the same way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opshift.runtimes.model_nodes import ModelNode


SCHEMA_QUESTION: Final[Mapping[Hashable, Callable[[ModelNode], Hashable]]] = {
    "schema": lambda node: node.schema_key
}
"""Question about nodes: schemas accept all nodes with equal answers, or none; see `NodeGroup.kinds`."""


class NodeGroup:
    """Nodes of a model with the same operator version and types.

    Attributes:
        nodes: the nodes, at least one.
    """

    def __init__(self) -> None:
        self.nodes: list[ModelNode] = []
        self._answers: dict[Hashable, tuple[list[int], list[Hashable]]] = {}
        """For each question, the distinct answers, and for each node the number of its answer among them."""
        self._kinds: dict[Hashable, list[list[ModelNode]]] = {}

    @cached_property
    def operator(self) -> str:
        """Operator without a version, such as `ai.onnx.Cast`."""
        return f"{self.nodes[0].domain}.{self.nodes[0].node.op_type}"

    @cached_property
    def element_types(self) -> frozenset[str | None]:
        """Element types of all inputs and outputs; `None` for an unknown type."""
        return frozenset().union(*(each.input_types | each.output_types for each in self.nodes))

    @cached_property
    def known_types(self) -> Mapping[str, str]:
        """Known types such as `tensor(float)`, by type variable and by parameter."""
        return {name: each for name, each in self.nodes[0].types if each}

    @cached_property
    def unknown_types(self) -> frozenset[str]:
        """Type variables and parameters with an unknown type."""
        return frozenset(name for name, each in self.nodes[0].types if each is None)

    @cached_property
    def schema_kinds(self) -> list[list[ModelNode]]:
        """The nodes in lists; a schema accepts all nodes of a list, or refuses them for the same reason."""
        return self.kinds(SCHEMA_QUESTION)

    def answers(self, question: Hashable, answer: Callable[[ModelNode], Hashable]) -> list[Hashable]:
        """Return the distinct answers of the nodes to a question; they are cached under `question`."""
        return self._numbered_answers(question, answer)[1]

    def kinds(self, questions: Mapping[Hashable, Callable[[ModelNode], Hashable]]) -> list[list[ModelNode]]:
        """Return the nodes in lists; nodes in one list have equal answers to all questions.

        Args:
            questions: the function that answers each question, by key; answers are cached under the key.
        """
        key = tuple(questions)
        kinds = self._kinds.get(key)
        if kinds is None:
            answers = [self._numbered_answers(question, answer)[0] for question, answer in questions.items()]
            lists: defaultdict[tuple[int, ...], list[ModelNode]] = defaultdict(list)
            for node, *numbers in zip(self.nodes, *answers, strict=True):
                lists[tuple(numbers)].append(node)
            kinds = self._kinds[key] = list(lists.values())
        return kinds

    def _numbered_answers(
        self, question: Hashable, answer: Callable[[ModelNode], Hashable]
    ) -> tuple[list[int], list[Hashable]]:
        found = self._answers.get(question)  # one lookup: comparing two restrictions takes a few microseconds
        if found is None:
            numbers: dict[Hashable, int] = {}
            number_of_each = [numbers.setdefault(answer(each), len(numbers)) for each in self.nodes]
            found = self._answers[question] = number_of_each, list(numbers)
        return found


def group_nodes(nodes: Iterable[ModelNode]) -> Mapping[Hashable, NodeGroup]:
    """Return groups of nodes with the same operator version and types, by a key for both."""
    found: defaultdict[Hashable, NodeGroup] = defaultdict(NodeGroup)
    for each in nodes:
        opset = each.scope.opset_of(each.domain)
        found[each.domain, each.node.op_type, opset, each.types].nodes.append(each)
    return found
