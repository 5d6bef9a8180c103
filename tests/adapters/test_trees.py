"""TreeEnsembleRegressor and TreeEnsembleClassifier become TreeEnsemble: the numbers stay, in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, assert_equal, build, op_types, opset_of, run, run_reference

from opshift import ConversionRefused, convert_version

ML = "ai.onnx.ml"
ALL_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("SUM", "AVERAGE", "MIN", "MAX")
FEATURES = 4
Votes = Callable[[np.random.Generator, int], list[tuple[int, float]]]


def votes(targets: Sequence[int], low: float = -1.0, high: float = 1.0) -> Votes:
    """A weight for each of the targets at every leaf."""
    return lambda random, tree: [(target, float(random.uniform(low, high))) for target in targets]


def tree_by_tree(targets: int, low: float = -1.0, high: float = 1.0) -> Votes:
    """Every tree votes for one target, in turn."""
    return lambda random, tree: [(tree % targets, float(random.uniform(low, high)))]


def some(targets: int, low: float = -1.0, high: float = 1.0) -> Votes:
    """A weight for some of the targets, others at every leaf, now and then two for one."""

    def draw(random: np.random.Generator, tree: int) -> list[tuple[int, float]]:
        count = int(random.integers(1, targets + 2))
        return [(int(random.integers(targets)), float(random.uniform(low, high))) for _ in range(count)]

    return draw


@dataclass(frozen=True)
class Forest:
    """What a random forest of a test looks like."""

    votes: Votes
    trees: int = 7
    depth: int = 4
    modes: Sequence[str] = ("BRANCH_LEQ",)
    tracks: bool = False
    as_tensor: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1

    def columns(self, kind: str) -> dict[str, Any]:
        """The attributes of its trees, votes under `kind`_*."""
        random = np.random.default_rng(self.seed)
        nodes: list[list[Any]] = []
        ballots: list[tuple[Any, ...]] = []
        for tree in range(self.trees):
            self._grow(random, tree, self.depth, nodes, ballots, start=len(nodes))
        names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
        found = {
            f"nodes_{name}": list(column)
            for name, column in zip(names, zip(*nodes, strict=True), strict=True)
        }
        names = ("treeids", "nodeids", "ids", "weights")
        found |= {
            f"{kind}_{name}": list(column)
            for name, column in zip(names, zip(*ballots, strict=True), strict=True)
        }
        if self.tracks:
            found["nodes_missing_value_tracks_true"] = random.integers(0, 2, len(nodes)).tolist()
        return found

    def _grow(self, random: Any, tree: int, depth: int, nodes: Any, ballots: Any, start: int) -> int:
        number, place = len(nodes) - start, len(nodes)
        if depth == 0 or (depth < self.depth and random.random() < 0.25):
            nodes.append([tree, number, 0, "LEAF", 0.0, 0, 0])
            ballots += [(tree, number, *vote) for vote in self.votes(random, tree)]
            return number
        mode = self.modes[random.integers(len(self.modes))]
        split = float(random.integers(-2, 3)) if mode in ("BRANCH_EQ", "BRANCH_NEQ") else random.normal()
        nodes.append([tree, number, int(random.integers(FEATURES)), mode, split, 0, 0])
        nodes[place][5] = self._grow(random, tree, depth - 1, nodes, ballots, start)
        nodes[place][6] = self._grow(random, tree, depth - 1, nodes, ballots, start)
        return number


def data(kind: type = np.float32, *, missing: bool = False) -> Array:
    """Rows of which half the features are whole numbers, so that equality is met."""
    random = np.random.default_rng(5)
    found = random.normal(size=(150, FEATURES))
    found[:, ::2] = random.integers(-2, 3, size=(150, FEATURES // 2))
    if missing:
        found[random.random(found.shape) < 0.2] = np.nan
    return found.astype(kind)


def _node(op: str, forest: Forest, outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    kind = "class" if op.endswith("Classifier") else "target"
    stated = {**forest.columns(kind), **forest.attributes, **attributes}
    if forest.as_tensor:
        for name in ("nodes_values", f"{kind}_weights", "base_values"):
            if name in stated:
                values = stated.pop(name)
                tensor = helper.make_tensor(name, TensorProto.DOUBLE, [len(values)], values)
                stated[f"{name}_as_tensor"] = tensor
    return helper.make_node(op, ["x"], outputs, name="old", domain=ML, **stated)


def regressor(
    forest: Forest, feeds: Array, targets: int, opsets: Mapping[str, int] | None = None
) -> onnx.ModelProto:
    """A model of one regressor."""
    node = _node("TreeEnsembleRegressor", forest, ["y"], n_targets=targets)
    return build([node], {"x": feeds}, ["y"], opsets or {ML: 3, "": 17})


def classifier(
    forest: Forest,
    feeds: Array,
    labels: Sequence[int] | Sequence[str],
    opsets: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model of one classifier, with both its outputs."""
    is_text = isinstance(labels[0], str)
    node = _node(
        "TreeEnsembleClassifier",
        forest,
        ["y", "z"],
        **{f"classlabels_{'strings' if is_text else 'int64s'}": labels},
    )
    outputs = {"y": TensorProto.STRING if is_text else TensorProto.INT64, "z": TensorProto.FLOAT}
    return build([node], {"x": feeds}, outputs, opsets or {ML: 3, "": 17})


def _assert_kept(model: onnx.ModelProto, feeds: Array, tolerance: float = 1e-5) -> onnx.ModelProto:
    moved = convert_version(model, {ML: 5})
    assert opset_of(moved, ML) == 5
    _check(moved)
    assert_equal(run(moved, {"x": feeds}), run(model, {"x": feeds}), tolerance)
    return moved


def _check(model: onnx.ModelProto) -> None:
    """Have onnx look at every node; it wants the outputs' shapes, which the tests leave out."""
    shaped = onnx.ModelProto.FromString(model.SerializeToString())
    for value in shaped.graph.output:
        value.type.tensor_type.shape.SetInParent()
    onnx.checker.check_model(shaped)


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
    moved = _assert_kept(
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
    moved = _assert_kept(regressor(replace(forest, attributes=attributes), feeds, targets), feeds)
    assert "Add" in op_types(moved)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("base", [[], [0.1, 0.0, 0.2]], ids=["", "base values"])
def test_transforms_of_targets(transform: str, base: list[float], kind: type) -> None:
    """Every transform is spelled out behind TreeEnsemble."""
    feeds = data(kind)
    attributes = {"post_transform": transform, **({"base_values": base} if base else {})}
    forest = Forest(votes([0, 1, 2], 0.01, 0.09), attributes=attributes)
    moved = _assert_kept(regressor(forest, feeds, 3), feeds)
    assert _attribute(moved.graph.node[0], "post_transform") == 0


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transform_of_one_target(transform: str) -> None:
    """It stays with the operator, which onnxruntime heeds for PROBIT alone."""
    feeds = data()
    forest = Forest(votes([0], 0.01, 0.05), attributes={"post_transform": transform})
    _assert_kept(regressor(forest, feeds, 1), feeds)


def test_zero_scores() -> None:
    """SOFTMAX_ZERO leaves out what is zero."""
    feeds = data()
    forest = Forest(tree_by_tree(3), trees=2, attributes={"post_transform": "SOFTMAX_ZERO"})
    _assert_kept(regressor(forest, feeds, 3), feeds)


@pytest.mark.parametrize("tracks", [False, True], ids=["", "NaN goes to the true side of some"])
@pytest.mark.parametrize("modes", [*((mode,) for mode in ALL_MODES), ALL_MODES], ids="+".join)
def test_modes(modes: tuple[str, ...], tracks: bool) -> None:
    """Each comparison, alone and mixed, with and without missing values."""
    for kind in (np.float32, np.float64):
        feeds = data(kind, missing=tracks)
        _assert_kept(regressor(Forest(votes([0, 1]), modes=modes, tracks=tracks), feeds, 2), feeds)


@pytest.mark.parametrize(
    "forest", [Forest(votes([0, 1])), Forest(votes([0, 1]), as_tensor=True)], ids=["", "tensors"]
)
def test_double_thresholds_are_kept(forest: Forest) -> None:
    """Double input is compared in double, also with what only double can hold."""
    forest = replace(forest, attributes={"base_values": [1e-9, 0.3]})
    feeds = data(np.float64)
    moved = _assert_kept(regressor(forest, feeds, 2), feeds)
    assert _attribute(moved.graph.node[0], "nodes_splits").data_type == TensorProto.DOUBLE


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
        _assert_kept(classifier(replace(forest, attributes=attributes), feeds, labels), feeds)


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
        _assert_kept(classifier(replace(forest, attributes=attributes), feeds, labels), feeds)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int32])
def test_types_of_input(kind: type) -> None:
    """Integers are compared as float, which onnxruntime does too."""
    feeds = data(kind)
    moved = _assert_kept(classifier(Forest(votes([0, 1, 2]), modes=ALL_MODES), feeds, ["a", "b", "c"]), feeds)
    assert op_types(moved)[0] == ("Cast" if np.issubdtype(kind, np.integer) else "TreeEnsemble")


@pytest.mark.parametrize("unused", [0, 1], ids=["scores only", "label only"])
def test_an_output_that_nobody_reads(unused: int) -> None:
    """What is not read is not made."""
    feeds = data()
    for labels, ballot in (([4, 5], votes([0])), ([4, 5, 6], votes([0, 1, 2]))):
        model = classifier(Forest(ballot, attributes={"post_transform": "LOGISTIC"}), feeds, labels)
        del model.graph.output[unused]
        moved = _assert_kept(model, feeds)
        assert ("LabelEncoder" in op_types(moved)) == (unused == 1)
        assert ("Sigmoid" in op_types(moved)) == (unused == 0)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("ballot", [votes([0, 1], 0.02, 0.1), votes([1], 0.02, 0.1)], ids=["both", "second"])
def test_scores_of_two_classes(ballot: Votes, transform: str) -> None:
    """Without the label, over which onnxruntime and the definition differ, two scores are as any."""
    feeds = data()
    model = classifier(Forest(ballot, attributes={"post_transform": transform}), feeds, [0, 1])
    del model.graph.output[0]
    _assert_kept(model, feeds)


@pytest.mark.parametrize("opset", [None, 9, 11, 13, 17, 21], ids=lambda opset: f"ai.onnx {opset}")
def test_the_nodes_around_it_are_of_the_models_opset(opset: int | None) -> None:
    """A model that imports ai.onnx keeps it; one that does not gets an import."""
    feeds = data()
    opsets = {ML: 3, **({"": opset} if opset else {})}
    forest = Forest(
        votes([0, 1, 2]), attributes={"post_transform": "SOFTMAX", "base_values": [0.1, 0.2, 0.3]}
    )
    moved = _assert_kept(classifier(forest, feeds, [0, 1, 2], opsets), feeds)
    assert opset is None or opset_of(moved) == opset


def test_no_import_where_none_is_needed() -> None:
    """TreeEnsemble alone needs no ai.onnx."""
    feeds = data()
    moved = _assert_kept(regressor(Forest(votes([0])), feeds, 1, {ML: 3}), feeds)
    assert [each.domain for each in moved.opset_import] == [ML]


@pytest.mark.parametrize("source", [1, 2, 3, 4])
def test_older_models(source: int) -> None:
    """Versions 1 and 3 go the same way, and ZipMap behind them stays."""
    feeds = data()
    node = _node("TreeEnsembleClassifier", Forest(votes([0])), ["y", "z"], classlabels_int64s=[3, 4])
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


def _drop(name: str) -> Callable[[onnx.NodeProto], None]:
    def change(node: onnx.NodeProto) -> None:
        node.attribute.remove(next(each for each in node.attribute if each.name == name))

    return change


def _put(name: str, place: int, value: int | bytes | float) -> Callable[[onnx.NodeProto], None]:
    def change(node: onnx.NodeProto) -> None:
        found = next(each for each in node.attribute if each.name == name)
        column = found.ints or found.strings or found.floats
        column[place] = value

    return change


def _cut(name: str) -> Callable[[onnx.NodeProto], None]:
    def change(node: onnx.NodeProto) -> None:
        del next(each for each in node.attribute if each.name == name).ints[-1:]

    return change


def _with(**attributes: Any) -> Callable[[onnx.NodeProto], None]:
    def change(node: onnx.NodeProto) -> None:
        for name in attributes:
            _drop(name)(node) if any(each.name == name for each in node.attribute) else None
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())

    return change


@pytest.mark.parametrize(
    ("ballot", "change", "reason"),
    [
        pytest.param(votes([0]), _cut("nodes_treeids"), "nodes_treeids has", id="a list that is too short"),
        pytest.param(votes([0]), _cut("target_ids"), "target_ids has", id="votes that are too short"),
        pytest.param(votes([0]), _put("nodes_nodeids", 2, 1), "the same id", id="an id twice"),
        pytest.param(
            votes([0]), _put("nodes_truenodeids", 0, 99), "names node 99", id="a child that is missing"
        ),
        pytest.param(
            votes([0]), _put("nodes_truenodeids", 0, 0), "form no tree", id="a node that is its own child"
        ),
        pytest.param(votes([0]), _put("nodes_truenodeids", 0, 2), "form no tree", id="a child of two nodes"),
        pytest.param(
            votes([0]), _put("nodes_modes", 0, b"BRANCH_IN"), "BRANCH_IN", id="a mode that is unknown"
        ),
        pytest.param(votes([0]), _put("target_ids", 0, 1), "is not there", id="a target that is not there"),
        pytest.param(votes([0]), _put("target_nodeids", 0, 99), "is not there", id="a vote at no node"),
        pytest.param(votes([0]), _put("target_nodeids", 0, 0), "has no weight", id="a leaf without a vote"),
        pytest.param(votes([0, 0]), _with(), "several weights", id="two votes for the only target"),
        pytest.param(
            votes([0]), _with(aggregate_function="MEDIAN"), "aggregate_function", id="an unknown aggregate"
        ),
        pytest.param(votes([0]), _with(post_transform="TANH"), "'TANH' is no", id="an unknown transform"),
        pytest.param(votes([0]), _with(base_values=[1.0, 2.0]), "2 base_values", id="too many base values"),
        pytest.param(
            votes([0]),
            _with(base_values=[1.0], post_transform="LOGISTIC"),
            "omits",
            id="base values, then LOGISTIC of one",
        ),
        pytest.param(
            some(2),
            _with(base_values=[1.0, 2.0], n_targets=2),
            "drops the base value",
            id="base values of unsure targets",
        ),
    ],
)
def test_regressors_that_are_refused(
    ballot: Votes, change: Callable[[onnx.NodeProto], None], reason: str
) -> None:
    """What is no forest, and what onnxruntime and the definition disagree about."""
    model = regressor(Forest(ballot, trees=2, depth=2), data(), 1)
    change(model.graph.node[0])
    with pytest.raises(ConversionRefused, match=reason):
        convert_version(model, {ML: 5})


@pytest.mark.parametrize(
    ("ballot", "labels", "attributes", "reason"),
    [
        pytest.param(votes([0]), [3], {}, "one class label", id="one class"),
        pytest.param(votes([0, 1]), [3, 4], {}, "of two classes", id="votes for both of two classes"),
        pytest.param(votes([1]), [3, 4], {}, "of two classes", id="votes for the second of two classes"),
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
            "state its labels",
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
    with pytest.raises(ConversionRefused, match="scores of two classes differ"):
        convert_version(model, {ML: 5})


def _attribute(node: onnx.NodeProto, name: str) -> Any:
    return helper.get_attribute_value(next(each for each in node.attribute if each.name == name))
