"""What is drawn at random is refused, wherever it is; what only may be random elsewhere is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.running import build

from opshift import CannotVerify
from opshift.converter.verification.randomness import require_repeatable

X = np.zeros((2, 3), np.float32)
TRUE, FALSE = np.array(True), np.array(False)
node = helper.make_node


def model(nodes: Sequence[onnx.NodeProto], opset: int = 17, **options: Any) -> onnx.ModelProto:
    return build(nodes, {"x": X}, ["y"], opset, **options)


def within(inner: onnx.NodeProto) -> onnx.NodeProto:
    """An If with a node in both of its branches."""
    out = helper.make_tensor_value_info(inner.output[0], TensorProto.FLOAT, None)
    branch = helper.make_graph([inner], "branch", [], [out])
    return node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)


def calling(inner: onnx.NodeProto) -> onnx.ModelProto:
    """A call of a function with a node in it."""
    found = model([node("F", ["x"], ["y"], domain="local")])
    body = helper.make_function("local", "F", ["x"], ["y"], [inner], [helper.make_opsetid("", 17)])
    found.functions.append(body)
    return found


def overridable() -> onnx.ModelProto:
    found = model([node("Dropout", ["x", "", "t"], ["y"])], initializers={"t": FALSE})
    found.graph.input.append(helper.make_tensor_value_info("t", TensorProto.BOOL, []))
    return found


CONSTANT = node("Constant", [], ["t"], value=numpy_helper.from_array(FALSE))
RANDOM = {
    "RandomNormal": model([node("RandomNormal", [], ["y"], shape=[2])]),
    "RandomNormalLike with a seed": model([node("RandomNormalLike", ["x"], ["y"], seed=1.0)]),
    "RandomUniform": model([node("RandomUniform", [], ["y"], shape=[2])]),
    "RandomUniformLike": model([node("RandomUniformLike", ["x"], ["y"])]),
    "Bernoulli": model([node("Bernoulli", ["x"], ["y"])]),
    "Multinomial": model([node("Multinomial", ["x"], ["y"])]),
    "in a subgraph": model([within(node("RandomNormalLike", ["x"], ["b"]))], initializers={"c": TRUE}),
    "in a function": calling(node("Bernoulli", ["x"], ["y"])),
    "Dropout-1, which drops": model([node("Dropout", ["x"], ["y"])], 6),
    "Dropout in training": model([node("Dropout", ["x", "", "t"], ["y"])], initializers={"t": TRUE}),
    "Dropout that is told": model([node("Cast", ["x"], ["t"], to=9), node("Dropout", ["x", "", "t"], ["y"])]),
    "Dropout whose default is no training": overridable(),
}
REPEATABLE = {
    "nothing random": model([node("Relu", ["x"], ["y"])]),
    "Dropout-1 in inference": model([node("Dropout", ["x"], ["y"], is_test=1)], 6),
    "Dropout-7": model([node("Dropout", ["x"], ["y"])], 9),
    "Dropout that is not told": model([node("Dropout", ["x"], ["y"])]),
    "Dropout told not to": model([node("Dropout", ["x", "", "t"], ["y"])], initializers={"t": FALSE}),
    "Dropout told by a Constant": model([CONSTANT, node("Dropout", ["x", "", "t"], ["y"])]),
    "told from the graph around": model(
        [within(node("Dropout", ["x", "", "t"], ["b"]))], initializers={"c": TRUE, "t": FALSE}
    ),
    "the same name in another domain": model([node("Bernoulli", ["x"], ["y"], domain="com.acme")]),
}


@pytest.mark.parametrize("given", RANDOM.values(), ids=RANDOM)
def test_random(given: onnx.ModelProto) -> None:
    with pytest.raises(CannotVerify, match="generates random numbers") as error:
        require_repeatable(given)
    assert error.value.place.node.startswith("node ")


@pytest.mark.parametrize("given", REPEATABLE.values(), ids=REPEATABLE)
def test_repeatable(given: onnx.ModelProto) -> None:
    require_repeatable(given)
