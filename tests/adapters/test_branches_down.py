"""If on its way down: before 11 both branches give the same shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, build

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
Dims = Sequence[int | str] | None
X: Array = np.arange(6, dtype=np.float32).reshape(2, 3)
FEEDS: dict[str, Array] = {"c": np.array(True), "x": X}


def _branch(op_type: str, dims: Dims, **attributes: object) -> onnx.GraphProto:
    output = helper.make_tensor_value_info(op_type, TensorProto.FLOAT, dims)
    nodes = [helper.make_node(op_type, ["x"], [op_type], **attributes)]
    return helper.make_graph(nodes, op_type, [], [output])


def _model(one: onnx.GraphProto, other: onnx.GraphProto) -> onnx.ModelProto:
    node = helper.make_node("If", ["c"], ["y"], name="node", then_branch=one, else_branch=other)
    return build([node], FEEDS, ["y"], 11)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param([2, 3], [2, 3], id="the same shape"),
        pytest.param(None, None, id="no shape is stated"),
        pytest.param(None, [2, 3], id="one is stated"),
        pytest.param(["n", 3], [2, "m"], id="shapes that may be the same"),
    ],
)
@pytest.mark.parametrize("target", [10, 8])
def test_branches_of_one_shape(one: Dims, other: Dims, target: int, converted: Converted) -> None:
    converted(_model(_branch("Relu", one), _branch("Neg", other)), target, FEEDS)


def test_shapes_that_follow_from_the_nodes_are_told_apart(refusal: Refusing) -> None:
    model = _model(_branch("Relu", None), _branch("Transpose", None))
    assert refusal(model, 10).reason == "the shapes of 'y' differ between the branches: (2, 3) and (3, 2)"


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        pytest.param([3, 2], "(2, 3) and (3, 2)", id="another size"),
        pytest.param(["n", 2], "(2, 3) and (?, 2)", id="another size, one not known"),
        pytest.param([3, 2, 1], "(2, 3) and (3, 2, 1)", id="another rank"),
    ],
)
def test_branches_of_different_shapes_are_refused(dims: Dims, reason: str, refusal: Refusing) -> None:
    model = _model(_branch("Relu", [2, 3]), _branch("Transpose", dims))
    assert refusal(model, 10).reason == f"the shapes of 'y' differ between the branches: {reason}"
