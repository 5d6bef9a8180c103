"""Mod, Round, IsInf, IsNaN, Sign, the hyperbolic functions, Erf and Det, before they came."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, assert_equal, build, run

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, np.float32, np.float64)
ODD = [math.inf, -math.inf, math.nan, 0.0, -0.0, 1.5, -2.5, 6e4, -6e4, 6e-8]
LARGE: dict[type, list[float]] = {
    np.float16: [65504.0],
    np.float32: [8388609.0, 2**24 + 2, 1e30],
    np.float64: [2**52 + 1.0, 1e300],
}


def _model(op: str, opset: int, output: type, *arrays: Array, **attributes: int) -> onnx.ModelProto:
    feeds: dict[str, Array] = {f"x{place}": array for place, array in enumerate(arrays)}
    node = helper.make_node(op, list(feeds), ["y"], name="node", **attributes)
    return build([node], feeds, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(output))}, opset)


@pytest.mark.parametrize("target", [7, 9])
@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("kind", INTEGERS)
def test_remainders_of_integers(kind: type, fmod: int, target: int, converted: Converted) -> None:
    low = -7 if np.iinfo(kind).min else 1
    values: Array = np.array([*range(low, 8), np.iinfo(kind).max], kind)
    divisors: Array = np.array([d for d in range(low, 8) if d], kind).reshape(-1, 1)
    model = _model("Mod", 10, kind, values, divisors, fmod=fmod)
    expected = np.fmod(values, divisors) if fmod else np.mod(values, divisors)
    converted(model, target, {"x0": values, "x1": divisors}, [expected])


@pytest.mark.parametrize("target", [10, 13, 27])
@pytest.mark.parametrize("kind", FLOATS)
def test_remainders_of_floats_with_the_sign_of_the_divisor(
    kind: type, target: int, converted: Converted
) -> None:
    values: Array = np.array([*ODD, 5.25, -5.25, 7.0], kind)
    divisors: Array = np.array([2.0, -2.0, 0.0, 0.75, math.inf, -math.inf, math.nan], kind).reshape(-1, 1)
    model = _model("Mod", 28, kind, values, divisors)
    with np.errstate(invalid="ignore"):
        expected = np.mod(values, divisors)
    converted(model, target, {"x0": values, "x1": divisors}, [expected])


def test_remainders_of_floats_are_approximate(refusal: Refusing) -> None:
    data: Array = np.array([5.5, -5.5, 3.0, 1e-3], np.float32)
    model = _model("Mod", 10, np.float32, data, data[::-1].copy(), fmod=1)
    found = refusal(model, 9)
    assert found.reason == "the remainder of floats is computed from a rounded quotient"
    moved = convert_version(model, 9, allow="approximate")
    assert_equal(run(moved, {"x0": data, "x1": data[::-1]}), [np.fmod(data, data[::-1])], 1e-3)


@pytest.mark.parametrize("target", [7, 10])
@pytest.mark.parametrize("kind", FLOATS)
def test_rounding(kind: type, target: int, converted: Converted) -> None:
    """Halves, odd and even, on both sides of zero, and numbers that are whole already."""
    halves = np.arange(-6, 6.5, 0.5)
    data: Array = np.array([*ODD, *halves, 0.49999997, -0.49999997, 2049, *LARGE[kind]], kind)
    converted(_model("Round", 11, kind, data), target, {"x0": data}, [np.rint(data)])


@pytest.mark.parametrize("target", [7, 9])
@pytest.mark.parametrize(
    "sides",
    [
        pytest.param({}, id="both sides"),
        pytest.param({"detect_negative": 0}, id="positive only"),
        pytest.param({"detect_positive": 0}, id="negative only"),
        pytest.param({"detect_positive": 0, "detect_negative": 0}, id="neither"),
    ],
)
@pytest.mark.parametrize("kind", FLOATS)
def test_infinities(kind: type, sides: dict[str, int], target: int, converted: Converted) -> None:
    data: Array = np.array([*ODD, np.finfo(kind).max, np.finfo(kind).min], kind)
    expected = (np.isposinf(data) & bool(sides.get("detect_positive", 1))) | (
        np.isneginf(data) & bool(sides.get("detect_negative", 1))
    )
    model = _model("IsInf", 20, np.bool_, data, **sides)
    converted(model, target, {"x0": data}, [expected])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("kind", FLOATS)
def test_no_numbers(kind: type, target: int, converted: Converted) -> None:
    data: Array = np.array([*ODD, np.finfo(kind).max], kind)
    converted(_model("IsNaN", 9, np.bool_, data), target, {"x0": data}, [np.isnan(data)])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
def test_signs(kind: type, target: int, converted: Converted) -> None:
    low = -3 if kind in FLOATS or np.iinfo(kind).min else 0
    ends = [-math.inf, math.inf, 6e-8] if kind in FLOATS else [np.iinfo(kind).min, np.iinfo(kind).max]
    data: Array = np.array([low, 0, 1, 5, *ends], kind)
    converted(_model("Sign", 9, kind, data), target, {"x0": data}, [np.sign(data)])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("op", "low", "high", "function"),
    [
        pytest.param("Sinh", -5, 5, np.sinh, id="hyperbolic sine"),
        pytest.param("Cosh", -5, 5, np.cosh, id="hyperbolic cosine"),
        pytest.param("Asinh", -50, 50, np.arcsinh, id="its inverse"),
        pytest.param("Acosh", 1, 50, np.arccosh, id="the inverse of the cosine"),
        pytest.param("Atanh", -0.99, 0.99, np.arctanh, id="the inverse of the tangent"),
        pytest.param("Erf", -4, 4, np.vectorize(math.erf), id="the error function"),
    ],
)
def test_functions_that_are_approximate(
    op: str, low: float, high: float, function: Callable[[Array], Array], kind: type, refusal: Refusing
) -> None:
    data: Array = np.linspace(low, high, 41).astype(kind)
    model = _model(op, 9, kind, data)
    assert refusal(model, 8).remedy == "allow 'approximate' if the model tolerates it"
    moved = convert_version(model, 7, allow="approximate")
    assert_equal(run(moved, {"x0": data}), [function(data).astype(kind)])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_determinants_are_approximate(size: int, refusal: Refusing) -> None:
    data: Array = np.random.default_rng(size).standard_normal((2, 3, size, size)).astype(np.float32)
    model = _model("Det", 11, np.float32, data)
    assert refusal(model, 10).remedy == "allow 'approximate' if the model tolerates it"
    moved = convert_version(model, 7, allow="approximate")
    assert_equal(run(moved, {"x0": data}), [np.linalg.det(data)], 1e-4)


def test_large_determinants_are_refused(refusal: Refusing) -> None:
    data: Array = np.ones((5, 5), np.float32)
    reason = refusal(_model("Det", 11, np.float32, data), 10).reason
    assert reason == "the size of the matrices in 'x0' must be known and between 1 and 4"
