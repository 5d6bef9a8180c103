"""Downgrade of If below opset 11, which requires the same output shape in both branches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.conversion import convert_and_check
from support.execution import Array, assert_equal, build, run, run_reference

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


def _constant(values: Array, name: str) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values))


def _graph(nodes: Sequence[onnx.NodeProto], element_type: int) -> onnx.GraphProto:
    """Return a branch whose last node produces its first output; it also returns `x`, unchanged."""
    name = nodes[-1].output[0]
    same = helper.make_node("Identity", ["x"], [f"{name}_same"])
    outputs = [
        helper.make_tensor_value_info(name, element_type, None),
        helper.make_tensor_value_info(f"{name}_same", TensorProto.FLOAT, [2, 3]),
    ]
    return helper.make_graph([*nodes, same], name, [], outputs)


DIFFERENT_SHAPES = [
    pytest.param(X, np.arange(6, dtype=np.float32).reshape(3, 2) - 9, id="permuted dimensions"),
    pytest.param(X, np.ones((5, 2, 1), np.float32), id="ranks and sizes"),
    pytest.param(np.array(7), np.arange(4), id="scalar"),
    pytest.param(np.zeros((0, 3)), np.ones((2, 3)), id="empty first dimension"),
    pytest.param(np.array([True]), np.array([[False, True, True]]), id="bool"),
    pytest.param(np.array([b"a", b"b"], object), np.array([b"c"], object), id="string"),
    pytest.param(np.zeros(70_000, np.int8), np.ones(1, np.int8), id="much padding"),
]


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize(("then_value", "else_value"), DIFFERENT_SHAPES)
def test_restores_different_shapes(
    then_value: Array, else_value: Array, target: int, condition: bool
) -> None:
    element_type = (
        TensorProto.STRING
        if then_value.dtype == object
        else helper.np_dtype_to_tensor_dtype(then_value.dtype)
    )
    branches = {
        "then_branch": _graph([_constant(then_value, "t")], element_type),
        "else_branch": _graph([_constant(else_value, "e")], element_type),
    }
    node = helper.make_node("If", ["c"], ["y", "z"], name="node", **branches)
    feeds = {"c": np.array(condition), "x": X}
    model = build([node], feeds, {"y": element_type, "z": TensorProto.FLOAT}, 11)
    result = convert_and_check(model, target, feeds)
    # onnx.reference cannot run a Loop without turns, which counts dimensions and elements below opset 9.
    if target > 8:
        assert_equal(run_reference(result, feeds), run(model, feeds), 0)


def test_restores_computed_values_in_nested_branches() -> None:
    inner = helper.make_node(
        "If",
        ["c"],
        ["inner"],
        then_branch=_branch("Relu", [2, 3]),
        else_branch=_branch("Transpose", [3, 2], perm=[1, 0]),
    )
    outer = helper.make_graph(
        [inner, helper.make_node("Exp", ["inner"], ["outer"])],
        "outer",
        [],
        [helper.make_tensor_value_info("outer", TensorProto.FLOAT, None)],
    )
    model = _model(outer, _branch("Neg", [2, 3]))
    for target in (10, 8):
        for condition in (True, False):
            convert_and_check(model, target, {"c": np.array(condition), "x": X})


UNKNOWN_SHAPES = [
    pytest.param(
        helper.make_node("Transpose", ["x"], ["e"], perm=[1, 0]), [3, 2], (2, 3), id="unknown dimensions"
    ),
    pytest.param(
        helper.make_node("ReduceSum", ["x"], ["e"], axes=[0], keepdims=0), ["n"], (2, 3), id="ranks"
    ),
    pytest.param(
        helper.make_node("Unsqueeze", ["x"], ["e"], axes=[0]), [1, "n", 3], (2, 0), id="empty last dimension"
    ),
]


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize(("node", "dims", "shape"), UNKNOWN_SHAPES)
def test_replaces_branches_of_unknown_different_shapes_by_loops(
    node: onnx.NodeProto, dims: Dims, shape: Sequence[int], target: int, condition: bool
) -> None:
    second = helper.make_node("Shape", ["x"], ["e_shape"])
    values = {"e": (TensorProto.FLOAT, dims), "e_shape": (TensorProto.INT64, [2])}
    outputs = [helper.make_tensor_value_info(name, *each) for name, each in values.items()]
    constant = _constant(np.arange(2), "t_shape")
    branch = _branch("Relu", ["n", 7])
    branch.node.append(constant)
    branch.output.append(helper.make_tensor_value_info("t_shape", TensorProto.INT64, [2]))
    outer = helper.make_node(
        "If", ["c"], ["y", "z"], "node", then_branch=branch,
        else_branch=helper.make_graph([node, second], "else", [], outputs),
    )  # fmt: skip
    feeds = {"c": np.array(condition), "x": np.arange(prod(shape), dtype=np.float32).reshape(shape) - 3}
    model = build([outer], feeds, {"y": TensorProto.FLOAT, "z": TensorProto.INT64}, 11, shapes=False)
    result = convert_and_check(model, target, feeds)
    assert_equal(run_reference(result, feeds), run(model, feeds), 0)
