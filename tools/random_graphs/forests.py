"""Random forests as the attributes of TreeEnsembleRegressor and TreeEnsembleClassifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ALL_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
FEATURES = 4
Votes = Callable[[np.random.Generator, int], list[tuple[int, float]]]


def votes(targets: Sequence[int], low: float = -1.0, high: float = 1.0) -> Votes:
    """Return votes with a weight for each target at every leaf."""
    return lambda random, tree: [(target, float(random.uniform(low, high))) for target in targets]


def one_target_per_tree(targets: int, low: float = -1.0, high: float = 1.0) -> Votes:
    """Return votes for one target per tree, in turn."""
    return lambda random, tree: [(tree % targets, float(random.uniform(low, high)))]


def random_votes(targets: int, low: float = -1.0, high: float = 1.0) -> Votes:
    """Return votes for random targets at every leaf; a target may have two weights."""

    def leaf_votes(random: np.random.Generator, tree: int) -> list[tuple[int, float]]:
        count = int(random.integers(1, targets + 2))
        return [(int(random.integers(targets)), float(random.uniform(low, high))) for _ in range(count)]

    return leaf_votes


@dataclass(frozen=True)
class Forest:
    """Parameters of a random forest."""

    votes: Votes
    trees: int = 7
    depth: int = 4
    modes: Sequence[str] = ("BRANCH_LEQ",)
    tracks: bool = False
    as_tensor: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1

    def columns(self, kind: str) -> dict[str, Any]:
        """Return the attributes of the trees; `kind` is the prefix of the attributes of leaves."""
        random = np.random.default_rng(self.seed)
        nodes: list[list[Any]] = []
        leaf_rows: list[tuple[Any, ...]] = []
        for tree in range(self.trees):
            self._add_subtree(random, tree, self.depth, nodes, leaf_rows, start=len(nodes))
        names = ["treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids"]
        found = {f"nodes_{name}": [row[position] for row in nodes] for position, name in enumerate(names)}
        names = ["treeids", "nodeids", "ids", "weights"]
        found |= {
            f"{kind}_{name}": [row[position] for row in leaf_rows] for position, name in enumerate(names)
        }
        if self.tracks:
            found["nodes_missing_value_tracks_true"] = random.integers(0, 2, len(nodes)).tolist()
        return found

    def _add_subtree(self, random: Any, tree: int, depth: int, nodes: Any, leaf_rows: Any, start: int) -> int:
        node_id, position = len(nodes) - start, len(nodes)
        if depth == 0 or (depth < self.depth and random.random() < 0.25):
            nodes.append([tree, node_id, 0, "LEAF", 0.0, 0, 0])
            leaf_rows += [(tree, node_id, *vote) for vote in self.votes(random, tree)]
            return node_id
        mode = self.modes[random.integers(len(self.modes))]
        threshold = float(random.integers(-2, 3)) if mode in ("BRANCH_EQ", "BRANCH_NEQ") else random.normal()
        nodes.append([tree, node_id, int(random.integers(FEATURES)), mode, threshold, 0, 0])
        nodes[position][5] = self._add_subtree(random, tree, depth - 1, nodes, leaf_rows, start)
        nodes[position][6] = self._add_subtree(random, tree, depth - 1, nodes, leaf_rows, start)
        return node_id
