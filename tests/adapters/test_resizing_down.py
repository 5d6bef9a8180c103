"""Resize and Upsample on their way down: the direct form where there is one, else Gather and arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.running import Array, assert_equal, build, op_types, run

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
IMAGE = np.random.default_rng(0).standard_normal((1, 2, 6, 8)).astype(np.float32)
BY_SCALE = {"scales": np.array([1, 1, 0.5, 2], np.float32)}
TWICE = {"scales": np.array([1, 1, 2, 2], np.float32)}
TO_SIZE = {"sizes": np.array([1, 2, 4, 11], np.int64)}
ROI = np.array([0, 0, 0.2, 0, 1, 1, 0.7, 1.2], np.float32)


def _model(
    given: Mapping[str, Array], opset: int, *, constant: bool = True, data: Array = IMAGE, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    held = dict(given)
    if opset < 13:
        held = {"roi": np.zeros(0, np.float32), "scales": np.zeros(0, np.float32), **held}
    names = [name if name in held else "" for name in ("roi", "scales", "sizes")]
    while not names[-1]:
        names.pop()
    node = helper.make_node("Resize", ["x", *names], ["y"], name="node", **attributes)
    feeds = {"x": data} if constant else {"x": data, **held}
    element = helper.np_dtype_to_tensor_dtype(data.dtype)
    return build([node], feeds, {"y": element}, opset, initializers=held if constant else {}), feeds


WAYS: dict[str, tuple[Mapping[str, Array], int, dict[str, Any]]] = {
    "nearest, half pixels": (BY_SCALE, 19, {}),
    "nearest, to a size": (TO_SIZE, 19, {"nearest_mode": "round_prefer_ceil"}),
    "nearest, rounded up": (BY_SCALE, 13, {"nearest_mode": "ceil"}),
    "linear, half pixels": (BY_SCALE, 19, {"mode": "linear"}),
    "linear, PyTorch's half pixels": (
        TO_SIZE,
        19,
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
    ),
    "linear, aligned corners": (
        TO_SIZE,
        19,
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ),
    "linear, asymmetric": (BY_SCALE, 19, {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}),
    "cubic": (BY_SCALE, 19, {"mode": "cubic"}),
    "cubic, without what is outside": (TO_SIZE, 19, {"mode": "cubic", "exclude_outside": 1}),
    "a part of the image": (
        {**TO_SIZE, "roi": ROI},
        19,
        {
            "mode": "linear",
            "coordinate_transformation_mode": "tf_crop_and_resize",
            "extrapolation_value": 7.0,
        },
    ),
    "symmetric half pixels": (
        {"scales": np.array([1, 1, 0.6, 1.7], np.float32)},
        19,
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
    ),
    "antialiased": (BY_SCALE, 18, {"mode": "linear", "antialias": 1}),
    "antialiased cubic": (TO_SIZE, 18, {"mode": "cubic", "antialias": 1}),
    "antialiased, without what is outside": (
        BY_SCALE,
        18,
        {"mode": "linear", "antialias": 1, "exclude_outside": 1},
    ),
    "antialiased cubic, without what is outside": (
        TO_SIZE,
        18,
        {"mode": "cubic", "antialias": 1, "exclude_outside": 1},
    ),
    "antialiased, of the same size": (
        {"scales": np.ones(4, np.float32)},
        18,
        {"mode": "linear", "antialias": 1, "exclude_outside": 1},
    ),
    "two axes by scales": (
        {"scales": np.array([2, 0.5], np.float32)},
        18,
        {"mode": "linear", "axes": [3, 2]},
    ),
    "two axes to sizes": ({"sizes": np.array([3, 12], np.int64)}, 18, {"mode": "linear", "axes": [-2, -1]}),
    "not larger": (
        {"sizes": np.array([4, 7], np.int64)},
        18,
        {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"},
    ),
    "not smaller": (
        {"sizes": np.array([7, 7], np.int64)},
        18,
        {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"},
    ),
    "only the nearest": (TO_SIZE, 11, {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}),
}


# What lies outside is told apart by Where, which is not there before 9 for floats of unknown shape.
WAYS_DOWN = [
    pytest.param(*row, target, id=f"{name} to {target}")
    for name, row in WAYS.items()
    for target in (18, 17, 12, 10, 9, 7)
    if target < row[1] and (target >= 9 or "extrapolation_value" not in row[2])
]


@pytest.mark.parametrize(("given", "opset", "attributes", "target"), WAYS_DOWN)
def test_constant_sizes(
    given: Mapping[str, Array], opset: int, attributes: Mapping[str, Any], target: int, converted: Converted
) -> None:
    model, feeds = _model(given, opset, **attributes)
    converted(model, target, feeds, tolerance=1e-4)


@pytest.mark.parametrize("target", [17, 12, 10, 9])
@pytest.mark.parametrize(
    ("given", "attributes"),
    [
        pytest.param(BY_SCALE, {"mode": "linear"}, id="linear"),
        pytest.param(BY_SCALE, {"mode": "cubic"}, id="cubic"),
        pytest.param(TO_SIZE, {}, id="nearest"),
        pytest.param({"scales": np.array([2, 0.5], np.float32)}, {"axes": [3, 2]}, id="two axes by scales"),
        pytest.param(
            {"sizes": np.array([4, 7], np.int64)},
            {"mode": "linear", "axes": [3, 2], "keep_aspect_ratio_policy": "not_larger"},
            id="not larger",
        ),
    ],
)
def test_sizes_that_are_computed(
    given: Mapping[str, Array], attributes: Mapping[str, Any], target: int, converted: Converted
) -> None:
    model, feeds = _model(given, 18, constant=False, **attributes)
    (expected,) = run(model, feeds)
    stated = helper.make_tensor_value_info("y", TensorProto.FLOAT, expected.shape)
    model.graph.output[0].CopyFrom(stated)
    converted(model, target, feeds, tolerance=1e-4)


def test_computed_scales_that_may_change_no_size_are_refused(refusal: Refusing) -> None:
    model, _ = _model(BY_SCALE, 13, constant=False, mode="linear")
    assert refusal(model, 10).reason == KEPT


@pytest.mark.parametrize("target", [10, 9])
def test_computed_sizes_need_no_shape(target: int, converted: Converted) -> None:
    model, feeds = _model(TO_SIZE, 13, constant=False, mode="linear")
    converted(model, target, feeds, tolerance=1e-4)


@pytest.mark.parametrize(
    ("given", "attributes", "target", "expected"),
    [
        pytest.param(TWICE, {"nearest_mode": "floor"}, 18, ["Resize"], id="nothing to do"),
        pytest.param(TWICE, {}, 10, ["Resize"], id="nearest by whole factors is the same in 10"),
        pytest.param(TWICE, {}, 9, ["Upsample"], id="and in Upsample-9"),
        pytest.param(TWICE, {}, 7, ["Upsample"], id="and in Upsample-7"),
        pytest.param({"sizes": np.array([1, 2, 12, 8], np.int64)}, {}, 10, ["Resize"], id="sizes as scales"),
        pytest.param(
            BY_SCALE,
            {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
            10,
            ["Resize"],
            id="asymmetric is how 10 is run",
        ),
        pytest.param(
            TWICE,
            {"coordinate_transformation_mode": "half_pixel_symmetric"},
            18,
            ["Resize"],
            id="symmetric half pixels with whole sizes",
        ),
        pytest.param({"sizes": np.array([1, 2, 6, 8], np.int64)}, {}, 9, ["Upsample"], id="the size it has"),
    ],
)
def test_direct_forms(
    given: Mapping[str, Array],
    attributes: Mapping[str, Any],
    target: int,
    expected: Sequence[str],
    converted: Converted,
) -> None:
    model, feeds = _model(given, 19, **attributes)
    assert op_types(converted(model, target, feeds)) == expected


def test_axes_of_constants_stay_one_node(converted: Converted) -> None:
    model, feeds = _model({"scales": np.array([2.0, 0.5], np.float32)}, 18, axes=[3, 2])
    result = converted(model, 17, feeds)
    assert op_types(result) == ["Resize"]
    held = {each.name: numpy_helper.to_array(each).tolist() for each in result.graph.initializer}
    assert held[result.graph.node[0].input[2]] == [1, 1, 0.5, 2]


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.uint8])
def test_nearest_pixels_of_any_type(kind: type, converted: Converted) -> None:
    data: Array = (IMAGE * 10 + 50).astype(kind)
    model, feeds = _model(BY_SCALE, 13, data=data)
    if kind is np.uint8:
        converted(model, 9, feeds)
        return
    expected = data[:, :, np.ceil(np.arange(3) * 2 + 0.5 - 0.5).astype(int)]
    expected = np.repeat(expected, 2, axis=3)
    converted(model, 9, feeds, [expected])


@pytest.mark.parametrize("target", [10, 9])
def test_half_precision_is_interpolated_in_float(target: int) -> None:
    model, _ = _model(BY_SCALE, 13, mode="linear")
    half, feeds = _model(BY_SCALE, 13, mode="linear", data=IMAGE.astype(np.float16))
    (expected,) = run(model, {"x": feeds["x"].astype(np.float32)})
    assert_equal(run(convert_version(half, target), feeds), [expected.astype(np.float16)], 1e-3)


def test_a_size_that_is_not_known_is_read_from_the_data(converted: Converted) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], name="node", mode="linear")
    model = build([node], {"x": IMAGE}, ["y"], 13, initializers={"s": BY_SCALE["scales"]})
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = "n"
    feeds = {"x": IMAGE}
    assert_equal(run(convert_version(model, 10), feeds), run(model, feeds), 1e-4)


LENGTH = "onnxruntime rounds fractional sizes down before align_corners, others do not"
KEPT = "onnxruntime copies a dimension that keeps its size, but the definition shifts its pixels"
REFUSED: dict[str, tuple[Mapping[str, Array], int, Mapping[str, Any], str]] = {
    "corners of a size of a fraction": (
        {"scales": np.array([1, 1, 0.6, 0.6], np.float32)},
        13,
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        LENGTH,
    ),
    "scales that change no size": (
        {"scales": np.array([1, 1, 1.1, 1.1], np.float32)},
        13,
        {"mode": "linear"},
        KEPT,
    ),
    "a region of the same size": (
        {"sizes": np.array([1, 2, 6, 4], np.int64), "roi": ROI},
        13,
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
        KEPT,
    ),
    "a rule for the nearest pixel": (
        TO_SIZE,
        11,
        {"mode": "linear", "coordinate_transformation_mode": "tf_half_pixel_for_nn"},
        "tf_half_pixel_for_nn is only defined for mode nearest",
    ),
}


WHOLE = {
    "nearest, as PyTorch writes it": ("nearest", "asymmetric", "floor", 1.5),
    "nearest, half pixels": ("nearest", "half_pixel", "round_prefer_floor", 3.0),
    "nearest, PyTorch's half pixels": ("nearest", "pytorch_half_pixel", "round_prefer_ceil", 2.0),
    "linear, PyTorch's half pixels": ("linear", "pytorch_half_pixel", "floor", 2.0),
    "linear, aligned corners": ("linear", "align_corners", "floor", 2.0),
    "cubic, PyTorch's half pixels": ("cubic", "pytorch_half_pixel", "floor", 3.0),
}


@pytest.mark.parametrize("target", [10, 9, 8])
@pytest.mark.parametrize(("mode", "coordinates", "rounding", "scale"), WHOLE.values(), ids=WHOLE)
def test_enlarged_images_of_any_size(
    mode: str, coordinates: str, rounding: str, scale: float, target: int, converted: Converted
) -> None:
    attributes: dict[str, Any] = {
        "mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": rounding
    }  # fmt: skip
    for height, width in ((6, 9), (1, 1)):
        image = np.arange(2.0 * height * width, dtype=np.float32).reshape(1, 2, height, width)
        model, feeds = _model(
            {"scales": np.array([1, 1, scale, scale], np.float32)}, 13, data=image, **attributes
        )
        for dim in model.graph.input[0].type.tensor_type.shape.dim[2:]:
            dim.dim_param = "size"
        result = converted(model, target, feeds)
        assert mode != "nearest" or op_types(result) == ["Resize" if target == 10 else "Upsample"]


@pytest.mark.parametrize(("given", "opset", "attributes", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(
    given: Mapping[str, Array], opset: int, attributes: Mapping[str, Any], reason: str, refusal: Refusing
) -> None:
    model, _ = _model(given, opset, **attributes)
    assert refusal(model, 10).reason == reason


def test_integers_are_not_interpolated(refusal: Refusing) -> None:
    model, _ = _model(BY_SCALE, 13, data=IMAGE.astype(np.int32), mode="linear")
    found = refusal(model, 10)
    assert found.reason == "the node interpolates int32, but the rounding of the result is undefined"


def test_an_unknown_rank_is_refused(refusal: Refusing) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], name="node")
    model = build([node], {"x": IMAGE}, ["y"], 13, initializers={"s": BY_SCALE["scales"]}, shapes=False)
    assert refusal(model, 10).reason == "the rank of 'x' is unknown"


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample_by_scales_that_are_computed(mode: str, converted: Converted) -> None:
    node = helper.make_node("Upsample", ["x", "s"], ["y"], name="node", mode=mode)
    feeds = {"x": IMAGE, "s": np.array([1, 1, 2, 1.5], np.float32)}
    model = build([node], feeds, ["y"], 9)
    model.graph.output[0].type.tensor_type.shape.CopyFrom(
        helper.make_tensor_value_info("y", 1, [1, 2, 12, 12]).type.tensor_type.shape
    )
    converted(model, 8, feeds)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample_1_has_two_factors(mode: str) -> None:
    node = helper.make_node("Upsample", ["x"], ["y"], name="node", mode=mode, scales=[1.0, 1.0, 2.0, 1.5])
    (found,) = convert_version(build([node], {"x": IMAGE}, ["y"], 7), 6).graph.node
    stated = {each.name: helper.get_attribute_value(each) for each in found.attribute}
    spelled = b"bilinear" if mode == "linear" else b"nearest"
    assert stated == {"height_scale": 2.0, "width_scale": 1.5, "mode": spelled}


def test_upsample_1_leaves_batch_and_channels_alone(refusal: Refusing) -> None:
    node = helper.make_node("Upsample", ["x"], ["y"], name="node", scales=[1.0, 2.0, 2.0, 1.5])
    found = refusal(build([node], {"x": IMAGE}, ["y"], 7), 6)
    assert found.reason.startswith("scales are [1.0, 2.0, 2.0, 1.5]; Upsample-1 enlarges the last two")
