"""What became of one node, and so becomes of every node like it, with other names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Facts
from opshift.converter.lineage import Edge
from opshift.converter.rewrite import Rewritten, Written
from opshift.registry.models import OperatorVersion

Names = tuple[str, ...]
Pick = Callable[[Names], Names]


class Asked(NamedTuple):
    """What a step asked about an input or output of its node, and was told."""

    question: str
    position: int
    answer: Any


class Form(NamedTuple):
    """One of the nodes that take the place, and which of all names are its inputs and outputs."""

    written: Written
    inputs: Pick
    outputs: Pick


class Pattern:
    """What became of a node.

    Attributes:
        node: the node.
        asked: all that its steps wanted to know.
        hints: what the names are made after that are made up.
        result: what takes its place.
        main: the position of the successor in that.
        constants: the other names in that.
        forms: the nodes of that.
    """

    def __init__(
        self, node: Node, asked: tuple[Asked, ...], fresh: Sequence[tuple[str, str]], result: Rewritten
    ) -> None:
        self.node = node
        self.asked = asked
        self.hints = tuple(hint for hint, _ in fresh)
        self.result = result
        self.main = result.main
        own = (*node.inputs, *node.outputs, *(name for _, name in fresh))
        used = chain.from_iterable((*each.node.inputs, *each.node.outputs) for each in result.nodes)
        self.constants = tuple(dict.fromkeys(name for name in used if name not in own))
        self.names = (*own, *self.constants)
        places = {name: position for position, name in enumerate(self.names)}
        self.forms = tuple(
            Form(each, _pick(each.node.inputs, places), _pick(each.node.outputs, places))
            for each in result.nodes
        )

    def fits(self, names: Names, facts: Facts) -> bool:
        """Whether another node's steps would be told the same."""
        for question, position, answer in self.asked:
            if not _is_same(getattr(facts, question)(names[position]), answer):
                return False
        return True

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether the node stays as it is."""
        return self.result.is_same_as(self.node)


class Renamed:
    """What takes the place of a node that fits a pattern.

    Attributes:
        pattern: the pattern.
        node: the node.
        names: all names, in the order of those of the pattern.
    """

    __slots__ = ("_nodes", "names", "node", "pattern")

    def __init__(self, pattern: Pattern, node: Node, names: Names) -> None:
        self.pattern = pattern
        self.node = node
        self.names = names
        self._nodes: tuple[Written, ...] | None = None

    @property
    def operator(self) -> OperatorVersion:
        """What the node was."""
        return self.pattern.result.operator

    @property
    def steps(self) -> tuple[Edge, ...]:
        """The steps that led there."""
        return self.pattern.result.steps

    @property
    def operators(self) -> tuple[OperatorVersion, ...]:
        """What the nodes are that take its place."""
        return self.pattern.result.operators

    @property
    def main(self) -> int:
        """The position of the successor among the nodes."""
        return self.pattern.main

    @property
    def nodes(self) -> tuple[Written, ...]:
        """The nodes that take its place; they are written out when first asked for."""
        if self._nodes is None:
            self._nodes = tuple(map(self._written, self.pattern.forms))
        return self._nodes

    @property
    def rewritten(self) -> Rewritten:
        """The same, all of it written out."""
        return Rewritten(self.operator, self.nodes, self.steps)

    def is_same_as(self, node: Node) -> bool:
        """Whether `node`, the one that it is about, stays as it is."""
        return self.pattern.is_unchanged

    def _written(self, form: Form) -> Written:
        original, (written, operator, successor) = self.pattern.node, form.written
        if written is original:
            return Written(self.node, operator, successor)
        stated = original.attributes
        attributes = {
            name: self.node.attributes[name] if value is stated.get(name) else value
            for name, value in written.attributes.items()
        }
        names = self.names
        node = Node(written.op_type, form.inputs(names), form.outputs(names), attributes, written.domain)
        return Written(node, operator, successor)


def _pick(names: Names, places: dict[str, int]) -> Pick:
    """Gives of all names those at the places of these."""
    chosen = [places[name] for name in names]
    if len(chosen) > 1:
        return itemgetter(*chosen)
    return lambda all_names: tuple([all_names[place] for place in chosen])


def _is_same(answer: Any, other: Any) -> bool:
    """Equal, and where numbers are compared written the same: zero has two signs."""
    return bool(answer == other) and (not isinstance(answer, Tensor) or repr(answer) == repr(other))
