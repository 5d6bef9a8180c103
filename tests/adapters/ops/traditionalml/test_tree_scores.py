"""Upgrades of TreeEnsembleRegressor keep the scores of onnxruntime."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.execution import op_types
from support.tree_ensembles import assert_keeps_outputs, attribute, data, regressor

from random_graphs.forests import Forest, one_target_per_tree, random_votes, votes

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("SUM", "AVERAGE", "MIN", "MAX")

REGRESSORS = [
    pytest.param(Forest(votes([0])), 1, id="one target"),
    pytest.param(Forest(votes([0]), trees=300), 1, id="many trees"),
    pytest.param(Forest(votes([0]), depth=0), 1, id="every tree is a leaf"),
    pytest.param(Forest(votes([0, 1, 2]), depth=0), 3, id="every tree is a leaf with several votes"),
    pytest.param(Forest(votes([0, 1, 2])), 3, id="several votes at each leaf"),
    pytest.param(Forest(one_target_per_tree(3)), 3, id="a tree for each target"),
    pytest.param(Forest(random_votes(3)), 3, id="leaves with different votes"),
    pytest.param(Forest(votes([2])), 4, id="targets without votes"),
]


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize(("forest", "targets"), REGRESSORS)
def test_keeps_aggregates(forest: Forest, targets: int, aggregate: str) -> None:
    """TreeEnsemble has one vote per leaf; every aggregate function keeps its result."""
    feeds = data()
    result = assert_keeps_outputs(
        regressor(replace(forest, attributes={"aggregate_function": aggregate}), feeds, targets), feeds
    )
    assert op_types(result)[0] == "TreeEnsemble"
    assert result.graph.node[0].name == "old"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize(
    ("forest", "targets"),
    [
        pytest.param(Forest(votes([0])), 1, id="one target"),
        pytest.param(Forest(votes([0, 1, 2])), 3, id="several votes at each leaf"),
        pytest.param(Forest(one_target_per_tree(3)), 3, id="a tree for each target"),
    ],
)
def test_adds_base_values_after_the_aggregate(
    forest: Forest, targets: int, aggregate: str, dtype: type
) -> None:
    feeds = data(dtype)
    attributes = {"aggregate_function": aggregate, "base_values": [0.5, -3.0, 100.0][:targets]}
    result = assert_keeps_outputs(regressor(replace(forest, attributes=attributes), feeds, targets), feeds)
    assert "Add" in op_types(result)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("base", [[], [0.1, 0.0, 0.2]], ids=["no base values", "base values"])
def test_expands_the_transform_of_several_targets(transform: str, base: list[float], dtype: type) -> None:
    """Nodes after TreeEnsemble compute the transform."""
    feeds = data(dtype)
    attributes = {"post_transform": transform, **({"base_values": base} if base else {})}
    forest = Forest(votes([0, 1, 2], 0.01, 0.09), attributes=attributes)
    result = assert_keeps_outputs(regressor(forest, feeds, 3), feeds)
    assert attribute(result.graph.node[0], "post_transform") == 0


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_keeps_the_transform_of_one_target(transform: str) -> None:
    """The transform stays an attribute; for a single target, onnxruntime applies PROBIT only."""
    feeds = data()
    forest = Forest(votes([0], 0.01, 0.05), attributes={"post_transform": transform})
    assert_keeps_outputs(regressor(forest, feeds, 1), feeds)


def test_softmax_zero_omits_zero_scores() -> None:
    feeds = data()
    forest = Forest(one_target_per_tree(3), trees=2, attributes={"post_transform": "SOFTMAX_ZERO"})
    assert_keeps_outputs(regressor(forest, feeds, 3), feeds)
