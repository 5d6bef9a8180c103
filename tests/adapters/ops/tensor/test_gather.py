"""GatherND, GatherElements, ScatterND and ScatterElements: batches, reductions, and opsets without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types

DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
SIZES = pytest.mark.parametrize("shapes", [True, False], ids=["known sizes", "unknown sizes"])
Feeds = dict[str, Array]


def _model(
    op: str, feeds: Feeds, opset: int, *, shapes: bool = True, known: Sequence[str] = (), **attributes: Any
) -> onnx.ModelProto:
    """Build a model with one node; if `shapes` is false, only the inputs in `known` keep their sizes."""
    node = helper.make_node(op, list(feeds), ["y"], **attributes)
    element_type = helper.np_dtype_to_tensor_dtype(feeds["x"].dtype)
    model = build([node], feeds, {"y": element_type}, opset)
    for value in model.graph.input if not shapes else ():
        for dim in value.type.tensor_type.shape.dim if value.name not in known else ():
            dim.ClearField("dim_value")
    return model


@pytest.mark.parametrize("target", [11, 10, 9])
@pytest.mark.parametrize(
    ("batch_dims", "indices"),
    [
        pytest.param(0, [[0, 1, 2], [-1, -2, 0]], id="elements"),
        pytest.param(0, [[[1]], [[-2]]], id="matrices"),
        pytest.param(0, [[0, 2], [1, -1]], id="rows"),
        pytest.param(1, [[1], [-1]], id="rows per batch"),
        pytest.param(1, [[[1, 0], [2, -1]], [[0, 0], [-3, 3]]], id="elements per batch"),
        pytest.param(2, [[[1], [0], [3]], [[2], [-1], [0]]], id="elements per two batch dimensions"),
    ],
)
def test_rewrites_gather_nd(batch_dims: int, indices: list[object], target: int) -> None:
    feeds = {"x": DATA, "i": np.array(indices)}
    for shapes in (True, False):
        model = _model("GatherND", feeds, 12, shapes=shapes, known=["i"], batch_dims=batch_dims)
        convert_and_check(model, target, feeds)
    model = _model("GatherND", feeds, 12, shapes=False, batch_dims=batch_dims)
    convert_and_check(model, 11, feeds)


@SIZES
def test_rewrites_gather_nd_with_empty_tuples(shapes: bool) -> None:
    feeds: Feeds = {"x": DATA, "i": np.zeros((2, 0), np.int64)}
    model = _model("GatherND", feeds, 12, shapes=shapes, known=["i"])
    convert_and_check(model, 10, feeds, [np.stack([DATA, DATA])])


def test_refuses_tuples_of_unknown_length() -> None:
    feeds = {"x": DATA, "i": np.array([[0, 1]])}
    refused = refusal_of(_model("GatherND", feeds, 11, shapes=False), 10)
    assert refused.reason == "the last dimension of the index tuples 'i' is unknown"


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.int64, np.int32], ids=["int64", "int32"])
@SIZES
def test_rewrites_gather_elements(shapes: bool, dtype: type[np.generic], axis: int, target: int) -> None:
    feeds = {"x": DATA, "i": np.array([[[1, 0], [-1, 1]]], dtype)}
    convert_and_check(_model("GatherElements", feeds, 13, shapes=shapes, axis=axis), target, feeds)


def test_gathers_elements_of_a_vector() -> None:
    feeds = {"x": DATA[0, 0], "i": np.array([1, -1, 1])}
    result = convert_and_check(_model("GatherElements", feeds, 13), 10, feeds)
    assert op_types(result)[-1] == "Gather"


@pytest.mark.parametrize("target", [13, 10, 9])
@SIZES
def test_rewrites_scatter_nd(shapes: bool, target: int) -> None:
    updates = np.array([[9, 8, 7, 6], [5, 4, 3, 2]], np.float32)
    feeds = {"x": DATA, "i": np.array([[1, 0], [0, -1]]), "u": updates}
    convert_and_check(_model("ScatterND", feeds, 18, shapes=shapes, known=["i"]), target, feeds)


@pytest.mark.parametrize(("target", "reduction"), [(10, "none"), (13, "add"), (16, "max"), (10, "min")])
@pytest.mark.parametrize("outer_shape", [(), (1,), (2, 3), (0,)])
@SIZES
def test_rewrites_scatter_nd_with_empty_tuples(
    shapes: bool, outer_shape: tuple[int, ...], target: int, reduction: str
) -> None:
    updates = np.arange(np.prod(outer_shape) * 6, dtype=np.float32).reshape(*outer_shape, 2, 3)
    feeds: Feeds = {"x": DATA[0, :2, :3], "i": np.zeros((*outer_shape, 0), np.int64), "u": updates}
    model = _model("ScatterND", feeds, 18, shapes=shapes, reduction=reduction)
    model.graph.input[1].type.tensor_type.shape.dim[-1].dim_value = 0
    convert_and_check(model, target, feeds)


REDUCTIONS = pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])


@pytest.mark.parametrize("target", [17, 15, 13, 12, 11, 10])
@REDUCTIONS
@DTYPES
def test_rewrites_reductions_of_scatter_nd(dtype: type[np.generic], reduction: str, target: int) -> None:
    updates = np.array([[9, -8, 7, 0], [5, 4, -3, 2], [1, 20, 3, -40]], dtype)
    feeds: Feeds = {"x": DATA.astype(dtype), "i": np.array([[1, 0], [0, -1], [1, 0]]), "u": updates}
    model = _model("ScatterND", feeds, 18, reduction=reduction)
    expected = feeds["x"].copy()
    function = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    function.at(expected, tuple(feeds["i"].T), updates)
    convert_and_check(model, target, feeds, [expected])


@pytest.mark.parametrize("target", [17, 15, 13, 10])
@pytest.mark.parametrize("axis", [0, 1, -1])
@REDUCTIONS
def test_rewrites_reductions_of_scatter_elements(reduction: str, axis: int, target: int) -> None:
    indices = np.array([[[1, 0, 1], [-1, 1, 0], [0, 0, -1]]])
    feeds = {"x": DATA, "i": indices, "u": np.linspace(-9, 9, 9, dtype=np.float32).reshape(1, 3, 3)}
    convert_and_check(_model("ScatterElements", feeds, 18, axis=axis, reduction=reduction), target, feeds)


NO_REDUCTION: tuple[dict[str, Any], ...] = ({}, {"reduction": "none"})


@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
def test_drops_reduction_none(op: str) -> None:
    indices = np.array([[[0, 1, 2]]]) if op == "ScatterND" else np.zeros((1, 1, 1), np.int64)
    updates = np.ones((1, 1) if op == "ScatterND" else (1, 1, 1), np.float32)
    feeds = {"x": DATA, "i": indices, "u": updates}
    for attributes in NO_REDUCTION:
        result = convert_and_check(_model(op, feeds, 18, **attributes), 13, feeds)
        assert op_types(result) == [op]
        assert "reduction" not in [each.name for each in result.graph.node[0].attribute]


def test_refuses_reductions_of_index_tuples_of_unknown_size() -> None:
    feeds = {"x": DATA, "i": np.array([[0]]), "u": DATA[:1]}
    refused = refusal_of(_model("ScatterND", feeds, 18, shapes=False, reduction="add"), 15)
    assert refused.reason == "the last dimension of the index tuples 'i' is unknown"
