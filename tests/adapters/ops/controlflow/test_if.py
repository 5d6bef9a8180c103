"""Downgrade of If below opset 11, which requires the same output shape in both branches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.running import Array, build

Dims = Sequence[int | str] | None
X: Array = np.arange(6, dtype=np.float32).reshape(2, 3)
FEEDS: dict[str, Array] = {"c": np.array(True), "x": X}


def _branch(op_type: str, dims: Dims, **attributes: object) -> onnx.GraphProto:
    output = helper.make_tensor_value_info(op_type, TensorProto.FLOAT, dims)
    nodes = [helper.make_node(op_type, ["x"], [op_type], **attributes)]
    return helper.make_graph(nodes, op_type, [], [output])


def _model(then_branch: onnx.GraphProto, else_branch: onnx.GraphProto) -> onnx.ModelProto:
    node = helper.make_node("If", ["c"], ["y"], name="node", then_branch=then_branch, else_branch=else_branch)
    return build([node], FEEDS, ["y"], 11)


@pytest.mark.parametrize(
    ("then_dims", "else_dims"),
    [
        pytest.param([2, 3], [2, 3], id="same shape"),
        pytest.param(None, None, id="no declared shape"),
        pytest.param(None, [2, 3], id="one declared shape"),
        pytest.param(["n", 3], [2, "m"], id="compatible symbolic shapes"),
    ],
)
@pytest.mark.parametrize("target", [10, 8])
def test_accepts_branches_of_compatible_shapes(then_dims: Dims, else_dims: Dims, target: int) -> None:
    convert_and_check(_model(_branch("Relu", then_dims), _branch("Neg", else_dims)), target, FEEDS)


def test_compares_inferred_shapes() -> None:
    model = _model(_branch("Relu", None), _branch("Transpose", None))
    assert refusal_of(model, 10).reason == "the shapes of 'y' differ between the branches: (2, 3) and (3, 2)"


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        pytest.param([3, 2], "(2, 3) and (3, 2)", id="different dimension"),
        pytest.param(["n", 2], "(2, 3) and (?, 2)", id="different and unknown dimensions"),
        pytest.param([3, 2, 1], "(2, 3) and (3, 2, 1)", id="different rank"),
    ],
)
def test_refuses_branches_of_different_shapes(dims: Dims, reason: str) -> None:
    model = _model(_branch("Relu", [2, 3]), _branch("Transpose", dims))
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")  # otherwise inference knows better than the branches
    assert refusal_of(model, 10).reason == f"the shapes of 'y' differ between the branches: {reason}"
