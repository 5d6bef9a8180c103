"""Downgrades of Trilu, EyeLike, ReverseSequence and TensorScatter below their first opset."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.running import Array, build, op_types

RANDOM = np.random.default_rng(0)


def _element_type(array: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 9])
@pytest.mark.parametrize(
    ("target", "is_k_constant", "is_shape_static"),
    [
        pytest.param(8, True, True, id="constant k"),
        pytest.param(7, False, True, id="computed k"),
        pytest.param(9, True, False, id="dynamic shape"),
        pytest.param(12, False, False, id="computed k and dynamic shape"),
    ],
)
def test_expands_trilu(
    k: int | None, upper: int, dtype: type, target: int, is_k_constant: bool, is_shape_static: bool
) -> None:
    data: Array = (
        RANDOM.integers(0, 2, (2, 3, 5)).astype(dtype) if dtype is np.bool_ else np.ones((2, 3, 5), dtype)
    )
    if dtype is np.float32:
        data[:, 0], data[:, 2] = math.nan, math.inf
    k_input: dict[str, Array] = {} if k is None else {"k": np.array(k, np.int64)}
    feeds: dict[str, Array] = {"x": data} if is_k_constant else {"x": data, **k_input}
    node = helper.make_node("Trilu", ["x", *k_input], ["y"], name="node", upper=upper)
    model = build(
        [node], feeds, {"y": _element_type(data)}, 14, initializers=k_input if is_k_constant else None
    )
    if not is_shape_static:
        for axis, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
            dim.dim_param = f"n{axis}"
    expected = (np.triu if upper else np.tril)(data, k or 0)
    convert_and_check(model, target, feeds, [expected])


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({}, np.eye(2, 3, dtype=np.int32), id="type of the input"),
        pytest.param({"k": 1, "dtype": TensorProto.FLOAT}, np.eye(2, 3, 1, np.float32), id="upper diagonal"),
        pytest.param({"k": -1, "dtype": TensorProto.BOOL}, np.eye(2, 3, -1, np.bool_), id="lower diagonal"),
    ],
)
def test_folds_eye_like_of_known_shape(attributes: dict[str, int], expected: Array) -> None:
    data: Array = np.zeros((2, 3), np.int32)
    node = helper.make_node("EyeLike", ["x"], ["y"], name="node", **attributes)
    model = build([node], {"x": data}, {"y": _element_type(expected)}, 9)
    assert op_types(convert_and_check(model, 8, {"x": data}, [expected])) == ["Identity"]


def test_refuses_eye_like_of_unknown_shape() -> None:
    model = build([helper.make_node("EyeLike", ["x"], ["y"])], {"x": np.ones((2, 2), np.float32)}, ["y"], 9)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    assert refusal_of(model, 8).reason == "the shape of 'x' is unknown"


@pytest.mark.parametrize("target", [7, 9])
@pytest.mark.parametrize("time_axis", [0, 1])
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("trailing_shape", [(), (2, 3)])
def test_expands_reverse_sequence(
    trailing_shape: tuple[int, ...], is_constant: bool, time_axis: int, target: int
) -> None:
    data: Array = RANDOM.standard_normal((5, 4, *trailing_shape)).astype(np.float32)
    data = data if time_axis == 0 else data.swapaxes(0, 1).copy()
    lengths: dict[str, Array] = {"n": np.array([5, 1, 3, 4], np.int64)}
    attributes = {"time_axis": time_axis, "batch_axis": 1 - time_axis}
    node = helper.make_node("ReverseSequence", ["x", "n"], ["y"], name="node", **attributes)
    feeds: dict[str, Array] = {"x": data} if is_constant else {"x": data, **lengths}
    model = build([node], feeds, ["y"], 10, initializers=lengths if is_constant else None)
    expected = data.copy() if time_axis == 0 else data.swapaxes(0, 1).copy()
    for batch, length in enumerate(lengths["n"]):
        expected[:length, batch] = expected[:length, batch][::-1]
    convert_and_check(model, target, feeds, [expected if time_axis == 0 else expected.swapaxes(0, 1)])


@pytest.mark.parametrize("shapes", [True, False])
@pytest.mark.parametrize(
    ("axis", "mode", "write_indices"),
    [
        pytest.param(-2, "linear", [1, 3], id="write index per batch entry"),
        pytest.param(1, "circular", [4, 5], id="wrapping around the end"),
        pytest.param(3, "linear", [0, 2], id="last dimension"),
        pytest.param(-2, "linear", None, id="no write indices"),
    ],
)
def test_expands_tensor_scatter(axis: int, mode: str, write_indices: list[int] | None, shapes: bool) -> None:
    cache: Array = RANDOM.standard_normal((2, 6, 6, 6)).astype(np.float32)
    positive_axis = axis % 4
    update: Array = np.take(-cache, range(3), positive_axis)
    feeds: dict[str, Array] = {"x": cache, "u": update} | (
        {} if write_indices is None else {"w": np.array(write_indices)}
    )
    node = helper.make_node("TensorScatter", list(feeds), ["y"], name="node", axis=axis, mode=mode)
    model = build([node], feeds, ["y"], 24)
    if not shapes:
        for value in model.graph.input[:2]:
            for axis_index, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_param = f"{value.name}{axis_index}"
    expected = cache.copy()
    for batch in range(2):
        positions = (np.arange(3) + (write_indices or [0, 0])[batch]) % 6
        np.moveaxis(expected[batch], positive_axis - 1, 0)[positions] = np.moveaxis(
            update[batch], positive_axis - 1, 0
        )
    convert_and_check(model, 11, feeds, [expected])
