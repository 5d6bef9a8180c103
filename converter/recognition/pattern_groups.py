"""Groups of patterns, which exclude most patterns with few comparisons of operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from opshift.converter.recognition.patterns import NodeRef, Pattern, PatternNode


class NodeTree:
    """Operators of a node of a pattern and of those that compute its inputs; equal trees are one object.

    Attributes:
        op_type, domain: operator of the node.
        output: position of the output that the pattern reads.
        operands: slots of values, with the trees that compute them; `None` for any value.
    """

    __slots__ = ("domain", "op_type", "operands", "output")

    def __init__(self, op_type: str, domain: str, output: int, operands: Operands) -> None:
        self.op_type, self.domain, self.output, self.operands = op_type, domain, output, operands


Operands: TypeAlias = "tuple[tuple[str, NodeTree | None], ...]"

_TREES: Final[dict[tuple[str, str, int, Operands], NodeTree]] = {}
"""All trees, by content: the alternatives of a form have most in common."""


class PatternGroup(NamedTuple):
    """Patterns with the same operators, which are equal near the last node.

    Attributes:
        op_types: operators of all nodes of a pattern.
        near: operators of the last nodes, with which most nodes of a model differ.
        patterns: the patterns, each with the operators of its nodes.
    """

    op_types: frozenset[str]
    near: NodeTree
    patterns: tuple[tuple[Pattern, NodeTree], ...]


def grouped(patterns: Iterable[Pattern]) -> tuple[PatternGroup, ...]:
    """Return patterns in groups, in which comparisons with the nodes of a graph start."""
    groups: dict[tuple[frozenset[str], NodeTree], list[tuple[Pattern, NodeTree]]] = {}
    for pattern in patterns:
        tree = _tree_of(pattern)
        key = frozenset(each.op_type for each in pattern.nodes), _pruned(tree, NEAR_DEPTH)
        groups.setdefault(key, []).append((pattern, tree))
    return tuple(PatternGroup(*key, tuple(group)) for key, group in groups.items())


NEAR_DEPTH: Final = 4
"""Number of nodes on each path from the last node that groups compare: 650 patterns have about 50 of them."""


def _tree_of(pattern: Pattern) -> NodeTree:
    """Return the operators of the node that computes the first output, and of those before it."""
    operands: list[Operands] = []
    for node in pattern.nodes:  # in topological order
        slots = node.slots.items()
        trees = [
            (slot, _interned(pattern.nodes[ref.node], ref.output, operands[ref.node]))
            if isinstance(ref, NodeRef)
            else (slot, None)
            for slot, ref in slots
        ]
        operands.append(tuple(trees))
    last = pattern.outputs[0]
    return _interned(pattern.anchor, last.output, operands[last.node])


def _pruned(tree: NodeTree, depth: int) -> NodeTree:
    """Return a tree with at most a number of nodes on each path."""
    operands = tuple(
        (slot, None if each is None or depth == 1 else _pruned(each, depth - 1))
        for slot, each in tree.operands
    )
    return _interned(tree, tree.output, operands)


def _interned(node: PatternNode | NodeTree, output: int, operands: Operands) -> NodeTree:
    # Trees compare by identity, so that a key has no more than the operands of one node.
    key = node.op_type, node.domain, output, operands
    return _TREES.setdefault(key, NodeTree(*key))
