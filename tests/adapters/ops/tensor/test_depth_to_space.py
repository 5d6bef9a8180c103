"""Rewrites of mode CRD of DepthToSpace and SpaceToDepth for opsets that support only DCR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types

DEEP = np.arange(2 * 8 * 2 * 3, dtype=np.float32).reshape(2, 8, 2, 3)
WIDE = np.arange(2 * 3 * 4 * 6, dtype=np.float32).reshape(2, 3, 4, 6)


def _depth_to_space(data: Array) -> Array:
    batch, channels, height, width = data.shape
    blocks = data.reshape(batch, channels // 4, 2, 2, height, width).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(batch, channels // 4, height * 2, width * 2)


def _space_to_depth(data: Array) -> Array:
    batch, channels, height, width = data.shape
    blocks = data.reshape(batch, channels, height // 2, 2, width // 2, 2).transpose(0, 1, 3, 5, 2, 4)
    return blocks.reshape(batch, channels * 4, height // 2, width // 2)


def _model(op_type: str, data: Array, opset: int, shapes: bool, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(op_type, ["x"], ["y"], name="node", blocksize=2, **attributes)
    return build([node], {"x": data}, ["y"], opset, shapes=shapes)


CASES = [
    pytest.param("DepthToSpace", DEEP, 13, _depth_to_space, 7, id="DepthToSpace"),
    pytest.param("SpaceToDepth", WIDE, 28, _space_to_depth, 26, id="SpaceToDepth"),
    pytest.param("SpaceToDepth", WIDE, 28, _space_to_depth, 7, id="SpaceToDepth to opset 7"),
]


@pytest.mark.parametrize(("op_type", "data", "opset", "expected", "target"), CASES)
@pytest.mark.parametrize("shapes", [True, False], ids=["known sizes", "unknown sizes"])
def test_rewrites_crd_mode(
    op_type: str, data: Array, opset: int, expected: Callable[[Array], Array], target: int, shapes: bool
) -> None:
    model = _model(op_type, data, opset, shapes, mode="CRD")
    result = convert_and_check(model, target, {"x": data}, [expected(data)])
    assert (op_type in op_types(result)) != shapes


@pytest.mark.parametrize(
    ("op_type", "data", "opset"), [("DepthToSpace", DEEP, 13), ("SpaceToDepth", WIDE, 28)]
)
@pytest.mark.parametrize("attributes", [{}, {"mode": "DCR"}], ids=["default", "explicit"])
def test_drops_dcr_mode(op_type: str, data: Array, opset: int, attributes: dict[str, str]) -> None:
    model = _model(op_type, data, opset, True, **attributes)
    result = convert_and_check(model, 7, {"x": data})
    assert [each.name for each in result.graph.node[0].attribute] == ["blocksize"]
    assert op_types(result) == [op_type]


def test_preserves_empty_images() -> None:
    """Reshape would copy a dimension of 0 from its input."""
    data = np.zeros((2, 8, 0, 3), np.float32)
    expected: Sequence[Array] = [np.zeros((2, 2, 0, 6), np.float32)]
    convert_and_check(_model("DepthToSpace", data, 13, True, mode="CRD"), 10, {"x": data}, expected)
