"""Squeeze, Unsqueeze and Reshape before their axes were inputs, and before 0 could stand for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build, op_types

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
X = np.arange(24, dtype=np.float32).reshape(2, 1, 3, 1, 4)


def _model(
    op: str, data: Array, second: Sequence[int], *, constant: bool, opset: int = 21, **attributes: int
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    given = {"s": np.array(second, np.int64)}
    feeds = {"x": data} | ({} if constant else given)
    node = helper.make_node(op, ["x", "s"], ["y"], name="node" if constant else "", **attributes)
    return build([node], feeds, ["y"], opset, initializers=given if constant else None), feeds


AXES = pytest.mark.parametrize(
    ("op", "axes"),
    [
        ("Squeeze", [1]),
        ("Squeeze", [-2]),
        ("Squeeze", [-2, 1]),
        ("Unsqueeze", [0]),
        ("Unsqueeze", [-1]),
        ("Unsqueeze", [3, -1, 0]),
    ],
)


@pytest.mark.parametrize("target", [13, 12, 11, 10, 9, 7])
@AXES
def test_constant_axes(op: str, axes: list[int], target: int, converted: Converted) -> None:
    model, feeds = _model(op, X, axes, constant=True)
    assert op_types(converted(model, target, feeds)) == [op]


@pytest.mark.parametrize("target", [13, 12, 11, 10, 9])
@AXES
def test_computed_axes(op: str, axes: list[int], target: int, converted: Converted) -> None:
    model, feeds = _model(op, X, axes, constant=False)
    converted(model, target, feeds)


@pytest.mark.parametrize("target", [12, 9])
def test_a_scalar_gets_computed_axes(target: int, converted: Converted) -> None:
    model, feeds = _model("Unsqueeze", np.array(3, np.float32), [0, 1], constant=False)
    converted(model, target, feeds)


@pytest.mark.parametrize("op", ["Squeeze", "Unsqueeze"])
def test_computed_axes_of_data_that_may_be_empty(op: str, refusal: Refusing) -> None:
    model, _ = _model(op, np.zeros((0, 1), np.float32), [1], constant=False)
    found = refusal(model, 12)
    assert found.reason == "the axes 's' are not constant, and a dimension of 'x' is 0 or unknown"


@pytest.mark.parametrize("target", [13, 9, 7])
def test_all_dimensions_of_one(target: int, converted: Converted) -> None:
    node = helper.make_node("Squeeze", ["x"], ["y"], name="node")
    result = converted(build([node], {"x": X}, ["y"], 13), target, {"x": X})
    assert op_types(result) == ["Squeeze"]


FULL, EMPTY = np.arange(24, dtype=np.float32).reshape(4, 6), np.zeros((0, 3, 4), np.float32)


@pytest.mark.parametrize("target", [13, 12, 10, 9])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("shapes", [True, False], ids=["sizes known", "sizes not known"])
@pytest.mark.parametrize(
    ("data", "shape"),
    [
        pytest.param(FULL, [2, 12], id="no 0"),
        pytest.param(FULL, [3, -1, 2], id="one inferred"),
        pytest.param(EMPTY, [3, 4, 0], id="a 0 elsewhere"),
        pytest.param(EMPTY, [0, 5, 0], id="more zeros"),
        pytest.param(EMPTY, [3, -1], id="a 0 that is inferred"),
    ],
)
def test_zero_stands_for_itself(
    data: Array, shape: list[int], shapes: bool, constant: bool, target: int, converted: Converted
) -> None:
    model, feeds = _model("Reshape", data, shape, constant=constant, opset=14, allowzero=1)
    model.graph.node[0].name = ""
    if not shapes:
        for each in model.graph.input[0].type.tensor_type.shape.dim:
            each.ClearField("dim_value")
    converted(model, target, feeds)


def test_a_shape_without_zero_needs_no_more(converted: Converted) -> None:
    model, feeds = _model("Reshape", FULL, [2, -1], constant=True, opset=14, allowzero=1)
    assert op_types(converted(model, 13, feeds)) == ["Reshape"]
    model, feeds = _model("Reshape", FULL, [2, -1], constant=False, opset=14, allowzero=1)
    assert op_types(converted(model, 13, feeds)) == ["Reshape"]
