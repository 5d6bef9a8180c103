"""Random forests for tests, as the attributes of TreeEnsembleRegressor and TreeEnsembleClassifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from opshift import convert_version
from support.running import Array, assert_equal, build, opset_of, run

ML = "ai.onnx.ml"
ALL_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
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
        names = ["treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids"]
        found = {f"nodes_{name}": [row[place] for row in nodes] for place, name in enumerate(names)}
        names = ["treeids", "nodeids", "ids", "weights"]
        found |= {f"{kind}_{name}": [row[place] for row in ballots] for place, name in enumerate(names)}
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


def node_of(op: str, forest: Forest, outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    """A node that holds the forest."""
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
    node = node_of("TreeEnsembleRegressor", forest, ["y"], n_targets=targets)
    return build([node], {"x": feeds}, ["y"], opsets or {ML: 3, "": 17})


def classifier(
    forest: Forest,
    feeds: Array,
    labels: Sequence[int] | Sequence[str],
    opsets: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model of one classifier, with both its outputs."""
    is_text = isinstance(labels[0], str)
    stated = {f"classlabels_{'strings' if is_text else 'int64s'}": labels}
    node = node_of("TreeEnsembleClassifier", forest, ["y", "z"], **stated)
    outputs = {"y": TensorProto.STRING if is_text else TensorProto.INT64, "z": TensorProto.FLOAT}
    return build([node], {"x": feeds}, outputs, opsets or {ML: 3, "": 17})


def assert_kept(model: onnx.ModelProto, feeds: Array, tolerance: float = 1e-5) -> onnx.ModelProto:
    """The model at ai.onnx.ml 5, after it gave the same as before in onnxruntime."""
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


def attribute(node: onnx.NodeProto, name: str) -> Any:
    """The value of an attribute of a node."""
    return helper.get_attribute_value(next(each for each in node.attribute if each.name == name))
