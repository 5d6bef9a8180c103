"""What became of one node, and so becomes of every node like it, with other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Facts
from opshift.converter.lineage import Edge
from opshift.converter.mould import Mould, Names
from opshift.converter.rewrite import Rewritten, Written
from opshift.registry.models import OperatorVersion

LARGEST = 1024
"""Elements of the constants in a pattern that is small."""


class Asked(NamedTuple):
    """What a step asked about an input or output of its node, and was told."""

    question: str
    position: int
    answer: Any


class Pattern:
    """What became of a node; it holds on to no model.

    Attributes:
        asked: all that its steps wanted to know.
        hints: what the names are made after that they made up.
        constants: those that they asked for.
        operator: what the node was.
        steps: the steps that it took.
        moulds: the nodes that take its place.
        operators: what these are.
        main: the position of its successor among them.
        is_unchanged: whether the node stays as it is.
    """

    def __init__(
        self,
        node: Node,
        result: Rewritten,
        asked: tuple[Asked, ...],
        fresh: Mapping[str, str],
        constants: Mapping[str, Tensor],
    ) -> None:
        self.asked = asked
        self.hints = tuple(fresh.values())
        self.constants = tuple(constants.values())
        self.operator = result.operator
        self.steps = result.steps
        self.operators = result.operators
        self.main = result.main
        self.is_unchanged = result.is_same_as(node)
        names = (*node.inputs, *node.outputs, *fresh, *constants, "")
        places = {name: position for position, name in enumerate(names)}
        self.moulds = tuple(
            Mould.of(each, node, position == self.main, places) for position, each in enumerate(result.nodes)
        )

    @property
    def is_small(self) -> bool:
        """Whether it may be kept for long."""
        tensors = (*self.constants, *(each.answer for each in self.asked if isinstance(each.answer, Tensor)))
        return sum(len(each.values) for each in tensors) <= LARGEST

    def fits(self, names: Names, facts: Facts) -> bool:
        """Whether the steps of a node with other names would be told the same."""
        for question, position, answer in self.asked:
            if not _is_same(getattr(facts, question)(names[position]), answer):
                return False
        return True


class Renamed:
    """What takes the place of a node that fits a pattern.

    Attributes:
        pattern: the pattern.
        names: those of the node, then those that are made for it, then of constants, then the empty one.
    """

    __slots__ = ("names", "pattern")

    def __init__(self, pattern: Pattern, names: Names) -> None:
        self.pattern = pattern
        self.names = names

    @property
    def operator(self) -> OperatorVersion:
        """What the node was."""
        return self.pattern.operator

    @property
    def steps(self) -> tuple[Edge, ...]:
        """The steps that led there."""
        return self.pattern.steps

    @property
    def operators(self) -> tuple[OperatorVersion, ...]:
        """What the nodes are that take its place."""
        return self.pattern.operators

    @property
    def main(self) -> int:
        """The position of the successor among the nodes."""
        return self.pattern.main

    @property
    def nodes(self) -> tuple[Written, ...]:
        """The nodes that take its place."""
        return tuple(mould.named(self.names) for mould in self.pattern.moulds)

    def is_same_as(self, node: Node) -> bool:
        """Whether `node`, the one that it is about, stays as it is."""
        return self.pattern.is_unchanged


Result = Rewritten | Renamed


def _is_same(answer: Any, other: Any) -> bool:
    """Equal, and where floats are compared written the same: zero has two signs."""
    if answer is other or answer != other or not isinstance(answer, Tensor):
        return bool(answer == other)
    has_floats = any(isinstance(each, float) for each in answer.values)
    return not has_floats or repr(answer.values) == repr(other.values)
