"""Negative axes and indices become nonnegative below opset 11."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types, run

from opshift import convert_version

DATA = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
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


def _model(
    op: str, attributes: dict[str, Any], element_type: int, rank_known: bool = True
) -> onnx.ModelProto:
    inputs = ["x", "x"] if op == "Concat" else ["x"]
    node = helper.make_node(op, inputs, ["y"], name="node", **attributes)
    return build([node], {"x": DATA}, {"y": element_type}, 11, shapes=rank_known)


def _attributes(model: onnx.ModelProto) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in model.graph.node[0].attribute}


@pytest.mark.parametrize("target", [10, 8, 7])
@pytest.mark.parametrize(
    ("op", "attributes", "nonnegative", "element_type"),
    [pytest.param(*each, id=each[0]) for each in OPERATORS],
)
def test_makes_axes_nonnegative(
    op: str, attributes: dict[str, Any], nonnegative: dict[str, Any], element_type: int, target: int
) -> None:
    result = convert_and_check(_model(op, attributes, element_type), target, {"x": DATA})
    assert _attributes(result) == nonnegative
    assert op_types(result) == [op]


@pytest.mark.parametrize(
    ("op", "attributes", "nonnegative", "element_type"),
    [pytest.param(*each, id=each[0]) for each in OPERATORS],
)
def test_refuses_negative_axes_of_unknown_rank(
    op: str, attributes: dict[str, Any], nonnegative: dict[str, Any], element_type: int
) -> None:
    refused = refusal_of(_model(op, attributes, element_type, rank_known=False), 10)
    assert refused.reason == "the rank of 'x' is unknown"
    result = convert_and_check(_model(op, nonnegative, element_type, rank_known=False), 10, {"x": DATA})
    assert _attributes(result) == nonnegative


@pytest.mark.parametrize("target", [10, 9, 7, 5])
@pytest.mark.parametrize(
    ("op", "axes", "shape"),
    [
        ("Unsqueeze", [-1], (2, 3)),
        ("Unsqueeze", [-1, -2], (2, 0)),
        ("Unsqueeze", [-1], ()),
        ("Squeeze", [-1], (2, 0, 3, 1)),
        ("Squeeze", [-2, -1], (1, 1)),
    ],
)
def test_reshapes_last_axes_of_unknown_rank(
    op: str, axes: list[int], shape: tuple[int, ...], target: int
) -> None:
    feeds = {"x": np.ones(shape, np.float32)}
    node = helper.make_node(op, ["x"], ["y"], name="node", axes=axes)
    convert_and_check(build([node], feeds, ["y"], 11, shapes=False), target, feeds)


def test_makes_squeeze_axes_nonnegative() -> None:
    feeds = {"x": DATA.reshape(2, 1, 3, 1, 4)}
    node = helper.make_node("Squeeze", ["x"], ["y"], name="node", axes=[-2, 1])
    result = convert_and_check(build([node], feeds, ["y"], 11), 10, feeds)
    assert _attributes(result) == {"axes": [1, 3]}


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("axis", [-1, 1])
def test_makes_compress_axis_nonnegative(axis: int, target: int) -> None:
    feeds = {"x": DATA, "kept": np.array([True, False, True])}
    node = helper.make_node("Compress", ["x", "kept"], ["y"], name="node", axis=axis)
    convert_and_check(build([node], feeds, ["y"], 11), target, feeds)


SIZES = pytest.mark.parametrize("shapes", [True, False], ids=["known size", "unknown size"])
INDICES = pytest.mark.parametrize(
    "indices",
    [np.array([0, 2, 1]), np.array([[-1, 0], [-3, 2]]), np.array(-2), np.array([-1, 1], np.int32)],
    ids=["none negative", "some negative", "scalar", "int32"],
)


@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("axis", [1, -2])
@SIZES
@INDICES
def test_makes_gather_indices_nonnegative(
    indices: Array, shapes: bool, axis: int, constant: bool, target: int
) -> None:
    feeds = {"x": DATA} | ({} if constant else {"i": indices})
    node = helper.make_node("Gather", ["x", "i"], ["y"], name="node", axis=axis)
    constants = {"i": indices} if constant else None
    result = convert_and_check(
        build([node], feeds, ["y"], 11, initializers=constants, shapes=shapes), target, feeds
    )
    if constant and (shapes or indices.min() >= 0):
        assert op_types(result) == ["Gather"]


def test_assumes_nonnegative_indices_if_allowed() -> None:
    feeds = {"x": DATA, "i": np.array([1, 0])}
    model = build([helper.make_node("Gather", ["x", "i"], ["y"])], feeds, ["y"], 11)
    result = convert_version(model, 10, allow="assume-nonnegative")
    assert op_types(result) == ["Gather"]
    assert np.array_equal(run(result, feeds)[0], DATA[[1, 0]])


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("axis", [1, -2])
@SIZES
def test_makes_scatter_indices_nonnegative(axis: int, shapes: bool, target: int) -> None:
    feeds = {"x": DATA, "i": np.array([[[-1, 0, 1, 2]]]), "u": np.full((1, 1, 4), 9, np.float32)}
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], name="node", axis=axis)
    result = convert_and_check(build([node], feeds, ["y"], 11, shapes=shapes), target, feeds)
    assert op_types(result)[-1] == "Scatter"


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("axis", [-1, 0, -2])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize(
    "indices",
    [np.array([0, 2, 5]), np.array([-1, -3, -4, 3, -5]), np.array([-1.0, 2.0], np.float32)],
    ids=["none negative", "in and out of range", "floats"],
)
def test_makes_one_hot_indices_nonnegative(indices: Array, constant: bool, axis: int, target: int) -> None:
    constants = {"d": np.array([3]), "v": np.array([-1, 7], np.float32)} | (
        {"i": indices} if constant else {}
    )
    feeds = {} if constant else {"i": indices}
    node = helper.make_node("OneHot", ["i", "d", "v"], ["y"], name="node", axis=axis)
    if indices.dtype == np.float32:
        constants["d"] = constants["d"].astype(np.float32)
    convert_and_check(build([node], feeds, ["y"], 11, initializers=constants), target, feeds)


def test_makes_one_hot_indices_of_computed_depth_nonnegative() -> None:
    feeds = {"i": np.array([[-1, -3], [-4, 2]]), "d": np.array(3)}
    node = helper.make_node("OneHot", ["i", "d", "v"], ["y"], name="node", axis=1)
    model = build([node], feeds, ["y"], 11, initializers={"v": np.array([0, 1], np.float32)})
    convert_and_check(model, 9, feeds)
