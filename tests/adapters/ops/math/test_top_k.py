"""Downgrades of TopK: the count moves to an attribute, and negated data find the smallest elements."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types

DATA = np.array([[3, 1, 2, 3, 1], [0, -1, 5, -1, 5], [7, 7, 7, 8, 8]], np.float32)


def _model(
    count: int, *, constant: bool, data: Array = DATA, **attributes: int
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    initializers = {"k": np.array([count])}
    feeds = {"x": data} | ({} if constant else initializers)
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], name="node", **attributes)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(data.dtype), "i": TensorProto.INT64}
    return build([node], feeds, outputs, 11, initializers=initializers if constant else None), feeds


@pytest.mark.parametrize("target", [10, 9, 7])
@pytest.mark.parametrize("largest", [1, 0], ids=["largest", "smallest"])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_downgrades_count_and_order(constant: bool, axis: int, largest: int, target: int) -> None:
    model, feeds = _model(2, constant=constant, axis=axis, largest=largest)
    result = convert_and_check(model, target, feeds)
    assert ("Neg" in op_types(result)) == (not largest)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("largest", [1, 0], ids=["largest", "smallest"])
def test_downgrades_integers_that_float_represents(largest: int, dtype: type[np.generic]) -> None:
    model, feeds = _model(3, constant=True, data=np.abs(DATA).astype(dtype), largest=largest)
    indices = np.argsort(feeds["x"] * (-1.0 if largest else 1.0), axis=1, kind="stable")[:, :3]
    convert_and_check(model, 10, feeds, [np.take_along_axis(feeds["x"], indices, 1), indices])


CLOSE_INTEGERS = np.array([[2**62 + 1, 2**62, 2**62 + 3, 2**62, 7], [0, 2**40, 1, 2**40, 2**32 - 1]])


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("largest", [1, 0], ids=["largest", "smallest"])
def test_downgrades_integers_that_float_cannot_represent(
    largest: int, dtype: type[np.generic], axis: int, target: int
) -> None:
    other_rows = -CLOSE_INTEGERS if dtype is np.int64 else CLOSE_INTEGERS[:, ::-1]
    model, feeds = _model(
        2,
        constant=True,
        data=np.vstack([CLOSE_INTEGERS, other_rows]).astype(dtype),
        axis=axis,
        largest=largest,
    )
    model.graph.node[0].name = ""
    keys = feeds["x"] if not largest else np.invert(feeds["x"])
    indices = np.argsort(keys, axis=axis, kind="stable").take([0, 1], axis)
    convert_and_check(model, target, feeds, [np.take_along_axis(feeds["x"], indices, axis), indices], 0)


def test_refuses_int64_of_unknown_shape() -> None:
    model, _ = _model(3, constant=True, data=DATA.astype(np.int64))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert refusal_of(model, 10).reason == "'x' is tensor(int64), which ai.onnx.TopK:10 does not support"


def test_refuses_a_count_of_zero() -> None:
    model, _ = _model(0, constant=True)
    assert refusal_of(model, 9).reason == "K is 0, but before version 10 it must be at least 1"
