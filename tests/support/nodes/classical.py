"""Operators of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from random_graphs.forests import Forest, votes
from support.nodes.row import Row, row
from support.published import Case
from support.tree_ensembles import ML, classifier, data, regressor


def rows() -> Iterator[Row]:
    names = {"classes_strings": ["a", "b"], "default_string": "none"}
    outputs = {"y": TensorProto.STRING}
    yield row("LabelEncoder", 1, {"x": np.array([[0, 1], [5, 0]])}, names, outputs=outputs, domain=ML)
    for version in (1, 3, 5):
        yield from trees(version)


def trees(version: int) -> Iterator[Row]:
    """Yield tree ensembles; version 3 has tensors of doubles, with values exact in single precision."""
    forest = Forest(votes([0, 1, 2]), trees=2, depth=2, as_tensor=version == 3)
    feeds = {"x": data(np.float64 if forest.as_tensor else np.float32)}
    opsets = {ML: version, "": 17}
    models = {
        "TreeEnsembleRegressor": regressor(forest, feeds["x"], 3, opsets),
        "TreeEnsembleClassifier": classifier(forest, feeds["x"], [3, 4, 5], opsets),
    }
    for op, model in models.items():
        for attribute in model.graph.node[0].attribute:
            if attribute.HasField("t"):
                attribute.t.double_data[:] = np.float32(attribute.t.double_data).tolist()
        yield Row(ML, op, version, Case(model, feeds))
