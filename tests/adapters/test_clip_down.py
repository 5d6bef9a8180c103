"""Clip on its way down: bounds as attributes or by Max and Min, integers by casts or by comparing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build, op_types

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
NUMBERS = np.array([-9, -2, 0, 1, 3, 9])
BOUNDS = [("", ""), ("low", ""), ("", "high"), ("low", "high")]
IDS = ["no bounds", "lower bound", "upper bound", "both bounds"]


def _model(
    opset: int, kind: Any, bounds: Sequence[str], *, computed: bool = False, shapes: bool = True
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    data = NUMBERS.astype(kind)
    values = {name: np.array({"low": 1, "high": 3}[name], kind) for name in bounds if name}
    feeds = {"x": data, **(values if computed else {})}
    node = helper.make_node("Clip", ["x", *bounds], ["y"], name="node")
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    initializers = {} if computed else values
    return build([node], feeds, {"y": element}, opset, initializers=initializers, shapes=shapes), feeds


def _clipped(kind: Any, bounds: Sequence[str]) -> Array:
    value = NUMBERS.astype(kind)
    value = np.maximum(value, value.dtype.type(1)) if "low" in bounds else value
    return np.minimum(value, value.dtype.type(3)) if "high" in bounds else value


@pytest.mark.parametrize("bounds", BOUNDS, ids=IDS)
@pytest.mark.parametrize("target", [10, 7])
def test_constant_bounds_become_attributes(bounds: Sequence[str], target: int, converted: Converted) -> None:
    model, feeds = _model(11, np.float32, bounds)
    result = converted(model, target, feeds)
    assert op_types(result) == ["Clip"]
    named = [{"low": "min", "high": "max"}[name] for name in bounds if name]
    assert [each.name for each in result.graph.node[0].attribute] == named


@pytest.mark.parametrize("bounds", BOUNDS[1:], ids=IDS[1:])
@pytest.mark.parametrize("target", [10, 8, 7])
def test_computed_bounds_are_kept_to(bounds: Sequence[str], target: int, converted: Converted) -> None:
    model, feeds = _model(11, np.float32, bounds, computed=True)
    assert "Clip" not in op_types(converted(model, target, feeds))


@pytest.mark.parametrize("kind", [np.float64, np.float16], ids=["double", "half"])
@pytest.mark.parametrize("bounds", BOUNDS, ids=IDS)
def test_other_floats(kind: Any, bounds: Sequence[str], converted: Converted) -> None:
    model, feeds = _model(12, kind, bounds)
    expected = _clipped(kind, bounds)
    if kind is np.float64:
        converted(model, 10, feeds, [expected])
        return
    converted(model, 12, feeds, [expected])


def test_infinity_becomes_the_greatest_double(converted: Converted) -> None:
    """Which a 32-bit attribute could not say."""
    node = helper.make_node("Clip", ["x"], ["y"], name="node")
    feeds = {"x": np.array([np.inf, -np.inf, 1e300])}
    limit = np.finfo(np.float64).max
    converted(build([node], feeds, {"y": 11}, 12), 10, feeds, [np.array([limit, -limit, 1e300])])


KINDS = {"int8": np.int8, "uint8": np.uint8, "int32": np.int32, "uint32": np.uint32, "int64": np.int64}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("bounds", BOUNDS, ids=IDS)
@pytest.mark.parametrize("computed", [False, True], ids=["constant", "computed"])
@pytest.mark.parametrize("target", [11, 9])
def test_integers(
    kind: Any, bounds: Sequence[str], computed: bool, target: int, converted: Converted
) -> None:
    model, feeds = _model(12, kind, bounds, computed=computed)
    expected = _clipped(kind, bounds)
    converted(model, target, feeds, [expected])


def test_small_integers_go_down_to_7(converted: Converted) -> None:
    model, feeds = _model(12, np.int8, ("low", "high"))
    assert op_types(converted(model, 7, feeds)) == ["Cast", "Clip", "Cast"]


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)], ids=["a scalar", "a list of one", "a matrix"])
def test_constant_data_keep_their_shape(shape: tuple[int, ...], converted: Converted) -> None:
    node = helper.make_node("Clip", ["x", "low"], ["y"], name="node")
    numbers: Array = np.arange(6, dtype=np.int8)[: math.prod(shape)]
    values = {"low": np.array(5, np.int8), "x": numbers.reshape(shape)}
    converted(build([node], {}, {"y": onnx.TensorProto.INT8}, 12, initializers=values), 11, {})


def test_the_upper_bound_wins(converted: Converted) -> None:
    node = helper.make_node("Clip", ["x", "low", "high"], ["y"], name="node")
    values = {"low": np.array(5, np.int64), "high": np.array(1, np.int64)}
    feeds = {"x": NUMBERS.astype(np.int64)}
    converted(build([node], feeds, {"y": 7}, 13, initializers=values), 11, feeds)


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.float64])
def test_computed_bounds_before_they_are_stretched(kind: type, converted: Converted) -> None:
    model, feeds = _model(12, kind, ("low", "high"))
    converted(model, 7, feeds)
