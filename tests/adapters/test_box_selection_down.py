"""Expansion of NonMaxSuppression into loops below opset 10."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, build, op_types, run

from opshift import convert_version

Converted = Callable[..., onnx.ModelProto]
INPUTS = ("boxes", "scores", "most", "iou", "least")
RANDOM = np.random.default_rng(10)
CORNERS = RANDOM.random((2, 12, 4)).astype(np.float32)
CENTERS = 0.5 + RANDOM.random((2, 12, 4)).astype(np.float32)
SCORES = RANDOM.random((2, 3, 12)).astype(np.float32)
TIED = np.round(SCORES, 1)


def _model(
    boxes: Array, scores: Array, limits: dict[str, float], opset: int = 10, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {"boxes": boxes, "scores": scores}
    feeds |= {n: np.array([v], np.int64 if n == "most" else np.float32) for n, v in limits.items()}
    inputs = [name if name in feeds else "" for name in INPUTS]
    node = helper.make_node("NonMaxSuppression", inputs, ["y"], name="node", **attributes)
    return build([node], feeds, {"y": TensorProto.INT64}, opset), feeds


@pytest.mark.parametrize("target", [9, 8, 7])
@pytest.mark.parametrize(
    ("boxes", "scores", "limits", "attributes"),
    [
        pytest.param(CORNERS, SCORES, {"most": 4, "iou": 0.3}, {}, id="best boxes per class"),
        pytest.param(CORNERS, SCORES, {"most": 99, "iou": 0.1, "least": 0.4}, {}, id="score threshold"),
        pytest.param(CORNERS, TIED, {"most": 5, "iou": 0.2}, {}, id="equal scores"),
        pytest.param(CORNERS, SCORES, {"most": 2**62, "iou": 1.0}, {}, id="no effective limits"),
        pytest.param(CORNERS, SCORES, {"most": 3}, {}, id="default IoU threshold"),
        pytest.param(CORNERS, SCORES, {"iou": 0.5}, {}, id="default box count"),
        pytest.param(
            CORNERS, SCORES, {"most": 3, "iou": 0.5, "least": 2.0}, {}, id="score threshold above every score"
        ),
        pytest.param(CENTERS, SCORES, {"most": 4, "iou": 0.2}, {"center_point_box": 1}, id="center format"),
        pytest.param(
            CORNERS[:1].repeat(2, axis=1),
            SCORES.reshape(1, 3, 24),
            {"most": 9, "iou": 0.5},
            {},
            id="equal boxes",
        ),
        pytest.param(
            np.zeros((1, 4, 4), np.float32),
            SCORES[:1, :, :4],
            {"most": 2, "iou": 0.5},
            {},
            id="boxes without area",
        ),
    ],
)
def test_selects_the_same_boxes(
    boxes: Array,
    scores: Array,
    limits: dict[str, float],
    attributes: dict[str, int],
    target: int,
    converted: Converted,
) -> None:
    model, feeds = _model(boxes, scores, limits, **attributes)
    assert op_types(converted(model, target, feeds)).count("Loop") == 1


@pytest.mark.parametrize("target", [9, 8])
def test_needs_no_sizes(target: int) -> None:
    model, feeds = _model(CORNERS, SCORES, {"most": 4, "iou": 0.3}, 11)
    for value, names in zip(model.graph.input[:2], ("bn4", "bcn"), strict=True):
        for dim, name in zip(value.type.tensor_type.shape.dim, names, strict=True):
            dim.dim_param = name
    (found,), (expected,) = run(convert_version(model, target), feeds), run(model, feeds)
    assert np.array_equal(found, expected)
