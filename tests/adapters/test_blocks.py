"""DepthToSpace and SpaceToDepth: the order CRD where only DCR is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build, op_types

Converted = Callable[..., onnx.ModelProto]
DEEP = np.arange(2 * 8 * 2 * 3, dtype=np.float32).reshape(2, 8, 2, 3)
WIDE = np.arange(2 * 3 * 4 * 6, dtype=np.float32).reshape(2, 3, 4, 6)


def _to_space(data: Array) -> Array:
    batch, channels, height, width = data.shape
    parts = data.reshape(batch, channels // 4, 2, 2, height, width).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(batch, channels // 4, height * 2, width * 2)


def _to_depth(data: Array) -> Array:
    batch, channels, height, width = data.shape
    parts = data.reshape(batch, channels, height // 2, 2, width // 2, 2).transpose(0, 1, 3, 5, 2, 4)
    return parts.reshape(batch, channels * 4, height // 2, width // 2)


def _model(op_type: str, data: Array, opset: int, shapes: bool, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(op_type, ["x"], ["y"], name="node", blocksize=2, **attributes)
    return build([node], {"x": data}, ["y"], opset, shapes=shapes)


CASES = [
    pytest.param("DepthToSpace", DEEP, 13, _to_space, 7, id="to space"),
    pytest.param("SpaceToDepth", WIDE, 28, _to_depth, 26, id="to depth"),
    pytest.param("SpaceToDepth", WIDE, 28, _to_depth, 7, id="to depth, far down"),
]


@pytest.mark.parametrize(("op_type", "data", "opset", "expected", "target"), CASES)
@pytest.mark.parametrize("shapes", [True, False], ids=["sizes known", "sizes not known"])
def test_channels_first(
    op_type: str,
    data: Array,
    opset: int,
    expected: Callable[[Array], Array],
    target: int,
    shapes: bool,
    converted: Converted,
) -> None:
    model = _model(op_type, data, opset, shapes, mode="CRD")
    result = converted(model, target, {"x": data}, [expected(data)])
    assert (op_type in op_types(result)) != shapes


@pytest.mark.parametrize(
    ("op_type", "data", "opset"), [("DepthToSpace", DEEP, 13), ("SpaceToDepth", WIDE, 28)]
)
@pytest.mark.parametrize("stated", [{}, {"mode": "DCR"}], ids=["left out", "stated"])
def test_positions_first(
    op_type: str, data: Array, opset: int, stated: dict[str, str], converted: Converted
) -> None:
    model = _model(op_type, data, opset, True, **stated)
    result = converted(model, 7, {"x": data})
    assert [each.name for each in result.graph.node[0].attribute] == ["blocksize"]
    assert op_types(result) == [op_type]


def test_empty_images(converted: Converted) -> None:
    """A size of 0 in a Reshape would be copied from elsewhere."""
    data = np.zeros((2, 8, 0, 3), np.float32)
    empty: Sequence[Array] = [np.zeros((2, 2, 0, 6), np.float32)]
    converted(_model("DepthToSpace", data, 13, True, mode="CRD"), 10, {"x": data}, empty)
