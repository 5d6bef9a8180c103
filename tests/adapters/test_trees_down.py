"""TreeEnsemble as TreeEnsembleRegressor, and lists of floats for tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.forests import ML, Forest, classifier, data, regressor, votes
from support.running import Array, assert_equal, build, opset_of, run

from opshift import ConversionRefused, convert_version

LEQ, EQ, MEMBER = 0, 4, 6


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("missing", [False, True])
def test_there_and_back(aggregate: str, missing: bool) -> None:
    """Trees that went up give the same again when they come down."""
    forest = Forest(votes([0, 1]), attributes={"aggregate_function": aggregate}, tracks=missing)
    feeds = data(missing=missing)
    model = regressor(forest, feeds, 2)
    lowered = convert_version(convert_version(model, {ML: 5}), {ML: 3})
    assert opset_of(lowered, ML) == 3
    assert "TreeEnsembleRegressor" in [node.op_type for node in lowered.graph.node]
    assert_equal(run(lowered, {"x": feeds}), run(model, {"x": feeds}))


def _sets(kind: type, **changes: Any) -> onnx.ModelProto:
    """A root that tests for members, whose false side tests for others, or compares."""
    attributes: dict[str, Any] = {
        "n_targets": 1,
        "tree_roots": [0],
        "nodes_featureids": [0, 1, 0],
        "nodes_modes": numpy_helper.from_array(np.array([MEMBER, LEQ, MEMBER], np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array([0, 0.5, 0], kind)),
        "nodes_truenodeids": [1, 0, 1],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 2, 3],
        "nodes_falseleafs": [0, 1, 1],
        "membership_values": numpy_helper.from_array(np.array([-2, 0, 2, np.nan, -1, 1, np.nan], kind)),
        "leaf_targetids": [0, 0, 0, 0],
        "leaf_weights": numpy_helper.from_array(np.array([1, 10, 100, 1000], kind)),
    }
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML, **{**attributes, **changes})
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return build([node], {"x": data(kind)}, {"y": element}, {ML: 5, "": 17})


def _expected(feeds: Array) -> Array:
    first, second = feeds[:, :1], feeds[:, 1:2]
    inner = np.where(second <= 0.5, 1, 100)
    return np.where(np.isin(first, [-2, 0, 2]), inner, np.where(np.isin(first, [-1, 1]), 10, 1000))


def test_sets_become_chains() -> None:
    feeds = data()
    moved = convert_version(_sets(np.float32), {ML: 3})
    assert_equal(run(moved, {"x": feeds}), [_expected(feeds).astype(np.float32)])


def test_double_results_are_approximate() -> None:
    feeds = data(np.float64)
    with pytest.raises(ConversionRefused) as caught:
        convert_version(_sets(np.float64), {ML: 3})
    (found,) = caught.value.refusals
    assert found.reason == "TreeEnsembleRegressor returns float, which rounds results of type double"
    moved = convert_version(_sets(np.float64), {ML: 3}, allow="approximate")
    assert_equal(run(moved, {"x": feeds}), [_expected(feeds).astype(np.float64)])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param(
            {"post_transform": 1},
            "post_transform SOFTMAX is ambiguous: onnxruntime swaps SOFTMAX and LOGISTIC",
            id="a transform that runtimes read differently",
        ),
        pytest.param(
            {"membership_values": numpy_helper.from_array(np.array([1, np.nan], np.float32))},
            "a BRANCH_MEMBER node has no members in membership_values",
            id="an empty set",
        ),
        pytest.param(
            {"nodes_truenodeids": [0, 0, 1]},
            f"the trees have more than {1 << 20} nodes or contain a cycle",
            id="a circle",
        ),
    ],
)
def test_what_has_no_such_form_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConversionRefused) as caught:
        convert_version(_sets(np.float32, **changes), {ML: 3})
    assert [each.reason for each in caught.value.refusals] == [reason]


def test_the_deprecated_operators_stay_as_they_are() -> None:
    feeds = data()
    model = classifier(Forest(votes([0, 1, 2])), feeds, ["a", "b", "c"], {ML: 5, "": 17})
    moved = convert_version(model, {ML: 3})
    assert moved.graph == model.graph


def test_tensors_become_lists() -> None:
    """Doubles that are floats go to the lists, others are refused."""
    feeds = data(np.float64)
    rounded = Forest(votes([0]), as_tensor=True)
    model = regressor(rounded, feeds, 1)
    for node in model.graph.node:
        for each in node.attribute:
            if each.name.endswith("_as_tensor"):
                values = np.array(each.t.double_data, np.float32).astype(np.float64)
                each.t.double_data[:] = values.tolist()
    lowered = convert_version(model, {ML: 1})
    assert not [each.name for each in lowered.graph.node[0].attribute if each.name.endswith("_as_tensor")]
    assert_equal(run(lowered, {"x": feeds}), run(model, {"x": feeds}))
    with pytest.raises(ConversionRefused, match="has numbers that float does not represent exactly"):
        convert_version(regressor(rounded, feeds, 1), {ML: 1})
