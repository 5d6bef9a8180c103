"""Upgrades of TreeEnsembleRegressor and TreeEnsembleClassifier keep the results of onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.execution import assert_equal, build, op_types, opset_of, run, run_reference
from support.tree_ensembles import (
    ML,
    assert_keeps_outputs,
    attribute,
    classifier,
    data,
    forest_node,
    regressor,
)

from opshift import ConversionRefused, convert_version
from random_graphs.forests import ALL_MODES, Forest, Votes, one_target_per_tree, random_votes, votes

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@pytest.mark.parametrize(
    "tracks", [False, True], ids=["no missing values", "some nodes send NaN to the true side"]
)
@pytest.mark.parametrize("modes", [*((mode,) for mode in ALL_MODES), ALL_MODES], ids="+".join)
def test_keeps_comparison_modes(modes: tuple[str, ...], tracks: bool) -> None:
    """Cover each comparison alone and all mixed, with and without missing values."""
    for dtype in (np.float32, np.float64):
        feeds = data(dtype, missing=tracks)
        assert_keeps_outputs(regressor(Forest(votes([0, 1]), modes=modes, tracks=tracks), feeds, 2), feeds)


@pytest.mark.parametrize(
    "forest", [Forest(votes([0, 1])), Forest(votes([0, 1]), as_tensor=True)], ids=["lists", "tensors"]
)
def test_keeps_double_thresholds(forest: Forest) -> None:
    """Double inputs are compared in double, including thresholds that float cannot represent."""
    forest = replace(forest, attributes={"base_values": [1e-9, 0.3]})
    feeds = data(np.float64)
    result = assert_keeps_outputs(regressor(forest, feeds, 2), feeds)
    assert attribute(result.graph.node[0], "nodes_splits").data_type == TensorProto.DOUBLE


def test_casts_float_input_of_double_trees() -> None:
    """The runtime does not load the original model; casting the input to double is exact."""
    feeds = data()
    forest = Forest(votes([0, 1]), as_tensor=True)
    result = convert_version(regressor(forest, feeds, 2), {ML: 5})
    assert op_types(result) == ["Cast", "TreeEnsemble", "Cast"]
    expected = run(regressor(forest, feeds.astype(np.float64), 2), {"x": feeds.astype(np.float64)})
    assert_equal(run(result, {"x": feeds}), expected)


@pytest.mark.parametrize("base", [[], [0.25, -0.5, 0.125]], ids=["no base values", "base values"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("labels", [[10, 5, 7], ["red", "", "blue"]], ids=["integers", "strings"])
@pytest.mark.parametrize(
    "forest",
    [
        pytest.param(Forest(votes([0, 1, 2])), id="several votes at each leaf"),
        pytest.param(Forest(one_target_per_tree(3)), id="a tree for each class"),
        pytest.param(Forest(votes([0, 1, 2], 0.01, 0.04)), id="positive votes"),
        pytest.param(Forest(random_votes(3, 0.01, 0.04)), id="leaves with different positive votes"),
    ],
)
def test_keeps_classes(forest: Forest, labels: list[Any], transform: str, base: list[float]) -> None:
    """The label belongs to the highest score before the transform."""
    attributes = {"post_transform": transform, **({"base_values": base} if base else {})}
    for dtype in (np.float32, np.float64):
        feeds = data(dtype)
        assert_keeps_outputs(classifier(replace(forest, attributes=attributes), feeds, labels), feeds)


@pytest.mark.parametrize("base", [[], [0.3]], ids=["no base value", "base value"])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("labels", [[10, 5], ["no", "yes"]], ids=["integers", "strings"])
@pytest.mark.parametrize(
    "forest",
    [
        pytest.param(Forest(votes([0])), id="votes of both signs"),
        pytest.param(Forest(votes([0], 0.0, 0.12)), id="positive votes"),
        pytest.param(Forest(votes([0]), depth=0), id="every tree is a leaf"),
        pytest.param(Forest(random_votes(1)), id="several votes at a leaf"),
    ],
)
def test_keeps_one_score_for_two_classes(
    forest: Forest, labels: list[Any], transform: str, base: list[float]
) -> None:
    """The score of one class determines the score of the other."""
    attributes = {"post_transform": transform, **({"base_values": base} if base else {})}
    for dtype in (np.float32, np.float64, np.int64, np.int32):
        feeds = data(dtype)
        assert_keeps_outputs(classifier(replace(forest, attributes=attributes), feeds, labels), feeds)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_casts_integer_inputs_to_float(dtype: type) -> None:
    """The runtime compares integers as float, too."""
    feeds = data(dtype)
    result = assert_keeps_outputs(
        classifier(Forest(votes([0, 1, 2]), modes=ALL_MODES), feeds, ["a", "b", "c"]), feeds
    )
    assert op_types(result)[0] == ("Cast" if np.issubdtype(dtype, np.integer) else "TreeEnsemble")


@pytest.mark.parametrize("unused", [0, 1], ids=["scores only", "label only"])
def test_omits_unused_outputs(unused: int) -> None:
    feeds = data()
    for labels, leaf_votes in (([4, 5], votes([0])), ([4, 5, 6], votes([0, 1, 2]))):
        model = classifier(Forest(leaf_votes, attributes={"post_transform": "LOGISTIC"}), feeds, labels)
        del model.graph.output[unused]
        result = assert_keeps_outputs(model, feeds)
        assert ("LabelEncoder" in op_types(result)) == (unused == 1)
        assert ("Sigmoid" in op_types(result)) == (unused == 0)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    "leaf_votes", [votes([0, 1], 0.02, 0.1), votes([1], 0.02, 0.1)], ids=["both", "second"]
)
def test_keeps_scores_of_two_classes(leaf_votes: Votes, transform: str) -> None:
    """Two scores are supported without the label, on which onnxruntime and the definition differ."""
    feeds = data()
    model = classifier(Forest(leaf_votes, attributes={"post_transform": transform}), feeds, [0, 1])
    del model.graph.output[0]
    assert_keeps_outputs(model, feeds)


@pytest.mark.parametrize("opset", [None, 7, 11, 13, 17, 26], ids=lambda opset: f"ai.onnx {opset}")
def test_emits_nodes_of_the_imported_opset(opset: int | None) -> None:
    """A model that imports ai.onnx keeps its opset; any other model gets an import."""
    feeds = data()
    opsets = {ML: 3, **({"": opset} if opset else {})}
    forest = Forest(
        votes([0, 1, 2]), attributes={"post_transform": "SOFTMAX", "base_values": [0.1, 0.2, 0.3]}
    )
    result = assert_keeps_outputs(classifier(forest, feeds, [0, 1, 2], opsets), feeds)
    assert opset is None or opset_of(result) == opset


def test_adds_no_unused_import() -> None:
    """TreeEnsemble alone needs no operator of ai.onnx."""
    feeds = data()
    result = assert_keeps_outputs(regressor(Forest(votes([0])), feeds, 1, {ML: 3}), feeds)
    assert [each.domain for each in result.opset_import] == [ML]


@pytest.mark.parametrize("source", [1, 2, 3, 4])
def test_upgrades_older_versions(source: int) -> None:
    """TreeEnsembleClassifier-1 and -3 are rewritten in the same way; a consuming ZipMap stays."""
    feeds = data()
    node = forest_node("TreeEnsembleClassifier", Forest(votes([0])), ["y", "z"], classlabels_int64s=[3, 4])
    zipped = helper.make_node("ZipMap", ["z"], ["maps"], domain=ML, classlabels_int64s=[3, 4])
    model = build([node, zipped], {"x": feeds}, {"y": TensorProto.INT64}, {ML: source, "": 15})
    map_type = helper.make_map_type_proto(
        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    model.graph.output.append(helper.make_value_info("maps", helper.make_sequence_type_proto(map_type)))
    result = convert_version(model, {ML: 5})
    (old_label, old_maps), (label, maps) = run(model, {"x": feeds}), run(result, {"x": feeds})
    assert label.tolist() == old_label.tolist()
    for old, new in zip(old_maps, maps, strict=True):
        assert new == pytest.approx(old, rel=1e-5, abs=1e-5)


def test_reference_evaluator_agrees() -> None:
    """The reference evaluator reads trees as onnxruntime does."""
    feeds = data()
    forest = Forest(votes([0, 1, 2]), modes=ALL_MODES, attributes={"aggregate_function": "AVERAGE"})
    for each in (forest, replace(forest, depth=0), replace(forest, depth=1)):
        model = regressor(each, feeds, 3)
        assert_equal(run_reference(convert_version(model, {ML: 5}), {"x": feeds}), run(model, {"x": feeds}))


@pytest.mark.parametrize(
    ("leaf_votes", "targets", "attributes", "reason"),
    [
        pytest.param(votes([0, 0]), 1, {}, "several weights", id="two votes for the only target"),
        pytest.param(
            votes([0]), 1, {"aggregate_function": "MEDIAN"}, "aggregate_function", id="an unknown aggregate"
        ),
        pytest.param(votes([0]), 1, {"post_transform": "TANH"}, "is 'TANH'", id="an unknown transform"),
        pytest.param(votes([0]), 1, {"base_values": [1.0, 2.0]}, "2 base_values", id="too many base values"),
        pytest.param(
            votes([0]),
            1,
            {"base_values": [1.0], "post_transform": "LOGISTIC"},
            "LOGISTIC after base_values",
            id="base values, then LOGISTIC of one target",
        ),
        pytest.param(
            random_votes(2),
            2,
            {"base_values": [1.0, 2.0]},
            "omits the base value",
            id="a target without a vote",
        ),
    ],
)
def test_refuses_ambiguous_regressors(
    leaf_votes: Votes, targets: int, attributes: dict[str, Any], reason: str
) -> None:
    """These nodes are undefined, or onnxruntime and the definition disagree about them."""
    with pytest.raises(ConversionRefused, match=reason):
        convert_version(regressor(Forest(leaf_votes, attributes=attributes), data(), targets), {ML: 5})


@pytest.mark.parametrize(
    ("leaf_votes", "labels", "attributes", "reason"),
    [
        pytest.param(votes([0]), [3], {}, "a single class label", id="one class"),
        pytest.param(votes([0, 1]), [3, 4], {}, "for two classes", id="votes for both of two classes"),
        pytest.param(votes([1]), [3, 4], {}, "for two classes", id="votes for the second of two classes"),
        pytest.param(
            votes([0]),
            [3, 4],
            {"base_values": [1.0, 2.0]},
            "2 base_values",
            id="two base values for one score",
        ),
        pytest.param(
            votes([0]), [3, 4], {"post_transform": "SOFTMAX"}, "SOFTMAX of one", id="SOFTMAX of one score"
        ),
        pytest.param(
            votes([0]), [3, 4], {"post_transform": "PROBIT"}, "PROBIT of one", id="PROBIT of one score"
        ),
        pytest.param(
            random_votes(3),
            [3, 4, 5],
            {},
            "never chooses",
            id="class that may lack votes among negative scores",
        ),
        pytest.param(
            votes([0, 1]), [3, 4, 5], {}, "never chooses", id="class without votes among negative scores"
        ),
        pytest.param(
            votes([0, 1, 2]), [3, 4, 5], {"base_values": [1.0]}, "1 base_values", id="too few base values"
        ),
        pytest.param(
            votes([0, 1, 2]),
            [3, 4, 5],
            {"classlabels_strings": ["a", "b", "c"]},
            "must be set",
            id="labels of both kinds",
        ),
    ],
)
def test_refuses_ambiguous_classifiers(
    leaf_votes: Votes, labels: list[int], attributes: dict[str, Any], reason: str
) -> None:
    """These nodes are undefined, or onnxruntime and the definition disagree about them."""
    with pytest.raises(ConversionRefused, match=reason):
        convert_version(classifier(Forest(leaf_votes, attributes=attributes), data(), labels), {ML: 5})


def test_refuses_scores_that_differ_from_the_definition() -> None:
    """If the second of two classes has votes in some rows only, onnxruntime invents its score."""
    model = classifier(Forest(random_votes(2, 0.1, 0.2)), data(), [0, 1])
    del model.graph.output[0]
    with pytest.raises(ConversionRefused, match="computes a score"):
        convert_version(model, {ML: 5})
