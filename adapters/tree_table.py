"""Attributes of TreeEnsemble: branches apart from leaves, with one vote for each leaf."""

from __future__ import annotations

from typing import Any

from opshift.adapters.node import Tensor
from opshift.adapters.tree_structure import Forest, Vote


class TreeTable:
    """Trees of a forest; a tree is written once for each vote of its leaf with the most votes.

    Copy 0 has the first vote of each leaf. In further copies, a leaf with fewer votes has a vote of 0
    (`pads_with_zero`, for sums) or repeats its first vote, which changes no minimum or maximum.
    """

    def __init__(self, forest: Forest, pads_with_zero: bool) -> None:
        self._forest = forest
        self._pads_with_zero = pads_with_zero
        self.roots: list[int] = []
        self._branches: list[int] = []
        self._leaves: list[Vote] = []
        self._ids: tuple[list[int], list[int]] = ([], [])
        self._are_leaves: tuple[list[int], list[int]] = ([], [])
        for tree in forest.trees:
            for copy in range(max(map(len, forest.leaves(tree)))):
                self._add_tree(tree[0], copy)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of TreeEnsemble that describe its trees."""
        forest, branches = self._forest, self._branches
        element_type = forest.element_type
        tracks = [forest.tracks[position] for position in branches] if forest.tracks else None
        return {
            "tree_roots": self.roots,
            "nodes_featureids": [forest.features[position] for position in branches],
            "nodes_modes": _tensor("uint8", [forest.modes[position] for position in branches]),
            "nodes_splits": _tensor(element_type, [forest.splits[position] for position in branches]),
            "nodes_truenodeids": self._ids[0],
            "nodes_falsenodeids": self._ids[1],
            "nodes_trueleafs": self._are_leaves[0],
            "nodes_falseleafs": self._are_leaves[1],
            **({"nodes_missing_value_tracks_true": tracks} if tracks else {}),
            "leaf_targetids": [vote.target for vote in self._leaves],
            "leaf_weights": _tensor(element_type, [vote.weight for vote in self._leaves]),
        }

    def _add_tree(self, root: int, copy: int) -> None:
        children = self._forest.children
        self.roots.append(len(self._branches))
        pending = [(root, -1, 0)] if children[root] else self._branch_with_equal_sides(root)
        while pending:
            position, parent, side = pending.pop()
            is_leaf = not children[position]
            index = self._add_leaf(position, copy) if is_leaf else self._add_branch(position)
            if parent >= 0:
                self._ids[side][parent] = index
                self._are_leaves[side][parent] = int(is_leaf)
            if not is_leaf:
                true, false = ((child, index, side) for side, child in enumerate(children[position]))
                # Branches first: older onnxruntime treats a root with equal indices on both sides as a leaf.
                pending += [false, true] if children[true[0]] else [true, false]

    def _branch_with_equal_sides(self, leaf: int) -> list[tuple[int, int, int]]:
        """Write a tree that is a single leaf as a branch with that leaf on both sides.

        The leaf is written twice, because onnxruntime and onnx.reference read a different leaf if both sides
        refer to one.
        """
        index = self._add_branch(leaf)
        return [(leaf, index, side) for side in (1, 0)]

    def _add_branch(self, position: int) -> int:
        self._branches.append(position)
        for column in (*self._ids, *self._are_leaves):
            column.append(0)
        return len(self._branches) - 1

    def _add_leaf(self, position: int, copy: int) -> int:
        votes = self._forest.votes[position]
        padding = Vote(votes[0].target, 0.0) if self._pads_with_zero else votes[0]
        self._leaves.append(votes[copy] if copy < len(votes) else padding)
        return len(self._leaves) - 1


def _tensor(element_type: str, values: list[Any]) -> Tensor:
    return Tensor(element_type, (len(values),), tuple(values))
