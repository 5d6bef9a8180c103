"""Downgrades of Resize and Upsample to one node where possible, else to Gather and arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, assert_equal, build, op_types, run

from opshift import convert_version

IMAGE = np.random.default_rng(0).standard_normal((1, 2, 6, 8)).astype(np.float32)
BY_SCALE = {"scales": np.array([1, 1, 0.5, 2], np.float32)}
DOUBLED = {"scales": np.array([1, 1, 2, 2], np.float32)}
TO_SIZE = {"sizes": np.array([1, 2, 4, 11], np.int64)}
ROI = np.array([0, 0, 0.2, 0, 1, 1, 0.7, 1.2], np.float32)


def _model(
    optional_inputs: Mapping[str, Array],
    opset: int,
    *,
    constant: bool = True,
    data: Array = IMAGE,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    inputs = dict(optional_inputs)
    if opset < 13:
        inputs = {"roi": np.zeros(0, np.float32), "scales": np.zeros(0, np.float32), **inputs}
    input_names = [name if name in inputs else "" for name in ("roi", "scales", "sizes")]
    while not input_names[-1]:
        input_names.pop()
    node = helper.make_node("Resize", ["x", *input_names], ["y"], name="node", **attributes)
    feeds = {"x": data} if constant else {"x": data, **inputs}
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    return build([node], feeds, {"y": element_type}, opset, initializers=inputs if constant else {}), feeds


RESIZE_CASES: dict[str, tuple[Mapping[str, Array], int, dict[str, Any]]] = {
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
    "cubic, exclude_outside": (TO_SIZE, 19, {"mode": "cubic", "exclude_outside": 1}),
    "crop and resize": (
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
    "antialiased, exclude_outside": (
        BY_SCALE,
        18,
        {"mode": "linear", "antialias": 1, "exclude_outside": 1},
    ),
    "antialiased cubic, exclude_outside": (
        TO_SIZE,
        18,
        {"mode": "cubic", "antialias": 1, "exclude_outside": 1},
    ),
    "antialiased, same size": (
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
    "nearest, tf_half_pixel_for_nn": (
        TO_SIZE,
        11,
        {"coordinate_transformation_mode": "tf_half_pixel_for_nn"},
    ),
}


# Extrapolation needs Where, which opsets before 9 cannot express for floats of unknown shape.
RESIZE_STEPS = [
    pytest.param(*row, target, id=f"{name} to {target}")
    for name, row in RESIZE_CASES.items()
    for target in (18, 17, 12, 10, 9, 7)
    if target < row[1] and (target >= 9 or "extrapolation_value" not in row[2])
]


@pytest.mark.parametrize(("optional_inputs", "opset", "attributes", "target"), RESIZE_STEPS)
def test_downgrades_resize_with_constant_sizes(
    optional_inputs: Mapping[str, Array], opset: int, attributes: Mapping[str, Any], target: int
) -> None:
    model, feeds = _model(optional_inputs, opset, **attributes)
    convert_and_check(model, target, feeds, tolerance=1e-4)


@pytest.mark.parametrize("target", [17, 12, 10, 9])
@pytest.mark.parametrize(
    ("optional_inputs", "attributes"),
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
def test_downgrades_resize_with_computed_sizes(
    optional_inputs: Mapping[str, Array], attributes: Mapping[str, Any], target: int
) -> None:
    model, feeds = _model(optional_inputs, 18, constant=False, **attributes)
    (expected,) = run(model, feeds)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, expected.shape)
    model.graph.output[0].CopyFrom(output)
    convert_and_check(model, target, feeds, tolerance=1e-4)


def test_refuses_computed_scales_that_may_keep_a_size() -> None:
    model, _ = _model(BY_SCALE, 13, constant=False, mode="linear")
    assert refusal_of(model, 10).reason.startswith(KEPT_SIZE_REASON)


@pytest.mark.parametrize("target", [10, 9])
def test_downgrades_computed_sizes_without_a_declared_output_shape(target: int) -> None:
    model, feeds = _model(TO_SIZE, 13, constant=False, mode="linear")
    convert_and_check(model, target, feeds, tolerance=1e-4)


@pytest.mark.parametrize(
    ("optional_inputs", "attributes", "target", "expected"),
    [
        pytest.param(DOUBLED, {"nearest_mode": "floor"}, 18, ["Resize"], id="unchanged node"),
        pytest.param(DOUBLED, {}, 10, ["Resize"], id="nearest by integral factors to Resize-10"),
        pytest.param(DOUBLED, {}, 9, ["Upsample"], id="nearest by integral factors to Upsample-9"),
        pytest.param(DOUBLED, {}, 7, ["Upsample"], id="nearest by integral factors to Upsample-7"),
        pytest.param({"sizes": np.array([1, 2, 12, 8], np.int64)}, {}, 10, ["Resize"], id="sizes as scales"),
        pytest.param(
            BY_SCALE,
            {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
            10,
            ["Resize"],
            id="asymmetric to Resize-10",
        ),
        pytest.param(
            DOUBLED,
            {"coordinate_transformation_mode": "half_pixel_symmetric"},
            18,
            ["Resize"],
            id="symmetric half pixels with integral sizes",
        ),
        pytest.param({"sizes": np.array([1, 2, 6, 8], np.int64)}, {}, 9, ["Upsample"], id="unchanged size"),
    ],
)
def test_keeps_one_node_if_an_older_version_suffices(
    optional_inputs: Mapping[str, Array], attributes: Mapping[str, Any], target: int, expected: Sequence[str]
) -> None:
    model, feeds = _model(optional_inputs, 19, **attributes)
    assert op_types(convert_and_check(model, target, feeds)) == expected


def test_extends_constant_scales_to_all_axes() -> None:
    model, feeds = _model({"scales": np.array([2.0, 0.5], np.float32)}, 18, axes=[3, 2])
    result = convert_and_check(model, 17, feeds)
    assert op_types(result) == ["Resize"]
    initializers = {each.name: numpy_helper.to_array(each).tolist() for each in result.graph.initializer}
    assert initializers[result.graph.node[0].input[2]] == [1, 1, 0.5, 2]


@pytest.mark.parametrize(
    ("scales", "axes", "reason"),
    [
        ([2.0], [3, 2], "'scales' has 1 elements, expected 2"),
        ([2.0, 0.5, 1.0], [3, 2], "'scales' has 3 elements, expected 2"),
        ([1.0, 1.0, 2.0, 2.0], [], "'scales' has 4 elements, expected 0"),
    ],
)
def test_refuses_other_numbers_of_scales_than_axes(scales: list[float], axes: list[int], reason: str) -> None:
    model, _ = _model({"scales": np.array(scales, np.float32)}, 18)
    model.graph.node[0].attribute.append(helper.make_attribute("axes", axes, attr_type=AttributeProto.INTS))
    refused = refusal_of(model, 17)
    assert (refused.code, refused.reason) == ("node.invalid", reason)


@pytest.mark.parametrize("target", [17, 10, 9])
def test_resize_without_axes_keeps_the_image(target: int) -> None:
    model, feeds = _model({"scales": np.zeros(0, np.float32)}, 18)
    model.graph.node[0].attribute.append(helper.make_attribute("axes", [], attr_type=AttributeProto.INTS))
    assert_equal(run(convert_version(model, target), feeds), [IMAGE])


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.uint8])
def test_downgrades_nearest_resize_of_any_type(dtype: type) -> None:
    data: Array = (IMAGE * 10 + 50).astype(dtype)
    model, feeds = _model(BY_SCALE, 13, data=data)
    if dtype is np.uint8:
        convert_and_check(model, 9, feeds)
        return
    expected = data[:, :, np.ceil(np.arange(3) * 2 + 0.5 - 0.5).astype(int)]
    expected = np.repeat(expected, 2, axis=3)
    convert_and_check(model, 9, feeds, [expected])


@pytest.mark.parametrize("target", [10, 9])
def test_interpolates_float16_in_float(target: int) -> None:
    model, _ = _model(BY_SCALE, 13, mode="linear")
    half_model, feeds = _model(BY_SCALE, 13, mode="linear", data=IMAGE.astype(np.float16))
    (expected,) = run(model, {"x": feeds["x"].astype(np.float32)})
    assert_equal(run(convert_version(half_model, target), feeds), [expected.astype(np.float16)], 1e-3)


def test_computes_unknown_sizes_from_the_data() -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], name="node", mode="linear")
    model = build([node], {"x": IMAGE}, ["y"], 13, initializers={"s": BY_SCALE["scales"]})
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = "n"
    feeds = {"x": IMAGE}
    assert_equal(run(convert_version(model, 10), feeds), run(model, feeds), 1e-4)


FRACTIONAL_SIZE_REASON = (
    "onnxruntime rounds fractional sizes down before align_corners; other runtimes do not"
)
KEPT_SIZE_REASON = (
    "onnxruntime copies a dimension of unchanged size; by the definition, its pixels are shifted"
)
REFUSED_CASES: dict[str, tuple[Mapping[str, Array], int, Mapping[str, Any], str]] = {
    "aligned corners of a fractional size": (
        {"scales": np.array([1, 1, 0.6, 0.6], np.float32)},
        13,
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        FRACTIONAL_SIZE_REASON,
    ),
    "scales that keep every size": (
        {"scales": np.array([1, 1, 1.1, 1.1], np.float32)},
        13,
        {"mode": "linear"},
        KEPT_SIZE_REASON,
    ),
    "crop of the same size": (
        {"sizes": np.array([1, 2, 6, 4], np.int64), "roi": ROI},
        13,
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
        KEPT_SIZE_REASON,
    ),
    "nearest rule in linear mode": (
        TO_SIZE,
        11,
        {"mode": "linear", "coordinate_transformation_mode": "tf_half_pixel_for_nn"},
        "tf_half_pixel_for_nn is only defined for mode nearest",
    ),
}


ENLARGING_CASES = {
    "nearest, as exported by PyTorch": ("nearest", "asymmetric", "floor", 1.5),
    "nearest, half pixels": ("nearest", "half_pixel", "round_prefer_floor", 3.0),
    "nearest, PyTorch's half pixels": ("nearest", "pytorch_half_pixel", "round_prefer_ceil", 2.0),
    "linear, PyTorch's half pixels": ("linear", "pytorch_half_pixel", "floor", 2.0),
    "linear, aligned corners": ("linear", "align_corners", "floor", 2.0),
    "cubic, PyTorch's half pixels": ("cubic", "pytorch_half_pixel", "floor", 3.0),
}


@pytest.mark.parametrize("target", [10, 9, 8])
@pytest.mark.parametrize(
    ("mode", "coordinates", "rounding", "scale"), ENLARGING_CASES.values(), ids=ENLARGING_CASES
)
def test_downgrades_enlarging_of_unknown_sizes(
    mode: str, coordinates: str, rounding: str, scale: float, target: int
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
        result = convert_and_check(model, target, feeds)
        assert mode != "nearest" or op_types(result) == ["Resize" if target == 10 else "Upsample"]


@pytest.mark.parametrize(
    ("optional_inputs", "opset", "attributes", "reason"), REFUSED_CASES.values(), ids=REFUSED_CASES
)
def test_refuses_ambiguous_resizing(
    optional_inputs: Mapping[str, Array], opset: int, attributes: Mapping[str, Any], reason: str
) -> None:
    model, _ = _model(optional_inputs, opset, **attributes)
    assert refusal_of(model, 10).reason.startswith(reason)


def test_refuses_interpolation_of_integers() -> None:
    model, _ = _model(BY_SCALE, 13, data=IMAGE.astype(np.int32), mode="linear")
    refused = refusal_of(model, 10)
    assert refused.reason == "the node interpolates int32, but the rounding of the result is undefined"


def test_refuses_unknown_rank() -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], name="node")
    model = build([node], {"x": IMAGE}, ["y"], 13, initializers={"s": BY_SCALE["scales"]}, shapes=False)
    assert refusal_of(model, 10).reason == "the rank of 'x' is unknown"


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_downgrades_upsample_with_computed_scales(mode: str) -> None:
    node = helper.make_node("Upsample", ["x", "s"], ["y"], name="node", mode=mode)
    feeds = {"x": IMAGE, "s": np.array([1, 1, 2, 1.5], np.float32)}
    model = build([node], feeds, ["y"], 9)
    model.graph.output[0].type.tensor_type.shape.CopyFrom(
        helper.make_tensor_value_info("y", 1, [1, 2, 12, 12]).type.tensor_type.shape
    )
    convert_and_check(model, 8, feeds)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample_1_has_height_and_width_scales(mode: str) -> None:
    node = helper.make_node("Upsample", ["x"], ["y"], name="node", mode=mode, scales=[1.0, 1.0, 2.0, 1.5])
    (upsample,) = convert_version(build([node], {"x": IMAGE}, ["y"], 7), 6).graph.node
    attributes = {each.name: helper.get_attribute_value(each) for each in upsample.attribute}
    expected_mode = b"bilinear" if mode == "linear" else b"nearest"
    assert attributes == {"height_scale": 2.0, "width_scale": 1.5, "mode": expected_mode}


def test_refuses_channel_scales_at_upsample_1() -> None:
    node = helper.make_node("Upsample", ["x"], ["y"], name="node", scales=[1.0, 2.0, 2.0, 1.5])
    refused = refusal_of(build([node], {"x": IMAGE}, ["y"], 7), 6)
    assert refused.reason.startswith("scales are [1.0, 2.0, 2.0, 1.5]; Upsample-1 enlarges the last two")


@pytest.mark.parametrize("end", [1, 2, 1e3, 2e6 + 0.3, 1e8, 1e20, 3e38])
@pytest.mark.parametrize("target", [8, 7])
@pytest.mark.parametrize(
    ("mode", "nearest_mode"), [("nearest", "floor"), ("nearest", "round_prefer_floor"), ("linear", "floor")]
)
def test_crops_regions_that_end_far_outside(mode: str, nearest_mode: str, target: int, end: float) -> None:
    attributes = {"nearest_mode": nearest_mode, "coordinate_transformation_mode": "tf_crop_and_resize"}
    sizes = {"sizes": np.array([1, 1, 6, 8], np.int64)}
    region = np.array([0, 0, 0, 0, 1, 1, end, end], np.float32)
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    inputs = ["x", "roi", "", "sizes"]
    node = helper.make_node("Resize", inputs, ["y"], mode=mode, extrapolation_value=7.0, **attributes)
    feeds: dict[str, Array] = {"x": image, "roi": region}
    model = build([node], feeds, {"y": TensorProto.FLOAT}, 19, initializers=sizes)
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "H"
    expected = run(model, feeds)
    result = convert_version(model, target, allow=["approximate"])
    assert_equal(run(result, feeds), expected, 1e-5)
