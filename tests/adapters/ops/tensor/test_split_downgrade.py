"""Downgrades of Split: sizes move to an attribute, and num_outputs is replaced by sizes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types

DATA = np.arange(4 * 7 * 5, dtype=np.float32).reshape(4, 7, 5)


def _split_model(
    opset: int, parts: int, *, sizes: str = "", shapes: bool = True, axis: int = 1, **attributes: int
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    inputs = ["x", "s"] if sizes else ["x"]
    outputs = [f"y{part}" for part in range(parts)]
    sizes_input = {"s": np.array([1, 4, 2])}
    feeds = {"x": DATA} | (sizes_input if sizes == "computed" else {})
    node = helper.make_node("Split", inputs, outputs, name="node", axis=axis, **attributes)
    initializers = sizes_input if sizes == "constant" else None
    return build([node], feeds, outputs, opset, initializers=initializers, shapes=shapes), feeds


@pytest.mark.parametrize("target", [17, 13, 12, 11, 10, 9, 7])
@pytest.mark.parametrize(("axis", "parts"), [(1, 7), (0, 2), (1, 2), (-2, 3), (2, 1), (-1, 2)])
def test_replaces_num_outputs(axis: int, parts: int, target: int) -> None:
    model, feeds = _split_model(18, parts, axis=axis, num_outputs=parts)
    result = convert_and_check(model, target, feeds)
    assert op_types(result) == ["Split"]


@pytest.mark.parametrize("target", [17, 13, 12, 10])
@pytest.mark.parametrize(("axis", "parts"), [(1, 2), (0, 2), (-1, 3)])
def test_replaces_num_outputs_of_unknown_sizes(axis: int, parts: int, target: int) -> None:
    model, feeds = _split_model(18, parts, axis=axis, num_outputs=parts, shapes=False)
    if target > 10 or axis >= 0:
        convert_and_check(model, target, feeds)


@pytest.mark.parametrize("target", [17, 13, 12, 11, 10, 9, 8, 7])
@pytest.mark.parametrize("axis", [1, -2])
def test_moves_constant_sizes_to_an_attribute(axis: int, target: int) -> None:
    model, feeds = _split_model(18, 3, sizes="constant", axis=axis)
    assert op_types(convert_and_check(model, target, feeds)) == ["Split"]


@pytest.mark.parametrize("target", [17, 13, 12, 11, 10, 9, 8, 7])
@pytest.mark.parametrize("axis", [1, -2])
def test_rewrites_computed_sizes(axis: int, target: int) -> None:
    model, feeds = _split_model(18, 3, sizes="computed", axis=axis)
    model.graph.node[0].name = ""
    result = convert_and_check(model, target, feeds)
    assert ("Split" in op_types(result)) == (target > 12)


def test_refuses_more_outputs_than_parts() -> None:
    refused = refusal_of(_split_model(18, 5, num_outputs=5)[0], 13)
    assert refused.reason == "7 elements cannot be split into 5 parts of 2"
