"""Scores of TreeEnsemble and of the nodes behind it are those of TreeEnsembleRegressor, in onnxruntime."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.forests import Forest, assert_kept, attribute, data, regressor, some, tree_by_tree, votes
from support.running import op_types

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("SUM", "AVERAGE", "MIN", "MAX")

REGRESSORS = [
    pytest.param(Forest(votes([0])), 1, id="one target"),
    pytest.param(Forest(votes([0]), trees=300), 1, id="many trees"),
    pytest.param(Forest(votes([0]), depth=0), 1, id="every tree is a leaf"),
    pytest.param(Forest(votes([0, 1, 2]), depth=0), 3, id="every tree is a leaf with several votes"),
    pytest.param(Forest(votes([0, 1, 2])), 3, id="several votes at each leaf"),
    pytest.param(Forest(tree_by_tree(3)), 3, id="a tree for each target"),
    pytest.param(Forest(some(3)), 3, id="leaves with unlike votes"),
    pytest.param(Forest(votes([2])), 4, id="targets without votes"),
]


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize(("forest", "targets"), REGRESSORS)
def test_aggregates(forest: Forest, targets: int, aggregate: str) -> None:
    """Each way to aggregate gives the same over leaves with one vote."""
    feeds = data()
    moved = assert_kept(
        regressor(replace(forest, attributes={"aggregate_function": aggregate}), feeds, targets), feeds
    )
    assert op_types(moved)[0] == "TreeEnsemble"
    assert moved.graph.node[0].name == "old"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize(
    ("forest", "targets"),
    [
        pytest.param(Forest(votes([0])), 1, id="one target"),
        pytest.param(Forest(votes([0, 1, 2])), 3, id="several votes at each leaf"),
        pytest.param(Forest(tree_by_tree(3)), 3, id="a tree for each target"),
    ],
)
def test_base_values(forest: Forest, targets: int, aggregate: str, kind: type) -> None:
    """They are added behind the aggregate."""
    feeds = data(kind)
    attributes = {"aggregate_function": aggregate, "base_values": [0.5, -3.0, 100.0][:targets]}
    moved = assert_kept(regressor(replace(forest, attributes=attributes), feeds, targets), feeds)
    assert "Add" in op_types(moved)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("base", [[], [0.1, 0.0, 0.2]], ids=["", "base values"])
def test_transforms_of_targets(transform: str, base: list[float], kind: type) -> None:
    """Every transform is spelled out behind TreeEnsemble."""
    feeds = data(kind)
    attributes = {"post_transform": transform, **({"base_values": base} if base else {})}
    forest = Forest(votes([0, 1, 2], 0.01, 0.09), attributes=attributes)
    moved = assert_kept(regressor(forest, feeds, 3), feeds)
    assert attribute(moved.graph.node[0], "post_transform") == 0


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transform_of_one_target(transform: str) -> None:
    """It stays with the operator, which onnxruntime heeds for PROBIT alone."""
    feeds = data()
    forest = Forest(votes([0], 0.01, 0.05), attributes={"post_transform": transform})
    assert_kept(regressor(forest, feeds, 1), feeds)


def test_zero_scores() -> None:
    """SOFTMAX_ZERO leaves out what is zero."""
    feeds = data()
    forest = Forest(tree_by_tree(3), trees=2, attributes={"post_transform": "SOFTMAX_ZERO"})
    assert_kept(regressor(forest, feeds, 3), feeds)
