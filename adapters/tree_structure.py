"""Trees as TreeEnsembleRegressor and TreeEnsembleClassifier mean them: columns of nodes, votes at the leaves.

Until 5 one list held all nodes by tree and node id, and a leaf had any number of votes: targets with weights.
From 5 on inner nodes and leaves are listed apart, children are places in these lists, a leaf has one vote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LEAF = b"LEAF"
MODES = {
    b"BRANCH_LEQ": 0, b"BRANCH_LT": 1, b"BRANCH_GTE": 2, b"BRANCH_GT": 3, b"BRANCH_EQ": 4, b"BRANCH_NEQ": 5,
    LEAF: 0,
}  # fmt: skip
"""The comparisons by number; a leaf that stands for a whole tree compares anything with anything."""


class Vote(NamedTuple):
    """What a leaf adds to one target."""

    target: int
    weight: float


@dataclass(frozen=True)
class Forest:
    """Columns with an entry for every node; children are places in them, a leaf's are empty."""

    element_type: str
    """`double` if anything that it is compared with or adds up is, else `float`."""
    targets: int
    base: tuple[float, ...]
    """What is added to each target; empty if the model does not say."""
    modes: Sequence[int]
    features: Sequence[int]
    splits: Sequence[float]
    tracks: Sequence[int]
    """1 where NaN goes to the true side; empty if the model does not say."""
    children: Sequence[tuple[int, ...]]
    """The true side, the false side."""
    votes: Sequence[list[Vote]]
    trees: Sequence[list[int]]
    """The places of each tree's nodes, its root first."""

    def leaves(self, tree: list[int]) -> Iterator[list[Vote]]:
        """The votes of each leaf of a tree."""
        return (self.votes[place] for place in tree if not self.children[place])

    def all_votes(self) -> Iterator[Vote]:
        """Every vote of every leaf."""
        return (vote for tree in self.trees for leaf in self.leaves(tree) for vote in leaf)

    def sure_targets(self) -> set[int]:
        """The targets that every row has a vote for."""
        found: set[int] = set()
        for tree in self.trees:
            found |= set.intersection(*({vote.target for vote in leaf} for leaf in self.leaves(tree)))
        return found
