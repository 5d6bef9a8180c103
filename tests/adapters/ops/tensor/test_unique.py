"""Downgrades of Unique below opset 11: each element is compared with each other element."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, build

INT64 = TensorProto.INT64
NUMBERS = np.array([2, 1, 1, -3, 4, 3, 2], np.float32)
ROWS = np.array([[1, 0, 0], [1, 0, -1], [2, 3, 4], [1, 0, 0], [1, 0, -1]], np.float32)
CUBE = np.random.default_rng(11).integers(0, 2, (3, 2, 7)).astype(np.float32)


def _model(data: Array, **attributes: int) -> onnx.ModelProto:
    node = helper.make_node("Unique", ["x"], ["y", "i", "v", "c"], name="node", **attributes)
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    return build([node], {"x": data}, {"y": element_type, "i": INT64, "v": INT64, "c": INT64}, 11)


@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize("is_sorted", [1, 0], ids=["sorted", "unsorted"])
@pytest.mark.parametrize(
    ("data", "attributes"),
    [
        pytest.param(NUMBERS, {}, id="numbers"),
        pytest.param(ROWS, {}, id="2-D numbers"),
        pytest.param(ROWS, {"axis": 0}, id="rows"),
        pytest.param(ROWS, {"axis": -1}, id="columns"),
        pytest.param(CUBE, {"axis": 2}, id="slices"),
        pytest.param(NUMBERS[:1], {}, id="single element"),
        pytest.param(np.array([2**62 + 1, 2**62, 5, 2**62 + 1, -(2**62)]), {}, id="large integers"),
    ],
)
def test_expands_unique(data: Array, attributes: dict[str, int], is_sorted: int, target: int) -> None:
    model = _model(data, sorted=is_sorted, **attributes)
    convert_and_check(model, target, {"x": data})
    if target == 10:
        convert_and_check(with_symbolic_dims(model), target, {"x": data})


@pytest.mark.parametrize("target", [10, 8])
@pytest.mark.parametrize("is_sorted", [1, 0], ids=["sorted", "unsorted"])
@pytest.mark.parametrize(
    ("data", "attributes"),
    [([1, np.nan, 2, np.nan, 1], {}), ([np.nan], {}), ([[1, np.nan], [1, 2], [1, np.nan]], {"axis": 0})],
    ids=["numbers", "only NaN", "rows"],
)
def test_nan_equals_only_nan(data: Any, attributes: dict[str, int], is_sorted: int, target: int) -> None:
    """NaN follows all numbers, unlike in onnxruntime, where it equals other elements."""
    array = np.array(data, np.float32)
    # numpy does not find equal rows with NaN; infinity, which the data does not contain, has the same order.
    ordered = np.where(np.isnan(array), np.float32(np.inf), array)
    _, first, inverse, count = np.unique(ordered, True, True, True, attributes.get("axis"))
    if not is_sorted:
        order = np.argsort(first)
        first, inverse, count = first[order], np.argsort(order)[inverse], count[order]
    expected = [array[first], first, inverse.reshape(-1), count]
    convert_and_check(_model(array, sorted=is_sorted, **attributes), target, {"x": array}, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.int8], ids=lambda dtype: dtype.__name__)
def test_expands_unique_of_other_types(dtype: type[np.generic]) -> None:
    convert_and_check(_model(NUMBERS.astype(dtype)), 9, {"x": NUMBERS.astype(dtype)})


def test_expands_unique_with_omitted_outputs() -> None:
    node = helper.make_node("Unique", ["x"], ["y", "", "", "c"], name="node")
    convert_and_check(build([node], {"x": NUMBERS}, {"y": 1, "c": INT64}, 11), 10, {"x": NUMBERS})


def test_refuses_strings() -> None:
    model = _model(NUMBERS)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    reason = refusal_of(model, 10).reason
    assert reason == "'x' has element type string, which the operator Less does not support"
