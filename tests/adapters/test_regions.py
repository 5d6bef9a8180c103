"""RoiAlign and DFT on their way down: shifted boxes, and an axis that is an attribute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
IMAGE = np.random.default_rng(0).random((1, 2, 9, 8)).astype(np.float32)
BOXES = np.array([[0, 0, 7, 6], [2, 1, 6, 8], [3, 3, 4.5, 4.5]], np.float32)
FIXED = {"b": np.zeros(3, np.int64)}


def _align(
    boxes: Array, constant: bool = True, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {"x": IMAGE} if constant else {"x": IMAGE, "rois": boxes}
    fixed = {**FIXED, "rois": boxes} if constant else FIXED
    node = helper.make_node(
        "RoiAlign", ["x", "rois", "b"], ["y"], name="node", output_height=3, output_width=2, **attributes
    )
    return build([node], feeds, ["y"], 16, initializers=fixed), feeds


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({}, id="half a pixel"),
        pytest.param({"sampling_ratio": 2}, id="with a sampling ratio"),
        pytest.param({"spatial_scale": 0.75}, id="at another scale"),
        pytest.param({"coordinate_transformation_mode": "output_half_pixel"}, id="no shift"),
        pytest.param({"mode": "max"}, id="the greatest of a bin"),
    ],
)
@pytest.mark.parametrize("target", [15, 10])
def test_boxes_are_shifted(attributes: Mapping[str, Any], target: int, converted: Converted) -> None:
    model, feeds = _align(BOXES, **attributes)
    converted(model, target, feeds)


def test_computed_boxes_are_refused(refusal: Refusing) -> None:
    model, _ = _align(BOXES, constant=False)
    assert refusal(model, 15).reason.endswith("('rois') is not a constant")


def test_boxes_of_less_than_a_pixel_are_refused(refusal: Refusing) -> None:
    model, _ = _align(BOXES, spatial_scale=0.5)
    assert (
        refusal(model, 15).reason
        == "a box is smaller than a pixel, and RoiAlign-10 enlarges such boxes to a pixel"
    )


SIGNAL = np.random.default_rng(1).random((2, 5, 6, 1)).astype(np.float32)


def _transform(inputs: list[str], fixed: Mapping[str, Array], **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("DFT", inputs, ["y"], name="node", **attributes)
    return build([node], {"x": SIGNAL}, ["y"], 20, initializers=fixed)


@pytest.mark.parametrize(
    ("inputs", "fixed"),
    [
        pytest.param(["x"], {}, id="the last axis by default"),
        pytest.param(["x", "", "axis"], {"axis": np.array(1, np.int64)}, id="a stated axis"),
        pytest.param(["x", "", "axis"], {"axis": np.array(-2, np.int64)}, id="from the back"),
        pytest.param(["x", "n"], {"n": np.array(4, np.int64)}, id="with a length"),
    ],
)
@pytest.mark.parametrize(
    "attributes", [{}, {"onesided": 1}, {"inverse": 1}], ids=["forward", "half", "inverse"]
)
def test_axis_becomes_an_attribute(
    inputs: list[str], fixed: Mapping[str, Array], attributes: Mapping[str, int], converted: Converted
) -> None:
    result = converted(_transform(inputs, fixed, **attributes), 19, {"x": SIGNAL})
    assert "axis" in {each.name for each in result.graph.node[0].attribute}
