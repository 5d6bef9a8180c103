"""Upgrades of TreeEnsembleRegressor keep the scores of onnxruntime."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.execution import op_types
from support.tree_ensembles import ML, assert_keeps_outputs, attribute, classifier, data, regressor

from opshift import ConversionRefused, convert_version
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


def test_keeps_large_scores() -> None:
    """Only one leaf of a tree counts: the scores are finite, although the sum of all weights is not."""
    feeds = data()
    forest = Forest(votes([0, 1, 2], -1e38, 1e38), trees=1, attributes={"post_transform": "SOFTMAX_ZERO"})
    assert_keeps_outputs(regressor(forest, feeds, 3), feeds)


@pytest.mark.parametrize("transform", ["SOFTMAX_ZERO", "PROBIT"])
@pytest.mark.parametrize(
    ("weight", "trees", "base"),
    [
        pytest.param(np.inf, 1, [], id="infinite weights"),
        pytest.param(-np.inf, 1, [], id="negative infinite weights"),
        pytest.param(np.nan, 1, [], id="weights that are NaN"),
        pytest.param(-3e38, 2, [], id="sum of weights"),
        pytest.param(1.0, 1, [0.0, np.inf, 0.0], id="infinite base value"),
        pytest.param(1.0, 1, [0.0, np.nan, 0.0], id="base value that is NaN"),
        pytest.param(2e38, 1, [0.0, 2e38, 0.0], id="sum of a weight and a base value"),
    ],
)
def test_refuses_scores_that_may_be_infinite(
    transform: str, weight: float, trees: int, base: list[float]
) -> None:
    """A matrix product, which applies these transforms, would make all scores of a row NaN."""
    attributes = {"post_transform": transform, **({"base_values": base} if base else {})}
    forest = Forest(lambda random, tree: [(0, 1.0), (1, weight), (2, 1.0)], trees, attributes=attributes)
    for model in (regressor(forest, data(), 3), classifier(forest, data(), [3, 4, 5])):
        with pytest.raises(ConversionRefused, match="may be infinite or NaN in float"):
            convert_version(model, {ML: 5})


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_keeps_infinite_scores_of_other_transforms(transform: str) -> None:
    feeds = data()
    attributes = {"post_transform": transform}
    forest = Forest(lambda random, tree: [(0, 1.0), (1, -np.inf), (2, 2.0)], 1, attributes=attributes)
    assert_keeps_outputs(regressor(forest, feeds, 3), feeds)


def test_keeps_infinite_scores_of_one_target() -> None:
    feeds = data()
    forest = Forest(
        lambda random, tree: [(0, float(random.choice([-np.inf, 0.25])))],
        1,
        attributes={"post_transform": "PROBIT"},
    )
    assert_keeps_outputs(regressor(forest, feeds, 1), feeds)
