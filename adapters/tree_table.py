"""TreeEnsemble's lists: inner nodes apart from leaves, one vote a leaf."""

from __future__ import annotations

from typing import Any

from opshift.adapters.node import Tensor
from opshift.adapters.tree_structure import Forest, Vote


class TreeTable:
    """The trees of a forest, each as often as a leaf of it has votes: copy 0 takes every leaf's first vote.

    A leaf with fewer votes adds nothing to a sum (`pads_with_zero`), or repeats a vote, which changes no
    minimum or maximum.
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
                self._add(tree[0], copy)

    def attributes(self) -> dict[str, Any]:
        """What TreeEnsemble states of its trees."""
        forest, branches = self._forest, self._branches
        of = forest.element_type
        tracks = [forest.tracks[place] for place in branches] if forest.tracks else None
        return {
            "tree_roots": self.roots,
            "nodes_featureids": [forest.features[place] for place in branches],
            "nodes_modes": _tensor("uint8", [forest.modes[place] for place in branches]),
            "nodes_splits": _tensor(of, [forest.splits[place] for place in branches]),
            "nodes_truenodeids": self._ids[0],
            "nodes_falsenodeids": self._ids[1],
            "nodes_trueleafs": self._are_leaves[0],
            "nodes_falseleafs": self._are_leaves[1],
            **({"nodes_missing_value_tracks_true": tracks} if tracks else {}),
            "leaf_targetids": [vote.target for vote in self._leaves],
            "leaf_weights": _tensor(of, [vote.weight for vote in self._leaves]),
        }

    def _add(self, root: int, copy: int) -> None:
        children = self._forest.children
        self.roots.append(len(self._branches))
        waiting = [(root, -1, 0)] if children[root] else self._twice(root)
        while waiting:
            place, parent, side = waiting.pop()
            is_leaf = not children[place]
            index = self._leaf(place, copy) if is_leaf else self._branch(place)
            if parent >= 0:
                self._ids[side][parent] = index
                self._are_leaves[side][parent] = int(is_leaf)
            if not is_leaf:
                true, false = ((child, index, side) for side, child in enumerate(children[place]))
                # Leaves after branches: older onnxruntime takes a root whose sides share an index for a leaf.
                waiting += [false, true] if children[true[0]] else [true, false]

    def _twice(self, leaf: int) -> list[tuple[int, int, int]]:
        """A tree that is a leaf becomes a node with that leaf on both sides.

        The leaf is written twice: onnxruntime and onnx.reference read another leaf if both sides name one.
        """
        index = self._branch(leaf)
        return [(leaf, index, side) for side in (1, 0)]

    def _branch(self, place: int) -> int:
        self._branches.append(place)
        for column in (*self._ids, *self._are_leaves):
            column.append(0)
        return len(self._branches) - 1

    def _leaf(self, place: int, copy: int) -> int:
        votes = self._forest.votes[place]
        spare = Vote(votes[0].target, 0.0) if self._pads_with_zero else votes[0]
        self._leaves.append(votes[copy] if copy < len(votes) else spare)
        return len(self._leaves) - 1


def _tensor(element_type: str, values: list[Any]) -> Tensor:
    return Tensor(element_type, (len(values),), tuple(values))
