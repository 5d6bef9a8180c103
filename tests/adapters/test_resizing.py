"""Upsample and Resize: which pixel of the input an output pixel shows, through all their versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build, op_types

Converted = Callable[..., onnx.ModelProto]
IMAGE = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
MODES = ("nearest", "linear")


def _along(data: Array, axis: int, scale: float, linear: bool) -> Array:
    """One dimension resized as Upsample does: an output pixel lies at its place divided by the scale."""
    size = data.shape[axis]
    places = np.minimum(np.arange(int(size * np.float32(scale))) / np.float32(scale), size - 1)
    low = places.astype(int)
    if not linear:
        return np.asarray(np.take(data, low, axis))
    share = (places - low).reshape([-1 if each == axis else 1 for each in range(data.ndim)])
    after = np.take(data, np.minimum(low + 1, size - 1), axis)
    return np.asarray(np.take(data, low, axis) * (1 - share) + after * share, data.dtype)


def _upsampled(scales: Sequence[float], mode: str) -> Array:
    data = IMAGE
    for axis, scale in enumerate(scales):
        data = _along(data, axis, scale, mode == "linear")
    return data


ENLARGED = {"twice": (2.0, 2.0), "by 1.3": (1.3, 1.3), "each its own": (1.0, 2.5), "not at all": (1.0, 1.0)}


@pytest.mark.parametrize("target", [7, 8, 9, 10, 11, 13, 19])
@pytest.mark.parametrize("factors", ENLARGED.values(), ids=ENLARGED)
@pytest.mark.parametrize(
    ("stated", "mode"),
    [({}, "nearest"), ({"mode": "nearest"}, "nearest"), ({"mode": "bilinear"}, "linear")],
    ids=["default", "nearest", "bilinear"],
)
def test_version_1_has_a_factor_for_height_and_one_for_width(
    stated: Mapping[str, str], mode: str, factors: tuple[float, float], target: int, converted: Converted
) -> None:
    height, width = factors
    node = helper.make_node(
        "Upsample", ["x"], ["y"], name="node", height_scale=height, width_scale=width, **stated
    )
    model = build([node], {"x": IMAGE}, ["y"], 1)
    result = converted(model, target, {"x": IMAGE}, [_upsampled((1, 1, height, width), mode)])
    assert op_types(result) == ["Upsample" if target < 10 else "Resize"]


@pytest.mark.parametrize("target", [9, 10, 11, 13, 18, 19])
@pytest.mark.parametrize("factors", ENLARGED.values(), ids=ENLARGED)
@pytest.mark.parametrize("mode", MODES)
def test_version_7_lists_factors(
    mode: str, factors: tuple[float, float], target: int, converted: Converted
) -> None:
    scales = [1.0, 1.0, *factors]
    node = helper.make_node("Upsample", ["x"], ["y"], name="node", mode=mode, scales=scales)
    result = converted(build([node], {"x": IMAGE}, ["y"], 7), target, {"x": IMAGE})
    assert op_types(result) == ["Upsample" if target < 10 else "Resize"]


SCALES: dict[str, tuple[float, ...]] = {
    "twice": (1, 1, 2, 2),
    "by 1.3": (1, 1, 1.3, 1.3),
    "by 0.6": (1, 1, 0.6, 0.6),
    "by a half": (1, 1, 0.5, 0.5),
    "one up, one down": (1, 1, 1.3, 0.6),
    "one down, one up": (1, 1, 0.6, 2),
    "not at all": (1, 1, 1, 1),
    "of a large factor": (1, 1, 3.7, 10.01),
}


def _scaled(
    op: str, opset: int, mode: str, scales: Sequence[float], *, constant: bool
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    given = {"scales": np.array(scales, np.float32)}
    node = helper.make_node(op, ["x", "scales"], ["y"], name="node", mode=mode)
    feeds = {"x": IMAGE} if constant else {"x": IMAGE, **given}
    return build([node], feeds, ["y"], opset, initializers=given if constant else None), feeds


@pytest.mark.parametrize("constant", [True, False], ids=["constant scales", "computed scales"])
@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("mode", MODES)
def test_coordinates_of_version_10_are_stated(
    mode: str, scales: Sequence[float], constant: bool, converted: Converted
) -> None:
    model, feeds = _scaled("Resize", 10, mode, scales, constant=constant)
    for target in (11, 13, 18, 19):
        result = converted(model, target, feeds)
        is_mixed = min(scales) < 1 < max(scales) if constant else True
        resizes = op_types(result).count("Resize")
        assert resizes == (2 if mode == "nearest" and is_mixed else 1)


@pytest.mark.parametrize("constant", [True, False], ids=["constant scales", "computed scales"])
@pytest.mark.parametrize("factors", ENLARGED.values(), ids=ENLARGED)
@pytest.mark.parametrize("mode", MODES)
def test_version_9_takes_factors_as_an_input(
    mode: str, factors: tuple[float, float], constant: bool, converted: Converted
) -> None:
    model, feeds = _scaled("Upsample", 9, mode, (1, 1, *factors), constant=constant)
    for target in (10, 11, 13, 19):
        converted(model, target, feeds)


@pytest.mark.parametrize("constant", [True, False], ids=["constant scales", "computed scales"])
def test_channels_are_repeated_while_images_change(constant: bool, converted: Converted) -> None:
    model, feeds = _scaled("Resize", 10, "nearest", (1, 2, 0.6, 1.3), constant=constant)
    converted(model, 13, feeds)


@pytest.mark.parametrize("mode", MODES)
def test_scales_from_a_constant_node_are_constant(mode: str, converted: Converted) -> None:
    tensor = helper.make_tensor("scales", 1, [4], [1.0, 1.0, 0.6, 1.3])
    scales = helper.make_node("Constant", [], ["scales"], value=tensor)
    resize = helper.make_node("Resize", ["x", "scales"], ["y"], name="node", mode=mode)
    result = converted(build([scales, resize], {"x": IMAGE}, ["y"], 10), 11, {"x": IMAGE})
    assert "Min" not in op_types(result)


@pytest.mark.parametrize("kind", [np.uint8, np.int32], ids=["uint8", "int32"])
def test_other_types_are_resized_alike(kind: Any, converted: Converted) -> None:
    data = np.arange(20, dtype=kind).reshape(1, 1, 4, 5)
    feeds = {"x": data, "scales": np.array([1, 1, 0.6, 1.3], np.float32)}
    node = helper.make_node("Resize", ["x", "scales"], ["y"], name="node")
    outputs = {"y": helper.np_dtype_to_tensor_dtype(data.dtype)}
    converted(build([node], feeds, outputs, 10), 13, feeds)


SIZED = ["x", "roi", "scales", "sizes"]


def _sized(mode: str, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("Resize", SIZED, ["y"], name="node", mode=mode, **attributes)
    given: dict[str, Array] = {
        "roi": np.zeros(0, np.float32),
        "scales": np.zeros(0, np.float32),
        "sizes": np.array([1, 2, 8, 5], np.int64),
    }
    return build([node], {"x": IMAGE}, ["y"], 11, initializers=given)


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
def test_sizes_stand_without_scales(
    mode: str, attributes: Mapping[str, str], target: int, converted: Converted
) -> None:
    result = converted(_sized(mode, **attributes), target, {"x": IMAGE})
    assert list(result.graph.node[0].input) == ["x", "roi", "", "sizes"]


@pytest.mark.parametrize("sizes", [[], [""]], ids=["not listed", "listed without a name"])
@pytest.mark.parametrize("mode", [*MODES, "cubic"])
def test_scales_without_sizes_stay(mode: str, sizes: list[str], converted: Converted) -> None:
    inputs = ["x", "roi", "scales", *sizes]
    node = helper.make_node("Resize", inputs, ["y"], name="node", mode=mode)
    given = {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 1.3, 0.6], np.float32)}
    model = build([node], {"x": IMAGE}, ["y"], 11, initializers=given)
    assert list(converted(model, 13, {"x": IMAGE}).graph.node[0].input) == inputs
