"""Downgrades of TreeEnsemble to TreeEnsembleRegressor, and of tensor attributes to lists of floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.execution import Array, assert_equal, build, opset_of, run
from support.tree_ensembles import ML, classifier, data, regressor

from opshift import ConversionRefused, convert_version
from opshift.adapters.ops.traditionalml.tree_ensemble import ERROR
from random_graphs.forests import Forest, votes

LEQ, EQ, MEMBER = 0, 4, 6


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("missing", [False, True])
def test_round_trip_keeps_results(aggregate: str, missing: bool) -> None:
    forest = Forest(votes([0, 1]), attributes={"aggregate_function": aggregate}, tracks=missing)
    feeds = data(missing=missing)
    model = regressor(forest, feeds, 2)
    downgraded = convert_version(convert_version(model, {ML: 5}), {ML: 3})
    assert opset_of(downgraded, ML) == 3
    assert "TreeEnsembleRegressor" in [node.op_type for node in downgraded.graph.node]
    assert_equal(run(downgraded, {"x": feeds}), run(model, {"x": feeds}))


def _membership_model(dtype: type, **changes: Any) -> onnx.ModelProto:
    """Return a tree whose root tests set membership; its children are a comparison and another set."""
    attributes: dict[str, Any] = {
        "n_targets": 1,
        "tree_roots": [0],
        "nodes_featureids": [0, 1, 0],
        "nodes_modes": numpy_helper.from_array(np.array([MEMBER, LEQ, MEMBER], np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array([0, 0.5, 0], dtype)),
        "nodes_truenodeids": [1, 0, 1],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 2, 3],
        "nodes_falseleafs": [0, 1, 1],
        "membership_values": numpy_helper.from_array(np.array([-2, 0, 2, np.nan, -1, 1, np.nan], dtype)),
        "leaf_targetids": [0, 0, 0, 0],
        "leaf_weights": numpy_helper.from_array(np.array([1, 10, 100, 1000], dtype)),
    }
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML, **{**attributes, **changes})
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return build([node], {"x": data(dtype)}, {"y": element_type}, {ML: 5, "": 17})


def _expected(feeds: Array) -> Array:
    first, second = feeds[:, :1], feeds[:, 1:2]
    inner = np.where(second <= 0.5, 1, 100)
    return np.where(np.isin(first, [-2, 0, 2]), inner, np.where(np.isin(first, [-1, 1]), 10, 1000))


def test_rewrites_sets_to_chains_of_comparisons() -> None:
    feeds = data()
    result = convert_version(_membership_model(np.float32), {ML: 3})
    assert_equal(run(result, {"x": feeds}), [_expected(feeds).astype(np.float32)])


def test_refuses_double_results_unless_approximate_is_allowed() -> None:
    feeds = data(np.float64)
    with pytest.raises(ConversionRefused) as caught:
        convert_version(_membership_model(np.float64), {ML: 3})
    (refused,) = caught.value.refusals
    assert refused.reason == (
        f"TreeEnsembleRegressor returns float, which rounds results of type double; the error is {ERROR}"
    )
    result = convert_version(_membership_model(np.float64), {ML: 3}, allow="approximate")
    assert_equal(run(result, {"x": feeds}), [_expected(feeds).astype(np.float64)])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param(
            {"post_transform": 1},
            "post_transform SOFTMAX is ambiguous: onnxruntime swaps SOFTMAX and LOGISTIC",
            id="ambiguous transform",
        ),
        pytest.param(
            {"membership_values": numpy_helper.from_array(np.array([1, np.nan], np.float32))},
            "a BRANCH_MEMBER node has no members in membership_values",
            id="empty set",
        ),
        pytest.param(
            {"nodes_truenodeids": [0, 0, 1]},
            f"the trees have more than {1 << 20} nodes or contain a cycle",
            id="cycle",
        ),
    ],
)
def test_refuses_trees_without_an_older_form(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConversionRefused) as caught:
        convert_version(_membership_model(np.float32, **changes), {ML: 3})
    assert [each.reason for each in caught.value.refusals] == [reason]


def test_keeps_deprecated_operators() -> None:
    feeds = data()
    model = classifier(Forest(votes([0, 1, 2])), feeds, ["a", "b", "c"], {ML: 5, "": 17})
    result = convert_version(model, {ML: 3})
    assert result.graph == model.graph


def test_moves_tensors_to_lists() -> None:
    """Doubles that float represents exactly move to lists; other doubles are refused."""
    feeds = data(np.float64)
    forest = Forest(votes([0]), as_tensor=True)
    model = regressor(forest, feeds, 1)
    for node in model.graph.node:
        for each in node.attribute:
            if each.name.endswith("_as_tensor"):
                values = np.array(each.t.double_data, np.float32).astype(np.float64)
                each.t.double_data[:] = values.tolist()
    downgraded = convert_version(model, {ML: 1})
    assert not [each.name for each in downgraded.graph.node[0].attribute if each.name.endswith("_as_tensor")]
    assert_equal(run(downgraded, {"x": feeds}), run(model, {"x": feeds}))
    with pytest.raises(ConversionRefused, match="has numbers that float does not represent exactly"):
        convert_version(regressor(forest, feeds, 1), {ML: 1})


@pytest.mark.full
@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_results_of_other_types_have_a_bounded_error(dtype: type) -> None:
    random, trees = np.random.default_rng(0), 20
    splits: Array = random.uniform(-2, 2, trees).astype(dtype)
    weights: Array = (random.choice([-1, 1], (trees, 2)) * 2 ** random.uniform(-3, 3, (trees, 2))).astype(
        dtype
    )
    node = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain=ML, n_targets=1, aggregate_function=1, post_transform=0,
        tree_roots=range(trees), nodes_featureids=[0] * trees,
        nodes_modes=numpy_helper.from_array(np.zeros(trees, np.uint8)),
        nodes_splits=numpy_helper.from_array(splits),
        nodes_truenodeids=range(0, 2 * trees, 2), nodes_trueleafs=[1] * trees,
        nodes_falsenodeids=range(1, 2 * trees, 2), nodes_falseleafs=[1] * trees,
        leaf_targetids=[0] * 2 * trees, leaf_weights=numpy_helper.from_array(weights.reshape(-1)),
    )  # fmt: skip
    rows: Array = random.uniform(-3, 3, (1_000_000, 1)).astype(dtype)
    rows[:4, 0] = [np.inf, -np.inf, np.nan, splits[0]]
    model = build(
        [node], {"x": rows}, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}, {ML: 5, "": 17}
    )
    found = run(convert_version(model, {ML: 3}, allow="approximate"), {"x": rows})[0].astype(np.longdouble)
    true, false = weights.T.astype(np.longdouble)
    selected = np.where(rows <= splits, true, false)
    exact = selected.sum(1, keepdims=True)
    bound = (trees + 1) * 2.0**-24 * abs(selected).sum(1, keepdims=True)
    if dtype is np.float16:
        bound += np.spacing(abs(exact.astype(dtype)))
    assert np.all(abs(found - exact) <= bound)
