"""Axes and indices that count from the back count from the front before 11."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, build, op_types, run

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
REDUCTIONS = ("L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
OPERATORS = [
    ("ArgMax", {"axis": -2}, {"axis": 1}, TensorProto.INT64),
    ("ArgMin", {"axis": -1, "keepdims": 0}, {"axis": 2, "keepdims": 0}, TensorProto.INT64),
    ("Softmax", {"axis": -1}, {"axis": 2}, TensorProto.FLOAT),
    ("LogSoftmax", {"axis": -2}, {"axis": 1}, TensorProto.FLOAT),
    ("Hardmax", {"axis": -1}, {"axis": 2}, TensorProto.FLOAT),
    ("Flatten", {"axis": -1}, {"axis": 2}, TensorProto.FLOAT),
    ("Split", {"axis": -3}, {"axis": 0}, TensorProto.FLOAT),
    ("Concat", {"axis": -2}, {"axis": 1}, TensorProto.FLOAT),
    ("Unsqueeze", {"axes": [-1, 1, -4]}, {"axes": [1, 2, 5]}, TensorProto.FLOAT),
    *((f"Reduce{name}", {"axes": [-1, 0]}, {"axes": [0, 2]}, TensorProto.FLOAT) for name in REDUCTIONS),
]


def _model(op: str, attributes: dict[str, Any], element: int, rank_known: bool = True) -> onnx.ModelProto:
    inputs = ["x", "x"] if op == "Concat" else ["x"]
    node = helper.make_node(op, inputs, ["y"], name="node", **attributes)
    return build([node], {"x": X}, {"y": element}, 11, shapes=rank_known)


def _stated(model: onnx.ModelProto) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in model.graph.node[0].attribute}


@pytest.mark.parametrize("target", [10, 8, 7])
@pytest.mark.parametrize(
    ("op", "attributes", "positive", "element"), [pytest.param(*each, id=each[0]) for each in OPERATORS]
)
def test_axes(
    op: str,
    attributes: dict[str, Any],
    positive: dict[str, Any],
    element: int,
    target: int,
    converted: Converted,
) -> None:
    result = converted(_model(op, attributes, element), target, {"x": X})
    assert _stated(result) == positive
    assert op_types(result) == [op]


@pytest.mark.parametrize(
    ("op", "attributes", "positive", "element"), [pytest.param(*each, id=each[0]) for each in OPERATORS]
)
def test_axes_of_an_unknown_rank(
    op: str,
    attributes: dict[str, Any],
    positive: dict[str, Any],
    element: int,
    converted: Converted,
    refusal: Refusing,
) -> None:
    found = refusal(_model(op, attributes, element, rank_known=False), 10)
    assert found.reason == "the rank of 'x' is unknown"
    result = converted(_model(op, positive, element, rank_known=False), 10, {"x": X})
    assert _stated(result) == positive


def test_squeezed_axes(converted: Converted) -> None:
    feeds = {"x": X.reshape(2, 1, 3, 1, 4)}
    node = helper.make_node("Squeeze", ["x"], ["y"], name="node", axes=[-2, 1])
    result = converted(build([node], feeds, ["y"], 11), 10, feeds)
    assert _stated(result) == {"axes": [1, 3]}


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("axis", [-1, 1])
def test_the_axis_of_compress(axis: int, target: int, converted: Converted) -> None:
    feeds = {"x": X, "kept": np.array([True, False, True])}
    node = helper.make_node("Compress", ["x", "kept"], ["y"], name="node", axis=axis)
    converted(build([node], feeds, ["y"], 11), target, feeds)


SIZES = pytest.mark.parametrize("shapes", [True, False], ids=["size known", "size not known"])
INDICES = pytest.mark.parametrize(
    "indices",
    [np.array([0, 2, 1]), np.array([[-1, 0], [-3, 2]]), np.array(-2), np.array([-1, 1], np.int32)],
    ids=["none negative", "some negative", "a scalar", "int32"],
)


@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("axis", [1, -2])
@SIZES
@INDICES
def test_gathered_indices(
    indices: Array, shapes: bool, axis: int, constant: bool, target: int, converted: Converted
) -> None:
    feeds = {"x": X} | ({} if constant else {"i": indices})
    node = helper.make_node("Gather", ["x", "i"], ["y"], name="node", axis=axis)
    given = {"i": indices} if constant else None
    result = converted(build([node], feeds, ["y"], 11, initializers=given, shapes=shapes), target, feeds)
    if constant and (shapes or indices.min() >= 0):
        assert op_types(result) == ["Gather"]


def test_indices_may_be_taken_for_nonnegative() -> None:
    feeds = {"x": X, "i": np.array([1, 0])}
    model = build([helper.make_node("Gather", ["x", "i"], ["y"])], feeds, ["y"], 11)
    result = convert_version(model, 10, allow="assume-nonnegative")
    assert op_types(result) == ["Gather"]
    assert np.array_equal(run(result, feeds)[0], X[[1, 0]])


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("axis", [1, -2])
@SIZES
def test_scattered_indices(axis: int, shapes: bool, target: int, converted: Converted) -> None:
    feeds = {"x": X, "i": np.array([[[-1, 0, 1, 2]]]), "u": np.full((1, 1, 4), 9, np.float32)}
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], name="node", axis=axis)
    result = converted(build([node], feeds, ["y"], 11, shapes=shapes), target, feeds)
    assert op_types(result)[-1] == "Scatter"


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("axis", [-1, 0, -2])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize(
    "indices",
    [np.array([0, 2, 5]), np.array([-1, -3, -4, 3, -5]), np.array([-1.0, 2.0], np.float32)],
    ids=["none negative", "in range and beyond", "floats"],
)
def test_hot_indices(indices: Array, constant: bool, axis: int, target: int, converted: Converted) -> None:
    given = {"d": np.array([3]), "v": np.array([-1, 7], np.float32)} | ({"i": indices} if constant else {})
    feeds = {} if constant else {"i": indices}
    node = helper.make_node("OneHot", ["i", "d", "v"], ["y"], name="node", axis=axis)
    if indices.dtype == np.float32:
        given["d"] = given["d"].astype(np.float32)
    converted(build([node], feeds, ["y"], 11, initializers=given), target, feeds)


def test_hot_indices_of_a_computed_number_of_classes(converted: Converted) -> None:
    feeds = {"i": np.array([[-1, -3], [-4, 2]]), "d": np.array(3)}
    node = helper.make_node("OneHot", ["i", "d", "v"], ["y"], name="node", axis=1)
    model = build([node], feeds, ["y"], 11, initializers={"v": np.array([0, 1], np.float32)})
    converted(model, 9, feeds)
