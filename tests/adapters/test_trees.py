"""TreeEnsembleRegressor and TreeEnsembleClassifier become TreeEnsemble: the numbers stay, in onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.forests import (
    ALL_MODES,
    ML,
    Forest,
    Votes,
    assert_kept,
    attribute,
    classifier,
    data,
    node_of,
    regressor,
    some,
    tree_by_tree,
    votes,
)
from support.running import assert_equal, build, op_types, opset_of, run, run_reference

from opshift import ConversionRefused, convert_version

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@pytest.mark.parametrize("tracks", [False, True], ids=["", "NaN goes to the true side of some"])
@pytest.mark.parametrize("modes", [*((mode,) for mode in ALL_MODES), ALL_MODES], ids="+".join)
def test_modes(modes: tuple[str, ...], tracks: bool) -> None:
    """Each comparison, alone and mixed, with and without missing values."""
    for kind in (np.float32, np.float64):
        feeds = data(kind, missing=tracks)
        assert_kept(regressor(Forest(votes([0, 1]), modes=modes, tracks=tracks), feeds, 2), feeds)


@pytest.mark.parametrize(
    "forest", [Forest(votes([0, 1])), Forest(votes([0, 1]), as_tensor=True)], ids=["", "tensors"]
)
def test_double_thresholds_are_kept(forest: Forest) -> None:
    """Double input is compared in double, also with what only double can hold."""
    forest = replace(forest, attributes={"base_values": [1e-9, 0.3]})
    feeds = data(np.float64)
    moved = assert_kept(regressor(forest, feeds, 2), feeds)
    assert attribute(moved.graph.node[0], "nodes_splits").data_type == TensorProto.DOUBLE


def test_double_tensors_with_float_input() -> None:
    """In onnxruntime such a model does not load; the input is cast, which loses nothing."""
    feeds = data()
    forest = Forest(votes([0, 1]), as_tensor=True)
    moved = convert_version(regressor(forest, feeds, 2), {ML: 5})
    assert op_types(moved) == ["Cast", "TreeEnsemble", "Cast"]
    wide = run(regressor(forest, feeds.astype(np.float64), 2), {"x": feeds.astype(np.float64)})
    assert_equal(run(moved, {"x": feeds}), wide)


@pytest.mark.parametrize("base", [[], [0.25, -0.5, 0.125]], ids=["", "base values"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("labels", [[10, 5, 7], ["red", "", "blue"]], ids=["numbers", "text"])
@pytest.mark.parametrize(
    "forest",
    [
        pytest.param(Forest(votes([0, 1, 2])), id="several votes at each leaf"),
        pytest.param(Forest(tree_by_tree(3)), id="a tree for each class"),
        pytest.param(Forest(votes([0, 1, 2], 0.01, 0.04)), id="shares"),
        pytest.param(Forest(some(3, 0.01, 0.04)), id="leaves with unlike votes, all above zero"),
    ],
)
def test_classes(forest: Forest, labels: list[Any], transform: str, base: list[float]) -> None:
    """The label is that of the highest score before the transform."""
    attributes = {"post_transform": transform, **({"base_values": base} if base else {})}
    for kind in (np.float32, np.float64):
        feeds = data(kind)
        assert_kept(classifier(replace(forest, attributes=attributes), feeds, labels), feeds)


@pytest.mark.parametrize("base", [[], [0.3]], ids=["", "a base value"])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("labels", [[10, 5], ["no", "yes"]], ids=["numbers", "text"])
@pytest.mark.parametrize(
    "forest",
    [
        pytest.param(Forest(votes([0])), id="margins"),
        pytest.param(Forest(votes([0], 0.0, 0.12)), id="shares"),
        pytest.param(Forest(votes([0]), depth=0), id="every tree is a leaf"),
        pytest.param(Forest(some(1)), id="several votes at a leaf"),
    ],
)
def test_one_score_for_two_classes(
    forest: Forest, labels: list[Any], transform: str, base: list[float]
) -> None:
    """The score of the first speaks for the second."""
    attributes = {"post_transform": transform, **({"base_values": base} if base else {})}
    for kind in (np.float32, np.float64, np.int64, np.int32):
        feeds = data(kind)
        assert_kept(classifier(replace(forest, attributes=attributes), feeds, labels), feeds)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int32])
def test_types_of_input(kind: type) -> None:
    """Integers are compared as float, which onnxruntime does too."""
    feeds = data(kind)
    moved = assert_kept(classifier(Forest(votes([0, 1, 2]), modes=ALL_MODES), feeds, ["a", "b", "c"]), feeds)
    assert op_types(moved)[0] == ("Cast" if np.issubdtype(kind, np.integer) else "TreeEnsemble")


@pytest.mark.parametrize("unused", [0, 1], ids=["scores only", "label only"])
def test_an_output_that_nobody_reads(unused: int) -> None:
    """What is not read is not made."""
    feeds = data()
    for labels, ballot in (([4, 5], votes([0])), ([4, 5, 6], votes([0, 1, 2]))):
        model = classifier(Forest(ballot, attributes={"post_transform": "LOGISTIC"}), feeds, labels)
        del model.graph.output[unused]
        moved = assert_kept(model, feeds)
        assert ("LabelEncoder" in op_types(moved)) == (unused == 1)
        assert ("Sigmoid" in op_types(moved)) == (unused == 0)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("ballot", [votes([0, 1], 0.02, 0.1), votes([1], 0.02, 0.1)], ids=["both", "second"])
def test_scores_of_two_classes(ballot: Votes, transform: str) -> None:
    """Without the label, over which onnxruntime and the definition differ, two scores are as any."""
    feeds = data()
    model = classifier(Forest(ballot, attributes={"post_transform": transform}), feeds, [0, 1])
    del model.graph.output[0]
    assert_kept(model, feeds)


@pytest.mark.parametrize("opset", [None, 7, 11, 13, 17, 26], ids=lambda opset: f"ai.onnx {opset}")
def test_the_nodes_around_it_are_of_the_models_opset(opset: int | None) -> None:
    """A model that imports ai.onnx keeps it; one that does not gets an import."""
    feeds = data()
    opsets = {ML: 3, **({"": opset} if opset else {})}
    forest = Forest(
        votes([0, 1, 2]), attributes={"post_transform": "SOFTMAX", "base_values": [0.1, 0.2, 0.3]}
    )
    moved = assert_kept(classifier(forest, feeds, [0, 1, 2], opsets), feeds)
    assert opset is None or opset_of(moved) == opset


def test_no_import_where_none_is_needed() -> None:
    """TreeEnsemble alone needs no ai.onnx."""
    feeds = data()
    moved = assert_kept(regressor(Forest(votes([0])), feeds, 1, {ML: 3}), feeds)
    assert [each.domain for each in moved.opset_import] == [ML]


@pytest.mark.parametrize("source", [1, 2, 3, 4])
def test_older_models(source: int) -> None:
    """Versions 1 and 3 go the same way, and ZipMap behind them stays."""
    feeds = data()
    node = node_of("TreeEnsembleClassifier", Forest(votes([0])), ["y", "z"], classlabels_int64s=[3, 4])
    zipped = helper.make_node("ZipMap", ["z"], ["maps"], domain=ML, classlabels_int64s=[3, 4])
    model = build([node, zipped], {"x": feeds}, {"y": TensorProto.INT64}, {ML: source, "": 15})
    kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    model.graph.output.append(helper.make_value_info("maps", helper.make_sequence_type_proto(kind)))
    moved = convert_version(model, {ML: 5})
    (old_label, old_maps), (label, maps) = run(model, {"x": feeds}), run(moved, {"x": feeds})
    assert label.tolist() == old_label.tolist()
    for old, new in zip(old_maps, maps, strict=True):
        assert new == pytest.approx(old, rel=1e-5, abs=1e-5)


def test_in_the_reference() -> None:
    """onnx.reference reads the trees as onnxruntime does."""
    feeds = data()
    forest = Forest(votes([0, 1, 2]), modes=ALL_MODES, attributes={"aggregate_function": "AVERAGE"})
    for each in (forest, replace(forest, depth=0), replace(forest, depth=1)):
        model = regressor(each, feeds, 3)
        assert_equal(run_reference(convert_version(model, {ML: 5}), {"x": feeds}), run(model, {"x": feeds}))


@pytest.mark.parametrize(
    ("ballot", "targets", "attributes", "reason"),
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
            some(2), 2, {"base_values": [1.0, 2.0]}, "omits the base value", id="a target without a vote"
        ),
    ],
)
def test_regressors_that_are_refused(
    ballot: Votes, targets: int, attributes: dict[str, Any], reason: str
) -> None:
    """What onnxruntime and the definition disagree about, and what is not defined."""
    with pytest.raises(ConversionRefused, match=reason):
        convert_version(regressor(Forest(ballot, attributes=attributes), data(), targets), {ML: 5})


@pytest.mark.parametrize(
    ("ballot", "labels", "attributes", "reason"),
    [
        pytest.param(votes([0]), [3], {}, "one class label", id="one class"),
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
            some(3), [3, 4, 5], {}, "never chooses", id="a class that may have no votes, others below zero"
        ),
        pytest.param(
            votes([0, 1]), [3, 4, 5], {}, "never chooses", id="a class without votes, others below zero"
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
def test_classifiers_that_are_refused(
    ballot: Votes, labels: list[int], attributes: dict[str, Any], reason: str
) -> None:
    """What onnxruntime and the definition disagree about."""
    with pytest.raises(ConversionRefused, match=reason):
        convert_version(classifier(Forest(ballot, attributes=attributes), data(), labels), {ML: 5})


def test_scores_that_differ_from_the_definition() -> None:
    """Where the second of two classes has a vote in some rows only, onnxruntime makes up its score."""
    model = classifier(Forest(some(2, 0.1, 0.2)), data(), [0, 1])
    del model.graph.output[0]
    with pytest.raises(ConversionRefused, match="invents a score"):
        convert_version(model, {ML: 5})
