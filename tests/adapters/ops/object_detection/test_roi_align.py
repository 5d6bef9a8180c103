"""Downgrade of RoiAlign: shifted boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.running import Array, build

IMAGE = np.random.default_rng(0).random((1, 2, 9, 8)).astype(np.float32)
BOXES = np.array([[0, 0, 7, 6], [2, 1, 6, 8], [3, 3, 4.5, 4.5]], np.float32)
BATCH_INDICES = {"b": np.zeros(3, np.int64)}


def _roi_align_model(
    boxes: Array, constant: bool = True, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {"x": IMAGE} if constant else {"x": IMAGE, "rois": boxes}
    initializers = {**BATCH_INDICES, "rois": boxes} if constant else BATCH_INDICES
    node = helper.make_node(
        "RoiAlign", ["x", "rois", "b"], ["y"], name="node", output_height=3, output_width=2, **attributes
    )
    return build([node], feeds, ["y"], 16, initializers=initializers), feeds


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({}, id="half-pixel shift"),
        pytest.param({"sampling_ratio": 2}, id="sampling ratio"),
        pytest.param({"spatial_scale": 0.75}, id="spatial scale"),
        pytest.param({"coordinate_transformation_mode": "output_half_pixel"}, id="no shift"),
        pytest.param({"mode": "max"}, id="max mode"),
    ],
)
@pytest.mark.parametrize("target", [15, 10])
def test_shifts_constant_boxes(attributes: Mapping[str, Any], target: int) -> None:
    model, feeds = _roi_align_model(BOXES, **attributes)
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [0.75, 0.3, 1.0, 1.7])
@pytest.mark.parametrize("target", [15, 10])
def test_keeps_the_number_of_samples(dtype: type, scale: float, target: int) -> None:
    """Boxes whose pooled sizes are close to integers, where rounding changes the adaptive sampling."""
    corners = [[0, 0, size / scale, size / scale] for size in (2, 3, 4, 6)]
    boxes: Array = np.array(corners, dtype)
    image: Array = IMAGE.astype(dtype)
    node = helper.make_node(
        "RoiAlign", ["x", "rois", "b"], ["y"], output_height=2, output_width=3, spatial_scale=scale
    )
    constants = {"rois": boxes, "b": np.zeros(4, np.int64)}
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = build([node], {"x": image}, {"y": element_type}, 16, initializers=constants)
    convert_and_check(model, target, {"x": image}, tolerance=1e-3 if dtype is np.float16 else 1e-6)


def test_refuses_computed_boxes() -> None:
    model, _ = _roi_align_model(BOXES, constant=False)
    assert refusal_of(model, 15).reason.endswith("('rois') is not a constant")


def test_refuses_boxes_smaller_than_a_pixel() -> None:
    model, _ = _roi_align_model(BOXES, spatial_scale=0.5)
    assert (
        refusal_of(model, 15).reason
        == "a box is smaller than a pixel, and RoiAlign-10 enlarges such boxes to a pixel"
    )
