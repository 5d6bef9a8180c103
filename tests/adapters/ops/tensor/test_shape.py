"""Downgrades of Shape with start or end below opset 15: the whole shape is sliced."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check
from support.execution import build, op_types

FEEDS = {"x": np.zeros((2, 3, 4, 5), np.float32)}


def _model(shapes: bool, **attributes: int) -> onnx.ModelProto:
    node = helper.make_node("Shape", ["x"], ["y"], name="node", **attributes)
    return build([node], FEEDS, {"y": TensorProto.INT64}, 21, shapes=shapes)


@pytest.mark.parametrize("target", [19, 13, 12, 11, 10, 9, 7])
@pytest.mark.parametrize("shapes", [True, False], ids=["rank known", "rank unknown"])
@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({"start": 1}, id="from the second"),
        pytest.param({"start": -2}, id="the last two"),
        pytest.param({"end": -1}, id="all but the last"),
        pytest.param({"start": 1, "end": 3}, id="in the middle"),
        pytest.param({"start": -9, "end": 2}, id="start out of range"),
        pytest.param({"start": 3, "end": 2}, id="empty"),
        pytest.param({"start": 2, "end": 9}, id="end out of range"),
    ],
)
def test_slices_the_shape(attributes: dict[str, int], shapes: bool, target: int) -> None:
    result = convert_and_check(_model(shapes, **attributes), target, FEEDS)
    assert op_types(result) == (["Shape", "Slice"] if target < 15 else ["Shape"])


@pytest.mark.parametrize(
    "attributes",
    [{}, {"start": 0}, {"start": 0, "end": 4}, {"start": -4}],
    ids=["no attributes", "0", "0:4", "-4:"],
)
def test_keeps_the_whole_shape_without_slice(attributes: dict[str, int]) -> None:
    assert op_types(convert_and_check(_model(True, **attributes), 13, FEEDS)) == ["Shape"]
