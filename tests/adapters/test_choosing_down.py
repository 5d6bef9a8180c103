"""Where, OneHot, Compress, Scatter, Expand and ConstantOfShape, before they came."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.running import Array, build

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
RANDOM = np.random.default_rng(0)
KINDS = (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, np.bool_)
DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _drawn(shape: tuple[int, ...], kind: type) -> Array:
    return np.asarray(RANDOM.integers(-2, 3, shape)).astype(kind)


def _number(array: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param([(3, 4), (3, 4), (3, 4)], id="the same shape"),
        pytest.param([(3, 1), (2, 1, 4), ()], id="all are broadcast"),
        pytest.param([(2, 3, 4), (4,), (1, 1)], id="the condition has the shape"),
        pytest.param([(), (), ()], id="scalars"),
    ],
)
def test_one_of_two(shapes: list[tuple[int, ...]], kind: type, target: int, converted: Converted) -> None:
    condition: Array = np.asarray(RANDOM.random(shapes[0]) < 0.5)
    first, second = (_drawn(shape, kind) for shape in shapes[1:])
    if np.issubdtype(kind, np.floating):
        first = np.where(first == 1, np.array(math.nan, kind), first)
        second = np.where(second == 1, np.array(math.inf, kind), second)
    feeds: dict[str, Array] = {"c": condition, "x": first, "z": second}
    node = helper.make_node("Where", list(feeds), ["y"], name="node")
    model = build([node], feeds, {"y": _number(first)}, 9)
    converted(model, target, feeds, [np.where(condition, first, second)], 0)


def test_texts_are_chosen(converted: Converted) -> None:
    condition: Array = np.array([[True], [False]])
    texts = [np.array(["a", "b"], object), np.array([["c", "d"], ["e", "f"]], object)]
    model = build(
        [helper.make_node("Where", ["c", "x", "z"], ["y"], name="node")],
        {"c": condition},
        {"y": TensorProto.STRING},
        9,
    )
    for name, text in zip("xz", texts, strict=True):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.STRING, text.shape))
    feeds: dict[str, Array] = {"c": condition, "x": texts[0], "z": texts[1]}
    converted(model, 8, feeds, [np.where(condition, *texts)])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3)], ids=["some", "none"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_of_unknown_shape(
    kind: type, shape: tuple[int, ...], target: int, converted: Converted
) -> None:
    feeds: dict[str, Array] = {
        "c": RANDOM.random(shape) < 0.5,
        "x": np.array([math.nan, -math.inf, -0.0], kind),
        "z": np.full((shape[0], 1), math.inf, kind),
    }
    node = helper.make_node("Where", list(feeds), ["y"], name="node")
    model = build([node], feeds, {"y": _number(feeds["x"])}, 9, shapes=False)
    converted(model, target, feeds, [np.where(*feeds.values())], 0)


def test_texts_of_unknown_shape_are_refused(refusal: Refusing) -> None:
    model = build(
        [helper.make_node("Where", ["c", "x", "x"], ["y"])],
        {"c": np.ones(2, np.bool_)},
        {"y": TensorProto.STRING},
        9,
    )
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.STRING, None))
    found = refusal(model, 8)
    assert found.reason == "the shape of its output is unknown, but a selection by position requires it"
    assert found.remedy == "add a value_info with the shape of each input, or convert to opset 9 or later"


def test_integers_of_unknown_shape(converted: Converted) -> None:
    feeds: dict[str, Array] = {"c": np.array([True, False]), "x": np.array([7, 8]), "z": np.array([[1], [2]])}
    node = helper.make_node("Where", list(feeds), ["y"], name="node")
    model = build([node], feeds, {"y": TensorProto.INT64}, 9, shapes=False)
    converted(model, 7, feeds, [np.where(feeds["c"], feeds["x"], feeds["z"])])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("kind", [np.int64, np.float32, np.uint8])
def test_one_of_many(kind: type, axis: int, target: int, converted: Converted) -> None:
    indices: Array = np.array([[0, 2, 1], [4, 7, 3]], kind)
    given: dict[str, Array] = {"d": np.array(5, np.int64), "v": np.array([-1.5, math.inf], np.float32)}
    node = helper.make_node("OneHot", ["x", "d", "v"], ["y"], name="node", axis=axis)
    model = build([node], {"x": indices}, ["y"], 9, initializers=given)
    place = axis if axis >= 0 else axis + 3
    hot = np.moveaxis(indices[..., None].astype(np.int64) == np.arange(5), -1, place)
    converted(model, target, {"x": indices}, [np.where(hot, *given["v"][::-1])])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("depth", [np.array(4), np.array([4], np.float32)], ids=["int64", "float list"])
def test_one_of_a_computed_number(depth: Array, axis: int, target: int, converted: Converted) -> None:
    feeds: dict[str, Array] = {"x": np.array([1, 5, 3, 0]), "d": depth}
    values: dict[str, Array] = {"v": np.array([-1, 7], np.float32)}
    node = helper.make_node("OneHot", ["x", "d", "v"], ["y"], name="node", axis=axis)
    model = build([node], feeds, ["y"], 9, initializers=values)
    hot = feeds["x"][:, None] == np.arange(4)
    converted(model, target, feeds, [np.where(hot if axis else hot.T, *values["v"][::-1])])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [None, 0, 2])
def test_a_constant_condition(axis: int | None, target: int, converted: Converted) -> None:
    condition: Array = np.array([True, False] if axis == 0 else [False, True, True])
    attributes = {} if axis is None else {"axis": axis}
    node = helper.make_node("Compress", ["x", "c"], ["y"], name="node", **attributes)
    model = build([node], {"x": DATA}, ["y"], 9, initializers={"c": condition})
    converted(model, target, {"x": DATA}, [np.compress(condition, DATA, axis)])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [None, 0, 2])
def test_a_computed_condition(axis: int | None, target: int, converted: Converted) -> None:
    feeds: dict[str, Array] = {"x": DATA, "c": np.array([True, False] if axis == 0 else [False, True, True])}
    attributes = {} if axis is None else {"axis": axis}
    node = helper.make_node("Compress", ["x", "c"], ["y"], name="node", **attributes)
    expected = np.compress(feeds["c"], DATA, axis)
    converted(build([node], feeds, ["y"], 9), target, feeds, [expected])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_places_to_write(constant: bool, axis: int, target: int, converted: Converted) -> None:
    updates = -1 - RANDOM.random((2, 2, 3)).astype(np.float32)
    indices: Array = RANDOM.permuted(np.tile(np.arange(DATA.shape[axis]), (2, 2, 3, 1)), axis=-1)[..., 0]
    indices[...] = np.arange(updates.shape[axis]).reshape([-1 if at == axis else 1 for at in range(3)])
    indices[0, 0, 0] = min(indices[0, 0, 0], DATA.shape[axis] - 1)
    node = helper.make_node("Scatter", ["x", "i", "u"], ["y"], name="node", axis=axis)
    feeds: dict[str, Array] = {"x": DATA, "u": updates}
    given: dict[str, Array] = {"i": indices}
    feeds |= {} if constant else given
    model = build([node], feeds, ["y"], 9, initializers=given if constant else None)
    expected = DATA.copy()
    np.put_along_axis(
        expected[tuple(slice(None if at == axis else n) for at, n in enumerate((2, 2, 3)))],
        indices,
        updates,
        axis,
    )
    converted(model, target, feeds, [expected])


@pytest.mark.parametrize("kind", [*KINDS, np.float64])
@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        pytest.param((3, 1), (3, 4), id="one dimension"),
        pytest.param((3, 1), (2, 1, 6), id="more dimensions"),
        pytest.param((2, 3, 1), (4,), id="a shorter shape"),
        pytest.param((), (2, 2), id="a scalar"),
        pytest.param((2, 3), (1, 1), id="nothing"),
        pytest.param((2, 1), (2, 0), id="to nothing"),
    ],
)
@pytest.mark.parametrize(
    ("known", "shapes"),
    [
        pytest.param(True, True, id="known"),
        pytest.param(False, True, id="computed"),
        pytest.param(False, False, id="of unknown length"),
    ],
)
def test_expanding(
    shape: tuple[int, ...],
    wanted: tuple[int, ...],
    kind: type,
    known: bool,
    shapes: bool,
    converted: Converted,
) -> None:
    data: Array = np.asarray(RANDOM.integers(0, 2, shape)).astype(kind)
    given: dict[str, Array] = {"s": np.array(wanted, np.int64)}
    feeds: dict[str, Array] = {"x": data} if known else {"x": data, **given}
    node = helper.make_node("Expand", ["x", "s"], ["y"], name="node")
    outputs = {"y": _number(data)}
    model = build([node], feeds, outputs, 8, initializers=given if known else None, shapes=shapes)
    converted(model, 7, feeds, [data * np.ones(wanted, kind)])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("shape", [(2, 3), (4,), (), (0, 2)])
@pytest.mark.parametrize("value", [None, np.array([7], np.int32), np.array([True])])
def test_filling(value: Array | None, shape: tuple[int, ...], target: int, converted: Converted) -> None:
    stated = {} if value is None else {"value": numpy_helper.from_array(value)}
    filling = np.zeros(1, np.float32) if value is None else value
    feeds: dict[str, Array] = {"x": np.array(shape, np.int64)}
    node = helper.make_node("ConstantOfShape", ["x"], ["y"], name="node", **stated)
    model = build([node], feeds, {"y": _number(filling)}, 9)
    converted(model, target, feeds, [np.full(shape, filling[0])])
