"""Downgrades of RoiAlign and DFT: shifted boxes, and the axis as an attribute."""

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


def test_refuses_computed_boxes() -> None:
    model, _ = _roi_align_model(BOXES, constant=False)
    assert refusal_of(model, 15).reason.endswith("('rois') is not a constant")


def test_refuses_boxes_smaller_than_a_pixel() -> None:
    model, _ = _roi_align_model(BOXES, spatial_scale=0.5)
    assert (
        refusal_of(model, 15).reason
        == "a box is smaller than a pixel, and RoiAlign-10 enlarges such boxes to a pixel"
    )


SIGNAL = np.random.default_rng(1).random((2, 5, 6, 1)).astype(np.float32)


def _dft_model(inputs: list[str], initializers: Mapping[str, Array], **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("DFT", inputs, ["y"], name="node", **attributes)
    return build([node], {"x": SIGNAL}, ["y"], 20, initializers=initializers)


@pytest.mark.parametrize(
    ("inputs", "initializers"),
    [
        pytest.param(["x"], {}, id="default axis"),
        pytest.param(["x", "", "axis"], {"axis": np.array(1, np.int64)}, id="explicit axis"),
        pytest.param(["x", "", "axis"], {"axis": np.array(-2, np.int64)}, id="negative axis"),
        pytest.param(["x", "n"], {"n": np.array(4, np.int64)}, id="explicit length"),
    ],
)
@pytest.mark.parametrize(
    "attributes", [{}, {"onesided": 1}, {"inverse": 1}], ids=["forward", "onesided", "inverse"]
)
def test_moves_the_dft_axis_to_an_attribute(
    inputs: list[str], initializers: Mapping[str, Array], attributes: Mapping[str, int]
) -> None:
    result = convert_and_check(_dft_model(inputs, initializers, **attributes), 19, {"x": SIGNAL})
    assert "axis" in {each.name for each in result.graph.node[0].attribute}
