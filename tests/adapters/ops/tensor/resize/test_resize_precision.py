"""Bound of the error of Resize where onnxruntime differs from the definition."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.conversion import refusal_of
from support.execution import Array, build, run

from opshift import convert_version
from opshift.adapters.ops.tensor.resize_request import ERROR

RANDOM = np.random.default_rng(0)
SIZES = (241, 307)
REGION = (0.1, -0.25, 0.9, 1.125)
A = -0.75


class Case(NamedTuple):
    """Scales or sizes for the last two axes, the coordinate mode, and other attributes."""

    scales: tuple[float, float] | None
    sizes: tuple[int, int] | None
    coordinates: str
    attributes: dict[str, Any] = {}

    def lengths(self) -> tuple[int, ...]:
        if self.sizes:
            return self.sizes
        assert self.scales
        return tuple(
            math.floor(np.float32(size) * np.float32(scale))
            for size, scale in zip(SIZES, self.scales, strict=True)
        )


CASES = {
    "keeps its size": Case((1.001, 1.002), None, "half_pixel"),
    "keeps one size of a region": Case(None, (241, 400), "tf_crop_and_resize"),
    "antialias that keeps a size": Case((0.41, 1.001), None, "half_pixel", {"antialias": 1}),
    "antialias without outside": Case(
        (0.41, 1.001), None, "half_pixel", {"antialias": 1, "exclude_outside": 1}
    ),
    "fractional aligned sizes": Case((1.37, 0.73), None, "align_corners"),
    "fractional sizes of a region": Case((0.73, 1.37), None, "tf_crop_and_resize"),
    "one pixel": Case((0.006, 1.37), None, "pytorch_half_pixel"),
}


def _coordinates(case: Case, axis: int) -> tuple[Array, np.longdouble]:
    """Return the exact coordinate of each output pixel, and the scale."""
    size, length = np.longdouble(SIZES[axis]), case.lengths()[axis]
    scale = np.longdouble(np.float32(case.scales[axis])) if case.scales else length / size
    index = np.arange(length, dtype=np.longdouble)
    start, end = (np.longdouble(np.float32(each)) for each in (REGION[axis], REGION[2 + axis]))
    if case.coordinates == "align_corners":
        return index * (size - 1) / (length - 1), scale
    if case.coordinates == "tf_crop_and_resize":
        return start * (size - 1) + index * (end - start) * (size - 1) / (length - 1), scale
    if case.coordinates == "pytorch_half_pixel" and length == 1:
        return index * 0, scale
    return (index + 0.5) / scale - 0.5, scale


def _kernel(distance: Array, mode: str) -> Array:
    distance = abs(distance)
    if mode == "linear":
        return np.asarray(np.maximum(1 - distance, 0))
    near = ((A + 2) * distance - (A + 3)) * distance**2 + 1
    far = ((A * distance - 5 * A) * distance + 8 * A) * distance - 4 * A
    return np.asarray(np.where(distance < 1, near, np.where(distance < 2, far, 0)))


def _weights(case: Case, axis: int, mode: str) -> tuple[Array, Array]:
    """Return the weight of each input pixel for each output pixel, and where the extrapolation value is."""
    coordinate, scale = _coordinates(case, axis)
    size = SIZES[axis]
    outside = (coordinate < 0) | (coordinate > size - 1)
    shrinkage = min(scale, np.longdouble(1)) if case.attributes.get("antialias") else np.longdouble(1)
    if mode == "linear" and shrinkage == 1 and not case.attributes.get("antialias"):
        coordinate = coordinate.clip(0, size - 1)
    margin = math.ceil(2 / shrinkage) + 1 + math.ceil(max(0, -coordinate.min(), coordinate.max() - size))
    pixels = np.arange(-margin, size + margin)
    weights = _kernel((pixels - coordinate[:, None]) * shrinkage, mode)
    if case.attributes.get("exclude_outside"):
        weights[:, (pixels < 0) | (pixels >= size)] = 0
    weights /= weights.sum(1, keepdims=True)
    total = np.zeros((len(coordinate), size), np.longdouble)
    np.add.at(total.T, pixels.clip(0, size - 1), weights.T)
    return total, outside & (case.coordinates == "tf_crop_and_resize")


def _model(case: Case, mode: str, dtype: type) -> onnx.ModelProto:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    scales, sizes = ("s", "") if case.scales else ("", "s")
    nodes = [
        helper.make_node("Cast", ["x"], ["data"], to=number),
        helper.make_node(
            "Resize", ["data", "r", scales, sizes], ["resized"], mode=mode, axes=[2, 3],
            coordinate_transformation_mode=case.coordinates, extrapolation_value=0.5, **case.attributes,
        ),
        helper.make_node("Cast", ["resized"], ["y"], to=TensorProto.DOUBLE),
    ]  # fmt: skip
    data = np.zeros((1, 1, *SIZES))
    model = build(nodes, {"x": data}, {"y": TensorProto.DOUBLE}, 19)
    factors = np.array(case.scales, np.float32) if case.scales else np.array(case.sizes)
    for name, value in (("s", factors), ("r", np.array(REGION, np.float32))):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_interpolation_has_a_bounded_error(case: Case, mode: str, dtype: type) -> None:
    model = _model(case, mode, dtype)
    # Without antialiasing, older versions of Resize express the node down to opset 11.
    target = 17 if "antialias" in case.attributes else 9
    if target == 9 and dtype is ml_dtypes.bfloat16:
        return  # opset 9 has no bfloat16
    refusal = refusal_of(model, target)
    assert refusal.remedy == "pass --allow approximate (allow= in Python) if the model tolerates it"
    assert refusal.reason.endswith(f"the error is {ERROR}")
    data = RANDOM.uniform(-1, 1, (1, 1, *SIZES)).astype(dtype).astype(np.float64)
    result = convert_version(model, target, allow="approximate")
    found = run(result, {"x": data})[0].astype(np.longdouble)
    (rows, row_outside), (columns, column_outside) = (_weights(case, axis, mode) for axis in (0, 1))
    exact = rows @ data[0, 0].astype(np.longdouble) @ columns.T
    exact[row_outside] = exact[:, column_outside] = 0.5
    errors = abs(found[0, 0] - exact)
    rounding = 2.0**-24 * sum(SIZES)
    if dtype in (np.float16, ml_dtypes.bfloat16):
        errors -= abs(exact) * float(ml_dtypes.finfo(dtype).eps)
    assert errors.max() <= 4 * rounding


@pytest.mark.some_cases(4)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_special_values_affect_only_pixels_near_them(mode: str, case: Case) -> None:
    data: Array = RANDOM.uniform(-1, 1, (1, 1, *SIZES)).astype(np.float32).astype(np.float64)
    special = RANDOM.random(SIZES) < 2e-4
    plain = data.copy()
    data[0, 0, special] = RANDOM.choice([math.inf, -math.inf, math.nan], special.sum())
    found, expected = (
        run(convert_version(_model(case, mode, np.float32), 9, allow="approximate"), {"x": each})[0][0, 0]
        for each in (data, plain)
    )
    (rows, row_outside), (columns, column_outside) = (_weights(case, axis, mode) for axis in (0, 1))
    reads = [abs(weights) > 1e-3 for weights in (rows, columns)]
    reads[0][row_outside] = reads[1][column_outside] = False
    # A filter may also read the pixels next to those with a weight, and multiply them by 0.
    near = [np.any([np.roll(each, shift, 1) for shift in range(-2, 3)], axis=0) for each in reads]
    is_affected, may_be_affected = (
        (each[0].astype(int) @ special.astype(int) @ each[1].T.astype(int)) > 0 for each in (reads, near)
    )
    assert not np.isfinite(found[is_affected]).any()
    np.testing.assert_array_equal(found[~may_be_affected], expected[~may_be_affected])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "name", ["keeps its size", "fractional aligned sizes", "fractional sizes of a region"]
)
def test_nearest_pixels_have_a_bounded_distance(name: str, dtype: type) -> None:
    case = CASES[name]
    data = RANDOM.permutation(math.prod(SIZES)).reshape(1, 1, *SIZES).astype(np.float64)
    result = convert_version(_model(case, "nearest", dtype), 9, allow="approximate")
    found = run(result, {"x": data})[0][0, 0]
    tolerance = 1e-6 + sum(SIZES) * 2.0**-22
    matches = np.zeros(found.shape, bool)
    coordinates = [_coordinates(case, axis)[0] for axis in (0, 1)]
    for shifts in product((-tolerance, tolerance), repeat=2):
        pairs = zip(coordinates, shifts, SIZES, strict=True)
        rows, columns = (
            np.ceil(each + shift - 0.5).clip(0, size - 1).astype(int) for each, shift, size in pairs
        )
        matches |= found == data[0, 0][np.ix_(rows, columns)]
    if case.coordinates == "tf_crop_and_resize":
        near_edge = [
            (each < tolerance) | (each > size - 1 - tolerance)
            for each, size in zip(coordinates, SIZES, strict=True)
        ]
        matches |= (found == 0.5) & np.logical_or.outer(*near_edge)
    assert matches.all()
