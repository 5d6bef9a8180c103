"""Random models are refused; deterministic uses of the same operators are accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import build

from opshift import CannotVerify
from opshift.analysis.verification.verify import require_deterministic

X = np.zeros((2, 3), np.float32)
TRUE, FALSE = np.array(True), np.array(False)
node = helper.make_node


def model(nodes: Sequence[onnx.NodeProto], opset: int = 17, **options: Any) -> onnx.ModelProto:
    return build(nodes, {"x": X}, ["y"], opset, **options)


def in_subgraph(inner: onnx.NodeProto) -> onnx.NodeProto:
    """Return an If with the given node in both branches."""
    out = helper.make_tensor_value_info(inner.output[0], TensorProto.FLOAT, None)
    branch = helper.make_graph([inner], "branch", [], [out])
    return node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)


def in_function(inner: onnx.NodeProto) -> onnx.ModelProto:
    """Build a model that calls a function with the given node."""
    result = model([node("F", ["x"], ["y"], domain="local")])
    body = helper.make_function("local", "F", ["x"], ["y"], [inner], [helper.make_opsetid("", 17)])
    result.functions.append(body)
    return result


def dropout_with_input_default() -> onnx.ModelProto:
    result = model([node("Dropout", ["x", "", "t"], ["y"])], initializers={"t": FALSE})
    result.graph.input.append(helper.make_tensor_value_info("t", TensorProto.BOOL, []))
    return result


CONSTANT = node("Constant", [], ["t"], value=numpy_helper.from_array(FALSE))
RANDOM_MODELS = {
    "RandomNormal": model([node("RandomNormal", [], ["y"], shape=[2])]),
    "RandomNormalLike with a seed": model([node("RandomNormalLike", ["x"], ["y"], seed=1.0)]),
    "RandomUniform": model([node("RandomUniform", [], ["y"], shape=[2])]),
    "RandomUniformLike": model([node("RandomUniformLike", ["x"], ["y"])]),
    "Bernoulli": model([node("Bernoulli", ["x"], ["y"])]),
    "Multinomial": model([node("Multinomial", ["x"], ["y"])]),
    "in a subgraph": model([in_subgraph(node("RandomNormalLike", ["x"], ["b"]))], initializers={"c": TRUE}),
    "in a function": in_function(node("Bernoulli", ["x"], ["y"])),
    "Dropout-1 in training": model([node("Dropout", ["x"], ["y"])], 6),
    "Dropout in training": model([node("Dropout", ["x", "", "t"], ["y"])], initializers={"t": TRUE}),
    "Dropout with computed training mode": model(
        [node("Cast", ["x"], ["t"], to=9), node("Dropout", ["x", "", "t"], ["y"])]
    ),
    "Dropout with overridable training mode": dropout_with_input_default(),
}
REPEATABLE_MODELS = {
    "nothing random": model([node("Relu", ["x"], ["y"])]),
    "Dropout-1 in inference": model([node("Dropout", ["x"], ["y"], is_test=1)], 6),
    "Dropout-7": model([node("Dropout", ["x"], ["y"])], 9),
    "Dropout without training mode": model([node("Dropout", ["x"], ["y"])]),
    "Dropout with initializer as training mode": model(
        [node("Dropout", ["x", "", "t"], ["y"])], initializers={"t": FALSE}
    ),
    "Dropout with Constant as training mode": model([CONSTANT, node("Dropout", ["x", "", "t"], ["y"])]),
    "Dropout with training mode of the outer graph": model(
        [in_subgraph(node("Dropout", ["x", "", "t"], ["b"]))], initializers={"c": TRUE, "t": FALSE}
    ),
    "operator of equal name in a custom domain": model([node("Bernoulli", ["x"], ["y"], domain="com.acme")]),
}


@pytest.mark.parametrize("tested_model", RANDOM_MODELS.values(), ids=RANDOM_MODELS)
def test_refuses_random_model(tested_model: onnx.ModelProto) -> None:
    with pytest.raises(CannotVerify, match="generates random numbers") as error:
        require_deterministic(tested_model)
    assert error.value.place.node.startswith("node ")


@pytest.mark.parametrize("tested_model", REPEATABLE_MODELS.values(), ids=REPEATABLE_MODELS)
def test_accepts_repeatable_model(tested_model: onnx.ModelProto) -> None:
    require_deterministic(tested_model)
