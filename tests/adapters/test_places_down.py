"""Trilu, EyeLike, ReverseSequence and TensorScatter, before they came."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, build, op_types

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
RANDOM = np.random.default_rng(0)


def _number(array: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 9])
@pytest.mark.parametrize(
    ("target", "known", "sizes"),
    [
        pytest.param(8, True, True, id="a constant mask"),
        pytest.param(7, False, True, id="a computed bound"),
        pytest.param(9, True, False, id="computed sizes"),
        pytest.param(12, False, False, id="all computed"),
    ],
)
def test_triangles(
    k: int | None, upper: int, kind: type, target: int, known: bool, sizes: bool, converted: Converted
) -> None:
    data: Array = (
        RANDOM.integers(0, 2, (2, 3, 5)).astype(kind) if kind is np.bool_ else np.ones((2, 3, 5), kind)
    )
    if kind is np.float32:
        data[:, 0], data[:, 2] = math.nan, math.inf
    bound: dict[str, Array] = {} if k is None else {"k": np.array(k, np.int64)}
    feeds: dict[str, Array] = {"x": data} if known else {"x": data, **bound}
    node = helper.make_node("Trilu", ["x", *bound], ["y"], name="node", upper=upper)
    model = build([node], feeds, {"y": _number(data)}, 14, initializers=bound if known else None)
    if not sizes:
        for place, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
            dim.dim_param = f"n{place}"
    expected = (np.triu if upper else np.tril)(data, k or 0)
    converted(model, target, feeds, [expected])


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({}, np.eye(2, 3, dtype=np.int32), id="the type of the input"),
        pytest.param({"k": 1, "dtype": TensorProto.FLOAT}, np.eye(2, 3, 1, np.float32), id="above"),
        pytest.param({"k": -1, "dtype": TensorProto.BOOL}, np.eye(2, 3, -1, np.bool_), id="below"),
    ],
)
def test_a_matrix_of_known_size(attributes: dict[str, int], expected: Array, converted: Converted) -> None:
    data: Array = np.zeros((2, 3), np.int32)
    node = helper.make_node("EyeLike", ["x"], ["y"], name="node", **attributes)
    model = build([node], {"x": data}, {"y": _number(expected)}, 9)
    assert op_types(converted(model, 8, {"x": data}, [expected])) == ["Identity"]


def test_a_matrix_of_unknown_size_is_refused(refusal: Refusing) -> None:
    model = build([helper.make_node("EyeLike", ["x"], ["y"])], {"x": np.ones((2, 2), np.float32)}, ["y"], 9)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    assert refusal(model, 8).reason == "the shape of 'x' is unknown"


@pytest.mark.parametrize("target", [7, 9])
@pytest.mark.parametrize("time", [0, 1])
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("tail", [(), (2, 3)])
def test_sequences(
    tail: tuple[int, ...], is_constant: bool, time: int, target: int, converted: Converted
) -> None:
    data: Array = RANDOM.standard_normal((5, 4, *tail)).astype(np.float32)
    data = data if time == 0 else data.swapaxes(0, 1).copy()
    lengths: dict[str, Array] = {"n": np.array([5, 1, 3, 4], np.int64)}
    attributes = {"time_axis": time, "batch_axis": 1 - time}
    node = helper.make_node("ReverseSequence", ["x", "n"], ["y"], name="node", **attributes)
    feeds: dict[str, Array] = {"x": data} if is_constant else {"x": data, **lengths}
    model = build([node], feeds, ["y"], 10, initializers=lengths if is_constant else None)
    expected = data.copy() if time == 0 else data.swapaxes(0, 1).copy()
    for entry, length in enumerate(lengths["n"]):
        expected[:length, entry] = expected[:length, entry][::-1]
    converted(model, target, feeds, [expected if time == 0 else expected.swapaxes(0, 1)])


@pytest.mark.parametrize("shapes", [True, False])
@pytest.mark.parametrize(
    ("axis", "mode", "starts"),
    [
        pytest.param(-2, "linear", [1, 3], id="a place for each entry"),
        pytest.param(1, "circular", [4, 5], id="round the end"),
        pytest.param(3, "linear", [0, 2], id="along the last dimension"),
        pytest.param(-2, "linear", None, id="from the start"),
    ],
)
def test_caches(axis: int, mode: str, starts: list[int] | None, shapes: bool, converted: Converted) -> None:
    cache: Array = RANDOM.standard_normal((2, 6, 6, 6)).astype(np.float32)
    place = axis % 4
    update: Array = np.take(-cache, range(3), place)
    feeds: dict[str, Array] = {"x": cache, "u": update} | ({} if starts is None else {"w": np.array(starts)})
    node = helper.make_node("TensorScatter", list(feeds), ["y"], name="node", axis=axis, mode=mode)
    model = build([node], feeds, ["y"], 24)
    if not shapes:
        for value in model.graph.input[:2]:
            for number, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_param = f"{value.name}{number}"
    expected = cache.copy()
    for entry in range(2):
        at = (np.arange(3) + (starts or [0, 0])[entry]) % 6
        np.moveaxis(expected[entry], place - 1, 0)[at] = np.moveaxis(update[entry], place - 1, 0)
    converted(model, 11, feeds, [expected])
