"""TopK: the count as an attribute before 10, and only the largest before 11; Tile dimension by dimension."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, build, op_types

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
X = np.array([[3, 1, 2, 3, 1], [0, -1, 5, -1, 5], [7, 7, 7, 8, 8]], np.float32)


def _model(
    count: int, *, constant: bool, data: Array = X, **attributes: int
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    given = {"k": np.array([count])}
    feeds = {"x": data} | ({} if constant else given)
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], name="node", **attributes)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(data.dtype), "i": TensorProto.INT64}
    return build([node], feeds, outputs, 11, initializers=given if constant else None), feeds


@pytest.mark.parametrize("target", [10, 9, 7])
@pytest.mark.parametrize("largest", [1, 0], ids=["largest", "smallest"])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_counts(constant: bool, axis: int, largest: int, target: int, converted: Converted) -> None:
    model, feeds = _model(2, constant=constant, axis=axis, largest=largest)
    result = converted(model, target, feeds)
    assert ("Neg" in op_types(result)) == (not largest)


@pytest.mark.parametrize("kind", [np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("largest", [1, 0], ids=["largest", "smallest"])
def test_whole_numbers_that_floats_hold(largest: int, kind: type[np.generic], converted: Converted) -> None:
    model, feeds = _model(3, constant=True, data=np.abs(X).astype(kind), largest=largest)
    indices = np.argsort(feeds["x"] * (-1.0 if largest else 1.0), axis=1, kind="stable")[:, :3]
    converted(model, 10, feeds, [np.take_along_axis(feeds["x"], indices, 1), indices])


NEIGHBOURS = np.array([[2**62 + 1, 2**62, 2**62 + 3, 2**62, 7], [0, 2**40, 1, 2**40, 2**32 - 1]])


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("largest", [1, 0], ids=["largest", "smallest"])
def test_whole_numbers_that_no_float_holds(
    largest: int, kind: type[np.generic], axis: int, target: int, converted: Converted
) -> None:
    below = -NEIGHBOURS if kind is np.int64 else NEIGHBOURS[:, ::-1]
    model, feeds = _model(
        2, constant=True, data=np.vstack([NEIGHBOURS, below]).astype(kind), axis=axis, largest=largest
    )
    model.graph.node[0].name = ""
    keys = feeds["x"] if not largest else np.invert(feeds["x"])
    indices = np.argsort(keys, axis=axis, kind="stable").take([0, 1], axis)
    converted(model, target, feeds, [np.take_along_axis(feeds["x"], indices, axis), indices], 0)


def test_whole_numbers_of_an_unknown_size(refusal: Refusing) -> None:
    model, _ = _model(3, constant=True, data=X.astype(np.int64))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert refusal(model, 10).reason == "'x' is tensor(int64), which ai.onnx.TopK:10 does not support"


def test_no_element_is_taken(refusal: Refusing) -> None:
    model, _ = _model(0, constant=True)
    assert refusal(model, 9).reason == "K is 0, but before version 10 it must be at least 1"
