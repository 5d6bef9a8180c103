"""Downgrade of Clip: bounds as attributes or by Max and Min, integers by casts or comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, assert_equal, build, op_types, run, run_reference
from support.forms import FORMS, in_form

from opshift import convert_version

DATA = np.array([-9, -2, 0, 1, 3, 9])
BOUNDS = [("", ""), ("low", ""), ("", "high"), ("low", "high")]
BOUND_IDS = ["no bounds", "lower bound", "upper bound", "both bounds"]


def _model(
    opset: int, dtype: Any, bounds: Sequence[str], *, computed: bool = False, shapes: bool = True
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    data = DATA.astype(dtype)
    values = {name: np.array({"low": 1, "high": 3}[name], dtype) for name in bounds if name}
    feeds = {"x": data, **(values if computed else {})}
    node = helper.make_node("Clip", ["x", *bounds], ["y"], name="node")
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    initializers = {} if computed else values
    return build([node], feeds, {"y": element_type}, opset, initializers=initializers, shapes=shapes), feeds


def _expected_clip(dtype: Any, bounds: Sequence[str]) -> Array:
    value = DATA.astype(dtype)
    value = np.maximum(value, value.dtype.type(1)) if "low" in bounds else value
    return np.minimum(value, value.dtype.type(3)) if "high" in bounds else value


@pytest.mark.parametrize("bounds", BOUNDS, ids=BOUND_IDS)
@pytest.mark.parametrize("target", [10, 7])
def test_moves_constant_bounds_to_attributes(bounds: Sequence[str], target: int) -> None:
    model, feeds = _model(11, np.float32, bounds)
    result = convert_and_check(model, target, feeds)
    assert op_types(result) == ["Clip"]
    expected_names = [{"low": "min", "high": "max"}[name] for name in bounds if name]
    assert [each.name for each in result.graph.node[0].attribute] == expected_names


@pytest.mark.parametrize("bounds", BOUNDS[1:], ids=BOUND_IDS[1:])
@pytest.mark.parametrize("target", [10, 8, 7])
def test_applies_computed_bounds(bounds: Sequence[str], target: int) -> None:
    model, feeds = _model(11, np.float32, bounds, computed=True)
    assert "Clip" not in op_types(convert_and_check(model, target, feeds))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
@pytest.mark.parametrize("target", [10, 7])
def test_contradicting_bounds_yield_the_upper_one(form: str, dtype: type, target: int) -> None:
    feeds: dict[str, Array] = {
        "x": np.array([0, 5, -5], dtype),
        "low": np.array(2, dtype),
        "high": np.array(-1, dtype),
    }
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("Clip", list(feeds), ["y"])
    model, fed = in_form(form, [node], feeds, {"y": element_type}, 13)
    result = convert_version(model, target)
    assert_equal(run(result, fed), [np.full(3, -1, dtype)])
    assert_equal(run_reference(result, fed), [np.full(3, -1, dtype)])


@pytest.mark.parametrize("bounds", BOUNDS[1:], ids=BOUND_IDS[1:])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float", "double"])
def test_applies_computed_bounds_to_data_of_unknown_rank(dtype: Any, bounds: Sequence[str]) -> None:
    model, feeds = _model(11, dtype, bounds, computed=True, shapes=False)
    special = {**feeds, "x": np.array([[math.nan, -0.0, 2, -7, 9, 0.5]], dtype)}
    expected = run_reference(model, special)
    for target in (6, 7):
        result = convert_version(model, target)
        assert len(result.graph.node) <= 12 or (target, dtype) == (7, np.float64)
        assert_equal(run_reference(result, special), expected, 0)
        # onnxruntime has no Less-1.
        if target == 7:
            assert_equal(run(result, special), expected, 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float16], ids=["double", "float16"])
@pytest.mark.parametrize("bounds", BOUNDS, ids=BOUND_IDS)
def test_clips_other_float_types(dtype: Any, bounds: Sequence[str]) -> None:
    model, feeds = _model(12, dtype, bounds)
    expected = _expected_clip(dtype, bounds)
    if dtype is np.float64:
        convert_and_check(model, 10, feeds, [expected])
        return
    convert_and_check(model, 12, feeds, [expected])


def test_clips_infinity_to_the_largest_double() -> None:
    """A 32-bit attribute cannot represent the default bound of double."""
    node = helper.make_node("Clip", ["x"], ["y"], name="node")
    feeds = {"x": np.array([np.inf, -np.inf, 1e300])}
    limit = np.finfo(np.float64).max
    convert_and_check(build([node], feeds, {"y": 11}, 12), 10, feeds, [np.array([limit, -limit, 1e300])])


INTEGER_DTYPES = {
    "int8": np.int8,
    "uint8": np.uint8,
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
}


@pytest.mark.parametrize("dtype", INTEGER_DTYPES.values(), ids=INTEGER_DTYPES)
@pytest.mark.parametrize("bounds", BOUNDS, ids=BOUND_IDS)
@pytest.mark.parametrize("computed", [False, True], ids=["constant", "computed"])
@pytest.mark.parametrize("target", [11, 9])
def test_clips_integers(dtype: Any, bounds: Sequence[str], computed: bool, target: int) -> None:
    model, feeds = _model(12, dtype, bounds, computed=computed)
    expected = _expected_clip(dtype, bounds)
    convert_and_check(model, target, feeds, [expected])


def test_clips_small_integers_in_float_at_opset_7() -> None:
    model, feeds = _model(12, np.int8, ("low", "high"))
    assert op_types(convert_and_check(model, 7, feeds)) == ["Cast", "Clip", "Cast"]


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)], ids=["scalar", "single element", "matrix"])
def test_keeps_shape_of_constant_data(shape: tuple[int, ...]) -> None:
    node = helper.make_node("Clip", ["x", "low"], ["y"], name="node")
    elements: Array = np.arange(6, dtype=np.int8)[: math.prod(shape)]
    values = {"low": np.array(5, np.int8), "x": elements.reshape(shape)}
    convert_and_check(build([node], {}, {"y": onnx.TensorProto.INT8}, 12, initializers=values), 11, {})


def test_applies_the_upper_bound_last() -> None:
    node = helper.make_node("Clip", ["x", "low", "high"], ["y"], name="node")
    values = {"low": np.array(5, np.int64), "high": np.array(1, np.int64)}
    feeds = {"x": DATA.astype(np.int64)}
    convert_and_check(build([node], feeds, {"y": 7}, 13, initializers=values), 11, feeds)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_clips_without_broadcasting_at_opset_7(dtype: type) -> None:
    model, feeds = _model(12, dtype, ("low", "high"))
    convert_and_check(model, 7, feeds)
