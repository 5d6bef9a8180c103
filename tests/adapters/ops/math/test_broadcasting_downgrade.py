"""Downgrade of elementwise operators: broadcasting of inputs below opset 8 and below opset 7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, assert_equal, build, op_types, run, run_reference
from support.old_operators import assert_round_trip

from opshift import convert_version

Shape = tuple[int, ...]
RANDOM = np.random.default_rng(0)


def _random(shape: Shape, dtype: Any = np.float32) -> Array:
    values: Array = np.asarray(RANDOM.random(shape) * 4 + 1, dtype)
    return values


def _model(
    op_type: str, shapes: Sequence[Shape], opset: int = 7, dtype: Any = np.float32, output: int = 1
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {f"x{i}": _random(shape, dtype) for i, shape in enumerate(shapes)}
    node = helper.make_node(op_type, list(feeds), ["y"], name="node")
    return build([node], feeds, {"y": output}, opset), feeds


BROADCAST_CASES = [
    pytest.param((2, 3), (2, 3), {}, ["Div"], id="equal shapes"),
    pytest.param((2, 3, 4), (4,), {"broadcast": 1}, ["Div"], id="last dimension"),
    pytest.param((2, 3, 4), (3, 4), {"broadcast": 1}, ["Div"], id="last dimensions"),
    pytest.param((2, 3, 4), (), {"broadcast": 1}, ["Div"], id="scalar"),
    pytest.param((2, 3, 4), (1, 1), {"broadcast": 1}, ["Div"], id="single element"),
    pytest.param((2, 3, 4), (1, 4), {"broadcast": 1}, ["Reshape", "Div"], id="leading ones"),
    pytest.param((2, 3, 4), (3, 1), {"broadcast": 1, "axis": 1}, ["Reshape", "Div"], id="trailing ones"),
    pytest.param(
        (2, 3, 4, 5), (3, 4, 1), {"broadcast": 1, "axis": 1}, ["Reshape", "Div"], id="middle dimensions"
    ),
    pytest.param((2, 3, 4), (2, 1, 4), {}, ["Tile", "Div"], id="repeated middle dimension"),
    pytest.param((3, 4), (2, 3, 4), {}, ["Unsqueeze", "Tile", "Div"], id="repeated first input"),
    pytest.param((2, 1), (1, 3), {}, ["Tile", "Tile", "Div"], id="both inputs repeated"),
    pytest.param((3,), (1, 3), {}, ["Unsqueeze", "Div"], id="first input of lower rank"),
    pytest.param((2, 0), (1, 1, 0), {}, ["Unsqueeze", "Tile", "Div"], id="empty dimension"),
]


@pytest.mark.parametrize(("first", "second", "attributes", "expected_nodes"), BROADCAST_CASES)
def test_broadcasts_below_opset_7(
    first: Shape, second: Shape, attributes: dict[str, int], expected_nodes: Sequence[str]
) -> None:
    model, feeds = _model("Div", (first, second))
    result = assert_round_trip(model, 6, feeds)
    assert op_types(result) == expected_nodes
    assert {each.name: each.i for each in result.graph.node[-1].attribute} == attributes


@pytest.mark.parametrize("op_type", ["Add", "Mul", "Greater", "Less"])
def test_swaps_inputs(op_type: str) -> None:
    model, feeds = _model(
        op_type, ((4,), (3, 4)), output=1 if op_type in ("Add", "Mul") else TensorProto.BOOL
    )
    node = assert_round_trip(model, 6, feeds).graph.node[0]
    assert list(node.input) == ["x1", "x0"]
    assert node.op_type == {"Greater": "Less", "Less": "Greater"}.get(op_type, op_type)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Pow", "Greater", "Less"])
def test_converts_to_the_first_version(op_type: str) -> None:
    output = TensorProto.BOOL if op_type in ("Greater", "Less") else 1
    assert_round_trip(*_to_opset_5(_model(op_type, ((2, 3, 4), (3, 1)), output=output)))


@pytest.mark.parametrize("op_type", ["And", "Or", "Xor", "Equal"])
def test_converts_boolean_operators_to_the_first_version(op_type: str) -> None:
    assert_round_trip(
        *_to_opset_5(_model(op_type, ((2, 3, 4), (4,)), dtype=np.bool_, output=TensorProto.BOOL))
    )


def _to_opset_5(
    case: tuple[onnx.ModelProto, dict[str, Array]],
) -> tuple[onnx.ModelProto, int, dict[str, Array]]:
    return case[0], 5, case[1]


def test_needs_no_shapes_for_identical_inputs() -> None:
    data = {"x": _random((2, 3))}
    model = build([helper.make_node("Add", ["x", "x"], ["y"])], data, ["y"], 7, shapes=False)
    assert not convert_version(model, 6).graph.node[0].attribute


def test_refuses_unknown_shapes() -> None:
    data = {"x": _random((2, 3)), "z": _random((3,))}
    model = build([helper.make_node("Add", ["x", "z"], ["y"])], data, ["y"], 7, shapes=False)
    assert refusal_of(model, 6).reason.startswith("the shapes of 'x', 'z' must be fully known")


@pytest.mark.parametrize("op_type", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param(((2, 3), (2, 3), (2, 3)), id="equal shapes"),
        pytest.param(((2, 3), (3,), ()), id="different shapes"),
        pytest.param(((2, 1), (1, 3)), id="both inputs broadcast"),
        pytest.param(((2, 3),), id="single input"),
    ],
)
@pytest.mark.parametrize("target", [7, 6])
def test_broadcasts_inputs_of_variadic_operators(op_type: str, shapes: Sequence[Shape], target: int) -> None:
    model, feeds = _model(op_type, shapes, 8)
    if target == 7:
        convert_and_check(model, 7, feeds)
    else:
        assert_round_trip(model, 6, feeds)


@pytest.mark.parametrize("op_type", ["Max", "Min"])
@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param(((2, 4), (4,), ()), id="different ranks"),
        pytest.param(((2, 1), (1, 4)), id="both inputs broadcast"),
        pytest.param(((0, 4), (1, 1)), id="no elements"),
    ],
)
def test_preserves_special_values_of_unknown_shapes(op_type: str, shapes: Sequence[Shape]) -> None:
    """The nodes added for broadcasting preserve NaN, infinity and the sign of zero."""
    special_values: Array = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    feeds = {f"x{i}": np.resize(special_values, shape) for i, shape in enumerate(shapes)}
    node = helper.make_node(op_type, list(feeds), ["y"], name="node")
    model = build([node], feeds, ["y"], 8, shapes=False)
    result = convert_and_check(model, 7, feeds)
    assert np.array_equal(np.signbit(run(result, feeds)[0]), np.signbit(run(model, feeds)[0]))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint64], ids=str)
@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_converts_max_and_min_of_integers(op_type: str, dtype: Any) -> None:
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model, feeds = _model(op_type, ((2, 3), (3,), ()), 12, dtype, element_type)
    if dtype is np.uint64:
        assert (
            op_types(convert_version(model, 11))
            == [
                "Greater" if op_type == "Max" else "Less",
                "Where",
            ]
            * 2
        )
        return
    convert_and_check(model, 11, feeds)


FORMULA = ["Neg", "Relu", "Mul", "Relu", "Sub"]
SELECTION = ["Less", "Cast", "Pow", "Mul"]

SLOPE_CASES = [
    pytest.param((3, 1, 1), ["Reshape", "PRelu"], id="one per channel"),
    pytest.param((1, 3, 1, 1), ["Reshape", "PRelu"], id="one per channel, rank 4"),
    pytest.param((1,), ["PRelu"], id="single slope"),
    pytest.param((), ["Reshape", "PRelu"], id="scalar"),
    pytest.param((5,), FORMULA, id="one per column"),
    pytest.param((2, 1, 1, 1), ["Reshape", *FORMULA], id="one per sample"),
    pytest.param((2, 3, 4, 5), FORMULA, id="one per element"),
]


@pytest.mark.parametrize(("slope", "expected_nodes"), SLOPE_CASES)
def test_converts_prelu_slopes(slope: Shape, expected_nodes: Sequence[str]) -> None:
    feeds = {"x": _random((2, 3, 4, 5)) - 3}
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    model = build([node], feeds, ["y"], 7, initializers={"slope": _random(slope)})
    assert sorted(op_types(assert_round_trip(model, 6, feeds))) == sorted(expected_nodes)


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize(
    ("slope", "expected_nodes"), [(2.0, FORMULA), (np.inf, SELECTION), (np.nan, SELECTION)]
)
def test_multiplies_only_negative_data_by_infinite_slopes(
    slope: float, expected_nodes: Sequence[str], constant: bool
) -> None:
    data: Array = np.array([-2, -1, 0, 1, 2, np.inf, -np.inf, np.nan], np.float32)
    slopes: Array = np.array([[slope], [-1]], np.float32) * np.ones_like(data)
    fed = {"x": np.stack([data, data])}
    feeds = fed if constant else {**fed, "slope": slopes}
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    model = build([node], feeds, ["y"], 7, initializers={"slope": slopes} if constant else None)
    result = convert_version(model, 6)
    assert sorted(op_types(result)) == sorted(expected_nodes if constant else SELECTION)
    # onnxruntime has no kernels of opset 6
    assert_equal(run_reference(result, feeds), run(model, feeds), 0)


def test_refuses_slope_of_unknown_rank() -> None:
    feeds = {"x": _random((2, 3)), "slope": _random((3,))}
    model = build([helper.make_node("PRelu", ["x", "slope"], ["y"])], feeds, ["y"], 7, shapes=False)
    assert refusal_of(model, 6).reason == "the rank of 'slope' is unknown"
