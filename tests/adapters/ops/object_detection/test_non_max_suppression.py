"""Expansion of NonMaxSuppression into loops below opset 10."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types, run

from opshift import convert_version

INPUTS = ("boxes", "scores", "max_boxes", "iou_threshold", "score_threshold")
RANDOM = np.random.default_rng(10)
CORNERS = RANDOM.random((2, 12, 4)).astype(np.float32)
CENTERS = 0.5 + RANDOM.random((2, 12, 4)).astype(np.float32)
SCORES = RANDOM.random((2, 3, 12)).astype(np.float32)
TIED = np.round(SCORES, 1)


def _model(
    boxes: Array, scores: Array, limits: dict[str, float], opset: int = 10, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {"boxes": boxes, "scores": scores}
    feeds |= {n: np.array([v], np.int64 if n == "max_boxes" else np.float32) for n, v in limits.items()}
    inputs = [name if name in feeds else "" for name in INPUTS]
    node = helper.make_node("NonMaxSuppression", inputs, ["y"], name="node", **attributes)
    return build([node], feeds, {"y": TensorProto.INT64}, opset), feeds


@pytest.mark.parametrize("target", [9, 8, 7])
@pytest.mark.parametrize(
    ("boxes", "scores", "limits", "attributes"),
    [
        pytest.param(CORNERS, SCORES, {"max_boxes": 4, "iou_threshold": 0.3}, {}, id="best boxes per class"),
        pytest.param(
            CORNERS,
            SCORES,
            {"max_boxes": 99, "iou_threshold": 0.1, "score_threshold": 0.4},
            {},
            id="score threshold",
        ),
        pytest.param(CORNERS, TIED, {"max_boxes": 5, "iou_threshold": 0.2}, {}, id="equal scores"),
        pytest.param(
            CORNERS, SCORES, {"max_boxes": 2**62, "iou_threshold": 1.0}, {}, id="no effective limits"
        ),
        pytest.param(CORNERS, SCORES, {"max_boxes": 3}, {}, id="default IoU threshold"),
        pytest.param(CORNERS, SCORES, {"iou_threshold": 0.5}, {}, id="default box count"),
        pytest.param(
            CORNERS,
            SCORES,
            {"max_boxes": 3, "iou_threshold": 0.5, "score_threshold": 2.0},
            {},
            id="score threshold above every score",
        ),
        pytest.param(
            CENTERS,
            SCORES,
            {"max_boxes": 4, "iou_threshold": 0.2},
            {"center_point_box": 1},
            id="center format",
        ),
        pytest.param(
            CORNERS[:1].repeat(2, axis=1),
            SCORES.reshape(1, 3, 24),
            {"max_boxes": 9, "iou_threshold": 0.5},
            {},
            id="equal boxes",
        ),
        pytest.param(
            np.zeros((1, 4, 4), np.float32),
            SCORES[:1, :, :4],
            {"max_boxes": 2, "iou_threshold": 0.5},
            {},
            id="boxes without area",
        ),
    ],
)
def test_selects_the_same_boxes(
    boxes: Array, scores: Array, limits: dict[str, float], attributes: dict[str, int], target: int
) -> None:
    model, feeds = _model(boxes, scores, limits, **attributes)
    assert op_types(convert_and_check(model, target, feeds)).count("Loop") == 1


@pytest.mark.parametrize("target", [9, 8])
def test_needs_no_sizes(target: int) -> None:
    model, feeds = _model(CORNERS, SCORES, {"max_boxes": 4, "iou_threshold": 0.3}, 11)
    for value, names in zip(model.graph.input[:2], ("bn4", "bcn"), strict=True):
        for dim, name in zip(value.type.tensor_type.shape.dim, names, strict=True):
            dim.dim_param = name
    (actual,), (expected,) = run(convert_version(model, target), feeds), run(model, feeds)
    assert np.array_equal(actual, expected)
