"""Groups of patterns by their operators, so that a few comparisons exclude most patterns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from opshift.converter.recognition.patterns import NodeRef, Pattern, PatternNode


class NodeTree:
    """Operators of a pattern node and of the nodes that compute its inputs; equal trees are one object.

    Attributes:
        op_type, domain: operator of the node.
        output: position of the output that the pattern reads.
        operands: slots of the node, each with the tree that computes its value; `None` for any value.
        depth: maximum number of nodes on a path.
    """

    __slots__ = ("depth", "domain", "op_type", "operands", "output")

    def __init__(self, op_type: str, domain: str, output: int, operands: Operands) -> None:
        self.op_type, self.domain, self.output, self.operands = op_type, domain, output, operands
        self.depth: int = 1 + max((each.depth for _, each in operands if each is not None), default=0)


Operands: TypeAlias = "tuple[tuple[str, NodeTree | None], ...]"

_TREES: Final[dict[tuple[str, str, int, Operands], NodeTree]] = {}
"""All trees, by content; shared, because the alternatives of a form have most subtrees in common."""


class PatternGroup(NamedTuple):
    """Patterns with the same set of operators, and with equal trees of operators near the last node.

    Attributes:
        op_types: operators of all nodes of a pattern.
        near: tree of the last node, limited to `NEAR_DEPTH`: comparing it excludes most nodes of a model.
        patterns: the patterns, each with its complete tree.
    """

    op_types: frozenset[str]
    near: NodeTree
    patterns: tuple[tuple[Pattern, NodeTree], ...]


def grouped(patterns: Iterable[Pattern]) -> tuple[PatternGroup, ...]:
    """Group patterns by the set of their operators and by the tree near their last node."""
    groups: dict[tuple[frozenset[str], NodeTree], list[tuple[Pattern, NodeTree]]] = {}
    for pattern in patterns:
        tree = _tree_of(pattern)
        key = frozenset(each.op_type for each in pattern.nodes), pruned_tree(tree, NEAR_DEPTH)
        groups.setdefault(key, []).append((pattern, tree))
    return tuple(PatternGroup(op_types, near, tuple(group)) for (op_types, near), group in groups.items())


NEAR_DEPTH: Final = 4
"""Maximum number of nodes on each path of `PatternGroup.near`, which many patterns share."""


def _tree_of(pattern: Pattern) -> NodeTree:
    """Return the tree of the node that computes the first output."""
    operands: list[Operands] = []
    for node in pattern.nodes:  # `nodes` are in topological order
        slots = node.slots.items()
        trees = [
            (slot, _shared_tree(pattern.nodes[ref.node], ref.output, operands[ref.node]))
            if isinstance(ref, NodeRef)
            else (slot, None)
            for slot, ref in slots
        ]
        operands.append(tuple(trees))
    last = pattern.outputs[0]
    return _shared_tree(pattern.anchor, last.output, operands[last.node])


def pruned_tree(tree: NodeTree, depth: int) -> NodeTree:
    """Return a tree limited to `depth` nodes on each path."""
    if tree.depth <= depth:
        return tree
    operands = tuple(
        (slot, None if each is None or depth == 1 else pruned_tree(each, depth - 1))
        for slot, each in tree.operands
    )
    return _shared_tree(tree, tree.output, operands)


def _shared_tree(node: PatternNode | NodeTree, output: int, operands: Operands) -> NodeTree:
    # Trees are compared by identity, so hashing a key does not visit whole trees.
    key = node.op_type, node.domain, output, operands
    return _TREES.setdefault(key, NodeTree(*key))
