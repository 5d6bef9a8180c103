"""Where, OneHot and Compress below the opset that introduced them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, run

RANDOM = np.random.default_rng(0)
DTYPES = (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, np.bool_)
DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _random(shape: tuple[int, ...], dtype: type) -> Array:
    return np.asarray(RANDOM.integers(-2, 3, shape)).astype(dtype)


def _element_type(array: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param([(3, 4), (3, 4), (3, 4)], id="same shape"),
        pytest.param([(3, 1), (2, 1, 4), ()], id="all inputs broadcast"),
        pytest.param([(2, 3, 4), (4,), (1, 1)], id="condition of the output shape"),
        pytest.param([(), (), ()], id="scalars"),
    ],
)
def test_rewrites_where(shapes: list[tuple[int, ...]], dtype: type, target: int) -> None:
    condition: Array = np.asarray(RANDOM.random(shapes[0]) < 0.5)
    first, second = (_random(shape, dtype) for shape in shapes[1:])
    if np.issubdtype(dtype, np.floating):
        first = np.where(first == 1, np.array(math.nan, dtype), first)
        second = np.where(second == 1, np.array(math.inf, dtype), second)
    feeds: dict[str, Array] = {"c": condition, "x": first, "z": second}
    node = helper.make_node("Where", list(feeds), ["y"], name="node")
    model = build([node], feeds, {"y": _element_type(first)}, 9)
    convert_and_check(model, target, feeds, [np.where(condition, first, second)], 0)


def test_rewrites_where_of_strings() -> None:
    condition: Array = np.array([[True], [False]])
    strings = [np.array(["a", "b"], object), np.array([["c", "d"], ["e", "f"]], object)]
    model = build(
        [helper.make_node("Where", ["c", "x", "z"], ["y"], name="node")],
        {"c": condition},
        {"y": TensorProto.STRING},
        9,
    )
    for name, string in zip("xz", strings, strict=True):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.STRING, string.shape))
    feeds: dict[str, Array] = {"c": condition, "x": strings[0], "z": strings[1]}
    convert_and_check(model, 8, feeds, [np.where(condition, *strings)])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3)], ids=["with elements", "empty"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rewrites_where_of_floats_of_unknown_shape(dtype: type, shape: tuple[int, ...], target: int) -> None:
    feeds: dict[str, Array] = {
        "c": RANDOM.random(shape) < 0.5,
        "x": np.array([math.nan, -math.inf, -0.0], dtype),
        "z": np.full((shape[0], 1), math.inf, dtype),
    }
    node = helper.make_node("Where", list(feeds), ["y"], name="node")
    model = build([node], feeds, {"y": _element_type(feeds["x"])}, 9, shapes=False)
    convert_and_check(model, target, feeds, [np.where(*feeds.values())], 0)


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("first", [(2, 3), (1, 3), (4, 2, 3)], ids=["same shape", "row", "more dimensions"])
@pytest.mark.parametrize(
    ("number", "other"), [(-math.inf, -0.0), (math.nan, 0.0)], ids=["infinity", "not a number"]
)
def test_rewrites_where_of_two_numbers(
    number: float, other: float, first: tuple[int, ...], target: int
) -> None:
    """One value is a constant, the other one is filled with a number at run time."""
    condition: Array = RANDOM.random((2, 3)) < 0.5
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [number])
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["x"], value=value),
        helper.make_node("Where", ["c", "x", "z"], ["y"], name="node"),
    ]
    feeds: dict[str, Array] = {"c": condition, "s": np.array(first)}
    model = build(nodes, feeds, ["y"], 9, initializers={"z": np.full((1, 1), other, np.float32)})
    expected = np.where(condition, np.full(first, number, np.float32), np.float32(other))
    converted = convert_and_check(model, target, feeds, [expected], 0)
    assert np.array_equal(np.signbit(run(converted, feeds)[0]), np.signbit(expected))
    assert converted.graph.node[-1].op_type == "Gather"


@pytest.mark.parametrize("chosen", [True, False])
def test_replaces_where_of_a_constant_condition_by_a_value(chosen: bool) -> None:
    feeds: dict[str, Array] = {"x": _random((2, 3), np.float32), "z": _random((2, 3), np.float32)}
    node = helper.make_node("Where", ["c", "x", "z"], ["y"], name="node")
    model = build([node], feeds, ["y"], 9, initializers={"c": np.full((1, 3), chosen)})
    converted = convert_and_check(model, 8, feeds)
    assert [each.op_type for each in converted.graph.node] == ["Identity"]


def test_refuses_where_of_strings_of_unknown_shape() -> None:
    model = build(
        [helper.make_node("Where", ["c", "x", "x"], ["y"])],
        {"c": np.ones(2, np.bool_)},
        {"y": TensorProto.STRING},
        9,
    )
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.STRING, None))
    refused = refusal_of(model, 8)
    assert refused.reason == "the shape of the output is unknown, but Gather by position requires it"
    assert refused.remedy.startswith("declare the shape of 'x' with --shape x=...")
    assert "or convert to opset 9 or later" in refused.remedy


def test_rewrites_where_of_integers_of_unknown_shape() -> None:
    feeds: dict[str, Array] = {"c": np.array([True, False]), "x": np.array([7, 8]), "z": np.array([[1], [2]])}
    node = helper.make_node("Where", list(feeds), ["y"], name="node")
    model = build([node], feeds, {"y": TensorProto.INT64}, 9, shapes=False)
    convert_and_check(model, 7, feeds, [np.where(feeds["c"], feeds["x"], feeds["z"])])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.uint8])
def test_rewrites_one_hot(dtype: type, axis: int, target: int) -> None:
    indices: Array = np.array([[0, 2, 1], [4, 7, 3]], dtype)
    constants: dict[str, Array] = {"d": np.array(5, np.int64), "v": np.array([-1.5, math.inf], np.float32)}
    node = helper.make_node("OneHot", ["x", "d", "v"], ["y"], name="node", axis=axis)
    model = build([node], {"x": indices}, ["y"], 9, initializers=constants)
    position = axis if axis >= 0 else axis + 3
    hot = np.moveaxis(indices[..., None].astype(np.int64) == np.arange(5), -1, position)
    convert_and_check(model, target, {"x": indices}, [np.where(hot, *constants["v"][::-1])])


@pytest.mark.parametrize(
    ("values", "last"),
    [
        ([0.0, 1.0], "Cast"),
        ([-0.0, 1.0], "Gather"),
        ([1.0, 0.0], "Gather"),
        (np.array([0, 1], np.int8), "Cast"),
        ([False, True], "Gather"),
    ],
)
def test_rewrites_one_hot_of_zero_and_one_to_cast(values: object, last: str) -> None:
    array: Array = np.array(values)
    indices: Array = np.array([[0, 2, 1], [4, 7, 3]])
    constants: dict[str, Array] = {"d": np.array(5, np.int64), "v": array}
    node = helper.make_node("OneHot", ["x", "d", "v"], ["y"], name="node")
    model = build([node], {"x": indices}, {"y": _element_type(array)}, 9, initializers=constants)
    expected = np.where(indices[..., None] == np.arange(5), *array[::-1])
    converted = convert_and_check(model, 8, {"x": indices}, [expected])
    assert converted.graph.node[-1].op_type == last


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("depth", [np.array(4), np.array([4], np.float32)], ids=["int64", "float vector"])
def test_rewrites_one_hot_of_computed_depth(depth: Array, axis: int, target: int) -> None:
    feeds: dict[str, Array] = {"x": np.array([1, 5, 3, 0]), "d": depth}
    values: dict[str, Array] = {"v": np.array([-1, 7], np.float32)}
    node = helper.make_node("OneHot", ["x", "d", "v"], ["y"], name="node", axis=axis)
    model = build([node], feeds, ["y"], 9, initializers=values)
    hot = feeds["x"][:, None] == np.arange(4)
    convert_and_check(model, target, feeds, [np.where(hot if axis else hot.T, *values["v"][::-1])])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [None, 0, 2])
def test_rewrites_compress_with_constant_condition(axis: int | None, target: int) -> None:
    condition: Array = np.array([True, False] if axis == 0 else [False, True, True])
    attributes = {} if axis is None else {"axis": axis}
    node = helper.make_node("Compress", ["x", "c"], ["y"], name="node", **attributes)
    model = build([node], {"x": DATA}, ["y"], 9, initializers={"c": condition})
    convert_and_check(model, target, {"x": DATA}, [np.compress(condition, DATA, axis)])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [None, 0, 2])
def test_rewrites_compress_with_computed_condition(axis: int | None, target: int) -> None:
    feeds: dict[str, Array] = {"x": DATA, "c": np.array([True, False] if axis == 0 else [False, True, True])}
    attributes = {} if axis is None else {"axis": axis}
    node = helper.make_node("Compress", ["x", "c"], ["y"], name="node", **attributes)
    expected = np.compress(feeds["c"], DATA, axis)
    convert_and_check(build([node], feeds, ["y"], 9), target, feeds, [expected])
