"""Elementwise operators on their way down: how one input is stretched to the other before 8, and before 7."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.old import there_and_back
from support.running import Array, build, op_types, run

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
Shape = tuple[int, ...]
RANDOM = np.random.default_rng(0)


def _numbers(shape: Shape, kind: Any = np.float32) -> Array:
    values: Array = np.asarray(RANDOM.random(shape) * 4 + 1, kind)
    return values


def _model(
    op_type: str, shapes: Sequence[Shape], opset: int = 7, kind: Any = np.float32, output: int = 1
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {f"x{i}": _numbers(shape, kind) for i, shape in enumerate(shapes)}
    node = helper.make_node(op_type, list(feeds), ["y"], name="node")
    return build([node], feeds, {"y": output}, opset), feeds


ATTRIBUTES = [
    pytest.param((2, 3), (2, 3), {}, ["Div"], id="equal shapes"),
    pytest.param((2, 3, 4), (4,), {"broadcast": 1}, ["Div"], id="the last dimension"),
    pytest.param((2, 3, 4), (3, 4), {"broadcast": 1}, ["Div"], id="the last dimensions"),
    pytest.param((2, 3, 4), (), {"broadcast": 1}, ["Div"], id="a scalar"),
    pytest.param((2, 3, 4), (1, 1), {"broadcast": 1}, ["Div"], id="one element"),
    pytest.param((2, 3, 4), (1, 4), {"broadcast": 1}, ["Reshape", "Div"], id="leading ones"),
    pytest.param((2, 3, 4), (3, 1), {"broadcast": 1, "axis": 1}, ["Reshape", "Div"], id="trailing ones"),
    pytest.param(
        (2, 3, 4, 5), (3, 4, 1), {"broadcast": 1, "axis": 1}, ["Reshape", "Div"], id="in the middle"
    ),
    pytest.param((2, 3, 4), (2, 1, 4), {}, ["Tile", "Div"], id="ones in between are repeated"),
    pytest.param((3, 4), (2, 3, 4), {}, ["Unsqueeze", "Tile", "Div"], id="the first is repeated"),
    pytest.param((2, 1), (1, 3), {}, ["Tile", "Tile", "Div"], id="both are repeated"),
    pytest.param((3,), (1, 3), {}, ["Unsqueeze", "Div"], id="the first has fewer dimensions"),
    pytest.param((2, 0), (1, 1, 0), {}, ["Unsqueeze", "Tile", "Div"], id="a dimension of no elements"),
]


@pytest.mark.parametrize(("first", "second", "attributes", "nodes"), ATTRIBUTES)
def test_stretching(first: Shape, second: Shape, attributes: dict[str, int], nodes: Sequence[str]) -> None:
    model, feeds = _model("Div", (first, second))
    result = there_and_back(model, 6, feeds)
    assert op_types(result) == nodes
    assert {each.name: each.i for each in result.graph.node[-1].attribute} == attributes


@pytest.mark.parametrize("op_type", ["Add", "Mul", "Greater", "Less"])
def test_the_inputs_change_places(op_type: str) -> None:
    model, feeds = _model(
        op_type, ((4,), (3, 4)), output=1 if op_type in ("Add", "Mul") else TensorProto.BOOL
    )
    node = there_and_back(model, 6, feeds).graph.node[0]
    assert list(node.input) == ["x1", "x0"]
    assert node.op_type == {"Greater": "Less", "Less": "Greater"}.get(op_type, op_type)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Pow", "Greater", "Less"])
def test_every_operator_goes_down_to_the_first_version(op_type: str) -> None:
    output = TensorProto.BOOL if op_type in ("Greater", "Less") else 1
    there_and_back(*_into(_model(op_type, ((2, 3, 4), (3, 1)), output=output)))


@pytest.mark.parametrize("op_type", ["And", "Or", "Xor", "Equal"])
def test_booleans(op_type: str) -> None:
    there_and_back(*_into(_model(op_type, ((2, 3, 4), (4,)), kind=np.bool_, output=TensorProto.BOOL)))


def _into(built: tuple[onnx.ModelProto, dict[str, Array]]) -> tuple[onnx.ModelProto, int, dict[str, Array]]:
    return built[0], 5, built[1]


def test_a_value_and_itself_need_no_shapes() -> None:
    data = {"x": _numbers((2, 3))}
    model = build([helper.make_node("Add", ["x", "x"], ["y"])], data, ["y"], 7, shapes=False)
    assert not convert_version(model, 6).graph.node[0].attribute


def test_unknown_shapes_are_refused(refusal: Refusing) -> None:
    data = {"x": _numbers((2, 3)), "z": _numbers((3,))}
    model = build([helper.make_node("Add", ["x", "z"], ["y"])], data, ["y"], 7, shapes=False)
    assert refusal(model, 6).reason.startswith("the shapes of 'x', 'z' must be fully known")


@pytest.mark.parametrize("op_type", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param(((2, 3), (2, 3), (2, 3)), id="equal shapes"),
        pytest.param(((2, 3), (3,), ()), id="other shapes"),
        pytest.param(((2, 1), (1, 3)), id="both are stretched"),
        pytest.param(((2, 3),), id="one input"),
    ],
)
@pytest.mark.parametrize("target", [7, 6])
def test_variadic_operators(op_type: str, shapes: Sequence[Shape], target: int, converted: Converted) -> None:
    model, feeds = _model(op_type, shapes, 8)
    if target == 7:
        converted(model, 7, feeds)
    else:
        there_and_back(model, 6, feeds)


@pytest.mark.parametrize("op_type", ["Max", "Min"])
@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param(((2, 4), (4,), ()), id="other ranks"),
        pytest.param(((2, 1), (1, 4)), id="both are stretched"),
        pytest.param(((0, 4), (1, 1)), id="no elements"),
    ],
)
def test_extremes_of_unknown_shapes(op_type: str, shapes: Sequence[Shape], converted: Converted) -> None:
    """What is added to stretch them changes neither NaN nor infinity nor the sign of a zero."""
    odd: Array = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    feeds = {f"x{i}": np.resize(odd, shape) for i, shape in enumerate(shapes)}
    node = helper.make_node(op_type, list(feeds), ["y"], name="node")
    model = build([node], feeds, ["y"], 8, shapes=False)
    result = converted(model, 7, feeds)
    assert np.array_equal(np.signbit(run(result, feeds)[0]), np.signbit(run(model, feeds)[0]))


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.int8, np.uint64], ids=str)
@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_integers(op_type: str, kind: Any, converted: Converted) -> None:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    model, feeds = _model(op_type, ((2, 3), (3,), ()), 12, kind, element)
    if kind is np.uint64:
        assert op_types(convert_version(model, 11)) == [
            "Greater" if op_type == "Max" else "Less",
            "Where",
        ] * 2 + ["Identity"]
        return
    converted(model, 11, feeds)


SLOPES = [
    pytest.param((3, 1, 1), ["Reshape", "PRelu"], id="one a channel"),
    pytest.param((1, 3, 1, 1), ["Reshape", "PRelu"], id="one a channel, of four dimensions"),
    pytest.param((1,), ["PRelu"], id="one"),
    pytest.param((), ["Reshape", "PRelu"], id="a scalar"),
    pytest.param((5,), ["Neg", "Relu", "Mul", "Relu", "Sub"], id="one a column"),
    pytest.param((2, 1, 1, 1), ["Reshape", "Neg", "Relu", "Mul", "Relu", "Sub"], id="one a sample"),
    pytest.param((2, 3, 4, 5), ["Neg", "Relu", "Mul", "Relu", "Sub"], id="one an element"),
]


@pytest.mark.parametrize(("slope", "nodes"), SLOPES)
def test_slopes(slope: Shape, nodes: Sequence[str]) -> None:
    feeds = {"x": _numbers((2, 3, 4, 5)) - 3, "slope": _numbers(slope)}
    model = build([helper.make_node("PRelu", ["x", "slope"], ["y"])], feeds, ["y"], 7)
    assert sorted(op_types(there_and_back(model, 6, feeds))) == sorted(nodes)


def test_a_slope_of_unknown_rank(refusal: Refusing) -> None:
    feeds = {"x": _numbers((2, 3)), "slope": _numbers((3,))}
    model = build([helper.make_node("PRelu", ["x", "slope"], ["y"])], feeds, ["y"], 7, shapes=False)
    assert refusal(model, 6).reason == "the rank of 'slope' is unknown"
