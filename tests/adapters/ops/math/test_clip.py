"""Upgrade of Clip to opset 11: bounds become inputs of the data type, and defaults keep their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, run_reference

from opshift import convert_version

DTYPES: dict[str, Any] = {"float": np.float32, "float16": np.float16, "double": np.float64}
FLOAT_MAX = float(np.finfo(np.float32).max)
INFINITY = float("inf")
BOUNDS: dict[str, Mapping[str, float]] = {
    "both bounds": {"min": -0.1, "max": 2.0},
    "lower bound": {"min": 0.0},
    "upper bound": {"max": 0.1},
    "no bounds": {},
    "default bounds": {"min": -FLOAT_MAX, "max": FLOAT_MAX},
    "infinite bounds": {"min": -INFINITY, "max": INFINITY},
    "infinite lower bound": {"min": -INFINITY, "max": 1.0},
    "bounds beyond float16": {"min": -1e5, "max": 1e6},
    "equal bounds": {"min": 6.0, "max": 6.0},
}


def _data(dtype: Any) -> Array:
    """Return values up to the limits of the type, infinities and NaN."""
    limits = np.finfo(dtype)
    values = [-INFINITY, limits.min, -1e4, -0.1, 0.0, 0.05, 1.5, 2e4, limits.max, INFINITY, float("nan")]
    return np.array(values, dtype)


def _expected_clip(data: Array, bounds: Mapping[str, float]) -> Array:
    """Compute Clip-6: both bounds are 32-bit floats, cast to the type of the data."""
    with np.errstate(over="ignore"):
        low = np.float32(bounds.get("min", -FLOAT_MAX)).astype(data.dtype)
        high = np.float32(bounds.get("max", FLOAT_MAX)).astype(data.dtype)
    return np.asarray(np.minimum(np.maximum(data, low), high))


def _model(data: Array, bounds: Mapping[str, float], opset: int = 6) -> onnx.ModelProto:
    node = helper.make_node("Clip", ["x"], ["y"], name="node", **bounds)
    return build([node], {"x": data}, {"y": helper.np_dtype_to_tensor_dtype(data.dtype)}, opset)


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("type_name", DTYPES)
def test_preserves_outputs(type_name: str, bounds: Mapping[str, float]) -> None:
    data = _data(DTYPES[type_name])
    model = _model(data, bounds)
    for target in (12, 13, 21):
        convert_and_check(model, target, {"x": data}, [_expected_clip(data, bounds)])


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_matches_onnxruntime_for_float(bounds: Mapping[str, float]) -> None:
    data = _data(np.float32)
    for target in (11, 13):
        convert_and_check(_model(data, bounds), target, {"x": data})


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("type_name", DTYPES)
def test_emits_constants_of_the_data_type(type_name: str, bounds: Mapping[str, float]) -> None:
    data = _data(DTYPES[type_name])
    result = convert_version(_model(data, bounds), 11)
    assert {numpy_helper.to_array(each).dtype for each in result.graph.initializer} <= {data.dtype}
    assert not result.graph.node[0].attribute
    finite = data[np.isfinite(data)]
    np.testing.assert_array_equal(
        run_reference(result, {"x": finite})[0], _expected_clip(finite, bounds), strict=True
    )


@pytest.mark.parametrize(
    ("bounds", "inputs"),
    [
        pytest.param({}, ["x"], id="no inputs without bounds"),
        pytest.param({"min": 0.0}, ["x", "min"], id="lower bound as second input"),
        pytest.param({"max": 1.0}, ["x", "", "max"], id="upper bound as third input"),
        pytest.param({"min": 0.0, "max": 6.0}, ["x", "min", "max"], id="both bounds"),
        pytest.param({"min": -INFINITY}, ["x", "min"], id="infinite bound"),
    ],
)
def test_moves_bounds_to_inputs(bounds: Mapping[str, float], inputs: list[str]) -> None:
    result = convert_version(_model(_data(np.float32), bounds), 11)
    values = {each.name: float(numpy_helper.to_array(each)) for each in result.graph.initializer}
    name_of_value = {bounds[name]: name for name in bounds}
    assert [
        name_of_value[values[each]] if each in values else each for each in result.graph.node[0].input
    ] == inputs


@pytest.mark.parametrize("type_name", DTYPES)
def test_adds_no_default_bounds_for_version_1(type_name: str) -> None:
    data = _data(DTYPES[type_name])
    finite = data[np.isfinite(data)]
    model = _model(finite, {"min": 0.5}, opset=1)
    model.graph.node[0].attribute.append(helper.make_attribute("consumed_inputs", [0]))
    convert_and_check(model, 13, {"x": finite}, [np.maximum(finite, finite.dtype.type(0.5))])


@pytest.mark.parametrize("bounds", [{}, {"min": 0.0}], ids=["no bounds", "one bound"])
def test_refuses_unknown_element_type(bounds: Mapping[str, float]) -> None:
    producer = helper.make_node("Anything", ["x"], ["h"], domain="com.acme")
    clip = helper.make_node("Clip", ["h"], ["y"], name="node", **bounds)
    model = build([producer, clip], {"x": _data(np.float32)}, ["y"], {"": 10, "com.acme": 1})
    model.graph.output[0].name = "z"
    model.graph.node.append(helper.make_node("Abs", ["y"], ["z"]))
    refused = refusal_of(model, 11)
    assert refused.reason == "the element type of 'h' is unknown"
    assert refused.remedy == "declare the type of 'h', in its graph input or with a value_info"
