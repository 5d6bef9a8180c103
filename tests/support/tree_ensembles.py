"""Models with random forests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from opshift import convert_version
from random_graphs.forests import FEATURES, Forest
from support.execution import Array, assert_equal, build, opset_of, run

ML = "ai.onnx.ml"


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
