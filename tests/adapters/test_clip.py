"""Clip: bounds become inputs of the data's type, and those that are not stated keep their meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.running import Array, build, run_reference

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
KINDS: dict[str, Any] = {"float": np.float32, "float16": np.float16, "double": np.float64}
FLOAT_MAX = float(np.finfo(np.float32).max)
INFINITY = float("inf")
BOUNDS: dict[str, Mapping[str, float]] = {
    "both bounds": {"min": -0.1, "max": 2.0},
    "the lower bound only": {"min": 0.0},
    "the upper bound only": {"max": 0.1},
    "no bound": {},
    "bounds that are the defaults": {"min": -FLOAT_MAX, "max": FLOAT_MAX},
    "infinite bounds": {"min": -INFINITY, "max": INFINITY},
    "an infinite lower bound": {"min": -INFINITY, "max": 1.0},
    "bounds beyond the range of float16": {"min": -1e5, "max": 1e6},
    "bounds that nothing is between": {"min": 6.0, "max": 6.0},
}


def _data(kind: Any) -> Array:
    """Numbers up to the ends of the type, and beyond those of float."""
    limits = np.finfo(kind)
    listed = [-INFINITY, limits.min, -1e4, -0.1, 0.0, 0.05, 1.5, 2e4, limits.max, INFINITY, float("nan")]
    return np.array(listed, kind)


def _clipped(data: Array, bounds: Mapping[str, float]) -> Array:
    """Version 6 by its definition: both bounds are 32-bit floats, in the type of the data."""
    with np.errstate(over="ignore"):
        low = np.float32(bounds.get("min", -FLOAT_MAX)).astype(data.dtype)
        high = np.float32(bounds.get("max", FLOAT_MAX)).astype(data.dtype)
    return np.asarray(np.minimum(np.maximum(data, low), high))


def _model(data: Array, bounds: Mapping[str, float], opset: int = 6) -> onnx.ModelProto:
    node = helper.make_node("Clip", ["x"], ["y"], name="node", **bounds)
    return build([node], {"x": data}, {"y": helper.np_dtype_to_tensor_dtype(data.dtype)}, opset)


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_stay_the_same(kind: str, bounds: Mapping[str, float], converted: Converted) -> None:
    data = _data(KINDS[kind])
    model = _model(data, bounds)
    for target in (12, 13, 21):
        converted(model, target, {"x": data}, [_clipped(data, bounds)])


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_the_runtime_agrees_about_float(bounds: Mapping[str, float], converted: Converted) -> None:
    data = _data(np.float32)
    for target in (11, 13):
        converted(_model(data, bounds), target, {"x": data})


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("kind", KINDS)
def test_constants_have_the_type_of_the_data(kind: str, bounds: Mapping[str, float]) -> None:
    data = _data(KINDS[kind])
    moved = convert_version(_model(data, bounds), 11)
    assert {numpy_helper.to_array(each).dtype for each in moved.graph.initializer} <= {data.dtype}
    assert not moved.graph.node[0].attribute
    finite = data[np.isfinite(data)]
    np.testing.assert_array_equal(
        run_reference(moved, {"x": finite})[0], _clipped(finite, bounds), strict=True
    )


@pytest.mark.parametrize(
    ("bounds", "inputs"),
    [
        pytest.param({}, ["x"], id="no bound is no input"),
        pytest.param({"min": 0.0}, ["x", "min"], id="a lower bound is the second input"),
        pytest.param({"max": 1.0}, ["x", "", "max"], id="an upper bound alone is the third input"),
        pytest.param({"min": 0.0, "max": 6.0}, ["x", "min", "max"], id="two bounds are two inputs"),
        pytest.param({"min": -INFINITY}, ["x", "min"], id="an infinite bound is wider than none"),
    ],
)
def test_inputs(bounds: Mapping[str, float], inputs: list[str]) -> None:
    moved = convert_version(_model(_data(np.float32), bounds), 11)
    values = {each.name: float(numpy_helper.to_array(each)) for each in moved.graph.initializer}
    named = {bounds[name]: name for name in bounds}
    assert [named[values[each]] if each in values else each for each in moved.graph.node[0].input] == inputs


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_that_version_1_leaves_out_do_not_cut_at_float(kind: str, converted: Converted) -> None:
    data = _data(KINDS[kind])
    finite = data[np.isfinite(data)]
    model = _model(finite, {"min": 0.5}, opset=1)
    model.graph.node[0].attribute.append(helper.make_attribute("consumed_inputs", [0]))
    converted(model, 13, {"x": finite}, [np.maximum(finite, finite.dtype.type(0.5))])


@pytest.mark.parametrize("bounds", [{}, {"min": 0.0}], ids=["no bound", "one bound"])
def test_the_type_of_the_data_has_to_be_known(bounds: Mapping[str, float], refusal: Refusing) -> None:
    unknown = helper.make_node("Anything", ["x"], ["h"], domain="com.acme")
    clip = helper.make_node("Clip", ["h"], ["y"], name="node", **bounds)
    model = build([unknown, clip], {"x": _data(np.float32)}, ["y"], {"": 10, "com.acme": 1})
    model.graph.output[0].name = "z"
    model.graph.node.append(helper.make_node("Abs", ["y"], ["z"]))
    found = refusal(model, 11)
    assert found.reason == "the element type of 'h' is unknown"
    assert found.remedy == "declare it: add a value_info for 'h'"
