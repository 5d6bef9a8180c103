"""Upgrades of Upsample and Resize keep the mapping from output to input pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types

from opshift import convert_version, plan_version
from opshift.adapters.ops.tensor.resize import ASYMMETRIC_ROUNDINGS

IMAGE = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
MODES = ("nearest", "linear")


def _upsample_axis(data: Array, axis: int, scale: float, linear: bool) -> Array:
    """Resize one dimension as Upsample does: the input position is the output index divided by the scale."""
    size = data.shape[axis]
    positions = np.minimum(np.arange(int(size * np.float32(scale))) / np.float32(scale), size - 1)
    lower = positions.astype(int)
    if not linear:
        return np.asarray(np.take(data, lower, axis))
    weight = (positions - lower).reshape([-1 if each == axis else 1 for each in range(data.ndim)])
    upper = np.take(data, np.minimum(lower + 1, size - 1), axis)
    return np.asarray(np.take(data, lower, axis) * (1 - weight) + upper * weight, data.dtype)


def _expected_upsample(scales: Sequence[float], mode: str) -> Array:
    data = IMAGE
    for axis, scale in enumerate(scales):
        data = _upsample_axis(data, axis, scale, mode == "linear")
    return data


FACTORS = {
    "twice": (2.0, 2.0),
    "by 1.3": (1.3, 1.3),
    "different factors": (1.0, 2.5),
    "unchanged": (1.0, 1.0),
}


@pytest.mark.parametrize("target", [7, 8, 9, 10, 11, 13, 19])
@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
@pytest.mark.parametrize(
    ("attributes", "mode"),
    [({}, "nearest"), ({"mode": "nearest"}, "nearest"), ({"mode": "bilinear"}, "linear")],
    ids=["default", "nearest", "bilinear"],
)
def test_upgrades_height_and_width_scales_of_upsample_1(
    attributes: Mapping[str, str], mode: str, factors: tuple[float, float], target: int
) -> None:
    height, width = factors
    node = helper.make_node(
        "Upsample", ["x"], ["y"], name="node", height_scale=height, width_scale=width, **attributes
    )
    model = build([node], {"x": IMAGE}, ["y"], 1)
    result = convert_and_check(model, target, {"x": IMAGE}, [_expected_upsample((1, 1, height, width), mode)])
    assert op_types(result) == ["Upsample" if target < 10 else "Resize"]


@pytest.mark.parametrize("target", [9, 10, 11, 13, 18, 19])
@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
@pytest.mark.parametrize("mode", MODES)
def test_upgrades_the_scales_attribute_of_upsample_7(
    mode: str, factors: tuple[float, float], target: int
) -> None:
    scales = [1.0, 1.0, *factors]
    node = helper.make_node("Upsample", ["x"], ["y"], name="node", mode=mode, scales=scales)
    result = convert_and_check(build([node], {"x": IMAGE}, ["y"], 7), target, {"x": IMAGE})
    assert op_types(result) == ["Upsample" if target < 10 else "Resize"]


SCALES: dict[str, tuple[float, ...]] = {
    "twice": (1, 1, 2, 2),
    "by 1.3": (1, 1, 1.3, 1.3),
    "by 0.6": (1, 1, 0.6, 0.6),
    "by 0.5": (1, 1, 0.5, 0.5),
    "up and down": (1, 1, 1.3, 0.6),
    "down and up": (1, 1, 0.6, 2),
    "unchanged": (1, 1, 1, 1),
    "large factors": (1, 1, 3.7, 10.01),
}


def _scaled_model(
    op_type: str, opset: int, mode: str, scales: Sequence[float], *, constant: bool
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    initializers = {"scales": np.array(scales, np.float32)}
    node = helper.make_node(op_type, ["x", "scales"], ["y"], name="node", mode=mode)
    feeds = {"x": IMAGE} if constant else {"x": IMAGE, **initializers}
    return build([node], feeds, ["y"], opset, initializers=initializers if constant else None), feeds


@pytest.mark.parametrize("constant", [True, False], ids=["constant scales", "computed scales"])
@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("mode", MODES)
def test_keeps_the_coordinates_of_resize_10(mode: str, scales: Sequence[float], constant: bool) -> None:
    model, feeds = _scaled_model("Resize", 10, mode, scales, constant=constant)
    for target in (11, 13, 18, 19):
        result = convert_and_check(model, target, feeds)
        is_mixed = min(scales) < 1 < max(scales) if constant else True
        resizes = op_types(result).count("Resize")
        assert resizes == (2 if mode == "nearest" and is_mixed else 1)


@pytest.mark.parametrize("constant", [True, False], ids=["constant scales", "computed scales"])
@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
@pytest.mark.parametrize("mode", MODES)
def test_upgrades_the_scales_input_of_upsample_9(
    mode: str, factors: tuple[float, float], constant: bool
) -> None:
    model, feeds = _scaled_model("Upsample", 9, mode, (1, 1, *factors), constant=constant)
    for target in (10, 11, 13, 19):
        convert_and_check(model, target, feeds)


@pytest.mark.parametrize("constant", [True, False], ids=["constant scales", "computed scales"])
def test_upgrades_resize_that_scales_channels(constant: bool) -> None:
    model, feeds = _scaled_model("Resize", 10, "nearest", (1, 2, 0.6, 1.3), constant=constant)
    convert_and_check(model, 13, feeds)


@pytest.mark.parametrize("mode", MODES)
def test_treats_scales_of_a_constant_node_as_constant(mode: str) -> None:
    tensor = helper.make_tensor("scales", 1, [4], [1.0, 1.0, 0.6, 1.3])
    scales = helper.make_node("Constant", [], ["scales"], value=tensor)
    resize = helper.make_node("Resize", ["x", "scales"], ["y"], name="node", mode=mode)
    result = convert_and_check(build([scales, resize], {"x": IMAGE}, ["y"], 10), 11, {"x": IMAGE})
    assert "Min" not in op_types(result)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32], ids=["uint8", "int32"])
def test_upgrades_resize_of_integers(dtype: Any) -> None:
    data = np.arange(20, dtype=dtype).reshape(1, 1, 4, 5)
    feeds = {"x": data, "scales": np.array([1, 1, 0.6, 1.3], np.float32)}
    node = helper.make_node("Resize", ["x", "scales"], ["y"], name="node")
    outputs = {"y": helper.np_dtype_to_tensor_dtype(data.dtype)}
    convert_and_check(build([node], feeds, outputs, 10), 13, feeds)


RESIZE_INPUTS = ["x", "roi", "scales", "sizes"]


def _resize_to_sizes_model(mode: str, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("Resize", RESIZE_INPUTS, ["y"], name="node", mode=mode, **attributes)
    initializers: dict[str, Array] = {
        "roi": np.zeros(0, np.float32),
        "scales": np.zeros(0, np.float32),
        "sizes": np.array([1, 2, 8, 5], np.int64),
    }
    return build([node], {"x": IMAGE}, ["y"], 11, initializers=initializers)


@pytest.mark.parametrize("target", [13, 18, 19])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"coordinate_transformation_mode": "align_corners"},
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ],
    ids=["half_pixel", "align_corners", "asymmetric"],
)
@pytest.mark.parametrize("mode", [*MODES, "cubic"])
def test_drops_empty_scales_if_sizes_are_given(mode: str, attributes: Mapping[str, str], target: int) -> None:
    result = convert_and_check(_resize_to_sizes_model(mode, **attributes), target, {"x": IMAGE})
    assert list(result.graph.node[0].input) == ["x", "roi", "", "sizes"]


@pytest.mark.parametrize("sizes", [[], [""]], ids=["omitted", "empty name"])
@pytest.mark.parametrize("mode", [*MODES, "cubic"])
def test_keeps_scales_without_sizes(mode: str, sizes: list[str]) -> None:
    inputs = ["x", "roi", "scales", *sizes]
    node = helper.make_node("Resize", inputs, ["y"], name="node", mode=mode)
    initializers = {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 1.3, 0.6], np.float32)}
    model = build([node], {"x": IMAGE}, ["y"], 11, initializers=initializers)
    assert list(convert_and_check(model, 13, {"x": IMAGE}).graph.node[0].input) == inputs


HALF = Fraction(1, 2)
ROUNDINGS = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda position: math.ceil(position - HALF),
    "round_prefer_ceil": lambda position: math.floor(position + HALF),
}


def test_asymmetric_mode_reads_the_pixels_of_tf_half_pixel_for_nn() -> None:
    """Compare the pixels of all output indices for scales 1 to 8, with each rounding in either mode."""

    def pixels(rounding: str, offset: Fraction) -> list[int]:
        positions = [(index + offset) / scale for scale in range(1, 9) for index in range(5 * scale)]
        return [ROUNDINGS[rounding](each) for each in positions]

    asymmetric = {each: pixels(each, Fraction(0)) for each in ROUNDINGS}
    same = {
        rounding: each.encode()
        for rounding in ROUNDINGS
        for each in ROUNDINGS
        if asymmetric[each] == pixels(rounding, HALF)
    }
    assert same == ASYMMETRIC_ROUNDINGS


def _tf_half_pixel_model(
    inputs: Mapping[str, Sequence[float]], *, constant: bool = True, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    mode = "tf_half_pixel_for_nn"
    node = helper.make_node(
        "Resize", RESIZE_INPUTS, ["y"], name="node", coordinate_transformation_mode=mode, **attributes
    )
    arrays: dict[str, Array] = {
        name: np.array(inputs.get(name, []), np.float32) for name in ("roi", "scales")
    }
    if "sizes" in inputs:
        arrays["sizes"] = np.array(inputs["sizes"], np.int64)
    else:
        node.input.pop()
    feeds = {"x": IMAGE} if constant else {"x": IMAGE, **arrays}
    return build([node], feeds, ["y"], 11, initializers=arrays if constant else {}), feeds


TF_HALF_PIXEL_CASES: dict[str, tuple[Mapping[str, Sequence[float]], bool]] = {
    "integer scales": ({"scales": [1, 1, 2, 3]}, True),
    "sizes with integer scales": ({"sizes": [1, 2, 20, 7]}, True),
    "fractions": ({"scales": [1, 1, 0.6, 1.7]}, False),
    "sizes with fractions": ({"sizes": [1, 2, 4, 11]}, False),
}


@pytest.mark.parametrize("target", [13, 18, 19])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(
    ("inputs", "has_integer_scales"), TF_HALF_PIXEL_CASES.values(), ids=TF_HALF_PIXEL_CASES
)
def test_replaces_tf_half_pixel_for_nn(
    inputs: Mapping[str, Sequence[float]], has_integer_scales: bool, rounding: str, target: int
) -> None:
    model, feeds = _tf_half_pixel_model(inputs, nearest_mode=rounding)
    result = convert_and_check(model, target, feeds, tolerance=0)
    is_asymmetric = has_integer_scales and rounding in ASYMMETRIC_ROUNDINGS
    assert set(op_types(result)) == ({"Resize"} if is_asymmetric else {"Gather"})
    assert b"tf_half_pixel_for_nn" not in result.SerializeToString()


@pytest.mark.parametrize("target", [13, 19])
@pytest.mark.parametrize(
    ("inputs", "constant", "attributes"),
    [
        pytest.param({"scales": [1, 1, 2, 2]}, False, {}, id="computed scales"),
        pytest.param({"sizes": [1, 2, 10, 7]}, False, {}, id="computed sizes"),
        pytest.param({"scales": [1, 1, 2, 2]}, True, {"mode": "linear"}, id="undefined for linear"),
    ],
)
def test_keeps_tf_half_pixel_for_nn_without_an_exact_replacement(
    inputs: Mapping[str, Sequence[float]], constant: bool, attributes: Mapping[str, str], target: int
) -> None:
    model, feeds = _tf_half_pixel_model(inputs, constant=constant, **attributes)
    (node,) = convert_and_check(model, target, feeds).graph.node
    assert list(node.attribute) == list(model.graph.node[0].attribute)


@pytest.mark.parametrize(
    ("inputs", "constant"),
    [
        pytest.param({"scales": [1, 1, 2, 2]}, False, id="computed scales"),
        pytest.param({"sizes": [1, 2, 10, 7]}, False, id="computed sizes"),
        pytest.param({"scales": [1, 1, 1.7, 1.1]}, True, id="scale that keeps a size"),
    ],
)
def test_does_not_approximate_tf_half_pixel_for_nn(
    inputs: Mapping[str, Sequence[float]], constant: bool
) -> None:
    model, feeds = _tf_half_pixel_model(inputs, constant=constant)
    (node,) = convert_version(model, 13, allow="approximate").graph.node
    assert list(node.attribute) == list(model.graph.node[0].attribute)
    assert not plan_version(model, 13, allow="approximate").allowances
    convert_and_check(model, 13, feeds, tolerance=0)


def test_refuses_tf_half_pixel_for_nn_with_too_many_pixels() -> None:
    model, _ = _tf_half_pixel_model({"scales": [1, 1, 1, 100_000.5]})
    refusal = refusal_of(model, 13)
    assert refusal.code == "limit.exceeded"


@pytest.mark.parametrize("rounding", ASYMMETRIC_ROUNDINGS)
def test_replaces_tf_half_pixel_for_nn_without_shapes(rounding: str) -> None:
    model, feeds = _tf_half_pixel_model({"scales": [1, 1, 2, 3]}, nearest_mode=rounding)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    result = convert_and_check(model, 13, feeds, tolerance=0)
    assert op_types(result) == ["Resize"]
    assert b"tf_half_pixel_for_nn" not in result.SerializeToString()
