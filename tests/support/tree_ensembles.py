"""Random forests for tests, as the attributes of TreeEnsembleRegressor and TreeEnsembleClassifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from opshift import convert_version
from support.execution import Array, assert_equal, build, opset_of, run

ML = "ai.onnx.ml"
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


def data(dtype: type = np.float32, *, missing: bool = False) -> Array:
    """Return rows with whole numbers in half of the features, so that equality branches are taken."""
    random = np.random.default_rng(5)
    found = random.normal(size=(150, FEATURES))
    found[:, ::2] = random.integers(-2, 3, size=(150, FEATURES // 2))
    if missing:
        found[random.random(found.shape) < 0.2] = np.nan
    return found.astype(dtype)


def forest_node(op: str, forest: Forest, outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    """Return a node with the forest."""
    kind = "class" if op.endswith("Classifier") else "target"
    values = {**forest.columns(kind), **forest.attributes, **attributes}
    if forest.as_tensor:
        for name in ("nodes_values", f"{kind}_weights", "base_values"):
            if name in values:
                column = values.pop(name)
                tensor = helper.make_tensor(name, TensorProto.DOUBLE, [len(column)], column)
                values[f"{name}_as_tensor"] = tensor
    return helper.make_node(op, ["x"], outputs, name="old", domain=ML, **values)


def regressor(
    forest: Forest, feeds: Array, targets: int, opsets: Mapping[str, int] | None = None
) -> onnx.ModelProto:
    """Return a model with one regressor."""
    node = forest_node("TreeEnsembleRegressor", forest, ["y"], n_targets=targets)
    return build([node], {"x": feeds}, ["y"], opsets or {ML: 3, "": 17})


def classifier(
    forest: Forest,
    feeds: Array,
    labels: Sequence[int] | Sequence[str],
    opsets: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """Return a model with one classifier and both of its outputs."""
    is_text = isinstance(labels[0], str)
    attributes = {f"classlabels_{'strings' if is_text else 'int64s'}": labels}
    node = forest_node("TreeEnsembleClassifier", forest, ["y", "z"], **attributes)
    outputs = {"y": TensorProto.STRING if is_text else TensorProto.INT64, "z": TensorProto.FLOAT}
    return build([node], {"x": feeds}, outputs, opsets or {ML: 3, "": 17})


def assert_keeps_outputs(model: onnx.ModelProto, feeds: Array, tolerance: float = 1e-5) -> onnx.ModelProto:
    """Convert a model to ai.onnx.ml 5 and assert equal outputs in onnxruntime."""
    converted = convert_version(model, {ML: 5})
    assert opset_of(converted, ML) == 5
    _check(converted)
    assert_equal(run(converted, {"x": feeds}), run(model, {"x": feeds}), tolerance)
    return converted


def _check(model: onnx.ModelProto) -> None:
    """Apply ONNX's checker, which requires output shapes; the tests omit them."""
    shaped = onnx.ModelProto.FromString(model.SerializeToString())
    for value in shaped.graph.output:
        value.type.tensor_type.shape.SetInParent()
    onnx.checker.check_model(shaped)


def attribute(node: onnx.NodeProto, name: str) -> Any:
    """Return the value of an attribute of a node."""
    return helper.get_attribute_value(next(each for each in node.attribute if each.name == name))
