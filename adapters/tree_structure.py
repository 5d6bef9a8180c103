"""Trees of TreeEnsembleRegressor and TreeEnsembleClassifier, with columns for nodes and votes at leaves.

Before version 5, one list has all nodes by tree id and node id, and a leaf has any number of votes: targets
with weights. Since version 5, branches and leaves are separate lists, children are positions in these lists,
and a leaf has one vote.
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
"""Numbers of the comparisons. A leaf that is a whole tree may have any, because both sides are equal."""


class Vote(NamedTuple):
    """The weight that a leaf adds to one target."""

    target: int
    weight: float


@dataclass(frozen=True)
class Forest:
    """Columns with an entry for each node. Children are positions in the columns; a leaf has none."""

    element_type: str
    """`double` if the input or any number is double, else `float`."""
    targets: int
    base: tuple[float, ...]
    """Base value of each target; empty if the node has none."""
    modes: Sequence[int]
    features: Sequence[int]
    splits: Sequence[float]
    tracks: Sequence[int]
    """1 where NaN goes to the true side; empty if it never does."""
    children: Sequence[tuple[int, ...]]
    """The child on the true side and the one on the false side."""
    votes: Sequence[list[Vote]]
    trees: Sequence[list[int]]
    """Positions of the nodes of each tree, the root first."""

    def leaves(self, tree: list[int]) -> Iterator[list[Vote]]:
        """Yield the votes of each leaf of a tree."""
        return (self.votes[position] for position in tree if not self.children[position])

    def all_votes(self) -> Iterator[Vote]:
        """Yield the votes of all leaves."""
        return (vote for tree in self.trees for leaf in self.leaves(tree) for vote in leaf)

    def sure_targets(self) -> set[int]:
        """Return the targets that have a vote in every row."""
        found: set[int] = set()
        for tree in self.trees:
            found |= set.intersection(*({vote.target for vote in leaf} for leaf in self.leaves(tree)))
        return found
