"""Expansion of CenterCropPad below opset 18."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, build, op_types

DATA = np.random.default_rng(18).standard_normal((5, 4, 3)).astype(np.float32)
CASES = [
    pytest.param((3, 4, 3), {}, ["Slice"], id="even crop"),
    pytest.param((2, 1, 3), {}, ["Slice"], id="odd crop"),
    pytest.param((5, 8, 3), {}, ["Pad"], id="even padding"),
    pytest.param((6, 7, 4), {}, ["Pad"], id="odd padding"),
    pytest.param((2, 9, 3), {}, ["Slice", "Pad"], id="crop and padding"),
    pytest.param((5, 4, 3), {}, ["Identity"], id="unchanged sizes"),
    pytest.param((6, 1), {"axes": [2, 0]}, ["Slice", "Pad"], id="selected axes"),
    pytest.param((6,), {"axes": [-2]}, ["Pad"], id="negative axis"),
]


def _model(
    shape: tuple[int, ...], attributes: dict[str, Any], *, constant: bool
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    node = helper.make_node("CenterCropPad", ["x", "shape"], ["y"], name="node", **attributes)
    feeds, sizes = {"x": DATA}, {"shape": np.array(shape, np.int64)}
    if constant:
        return build([node], feeds, ["y"], 18, initializers=sizes), feeds
    return build([node], feeds | sizes, ["y"], 18), feeds | sizes


@pytest.mark.parametrize(("shape", "attributes", "expected_nodes"), CASES)
def test_emits_expected_nodes_for_known_sizes(
    shape: tuple[int, ...], attributes: dict[str, Any], expected_nodes: list[str]
) -> None:
    model, feeds = _model(shape, attributes, constant=True)
    assert op_types(convert_and_check(model, 17, feeds)) == expected_nodes
    convert_and_check(model, 7, feeds)


@pytest.mark.parametrize("constant", [True, False], ids=["constant shape", "computed shape"])
@pytest.mark.parametrize(("shape", "attributes", "expected_nodes"), CASES)
def test_needs_no_sizes(
    shape: tuple[int, ...], attributes: dict[str, Any], expected_nodes: list[str], constant: bool
) -> None:
    model, feeds = _model(shape, attributes, constant=constant)
    for target in (11, 17):
        convert_and_check(with_symbolic_dims(model), target, feeds)


def _with_empty_axes(shape: tuple[int, ...], *, constant: bool) -> tuple[onnx.ModelProto, dict[str, Array]]:
    model, feeds = _model(shape, {}, constant=constant)
    axes = helper.make_attribute("axes", [], attr_type=onnx.AttributeProto.INTS)
    model.graph.node[0].attribute.append(axes)
    return model, feeds


@pytest.mark.parametrize("constant", [True, False], ids=["constant shape", "computed shape"])
def test_keeps_all_sizes_without_axes(constant: bool) -> None:
    model, feeds = _with_empty_axes((), constant=constant)
    for each in (model, with_symbolic_dims(model)):
        assert op_types(convert_and_check(each, 17, feeds)) == ["Identity"]


@pytest.mark.parametrize(
    ("shape", "attributes", "reason"),
    [
        ((3, 3), {"axes": [0]}, "input shape has 2 sizes for 1 axes"),
        ((3,), {"axes": [0, 1]}, "input shape has 1 sizes for 2 axes"),
        ((3,), {}, "input shape has 1 sizes for 3 axes"),
    ],
)
def test_refuses_other_numbers_of_sizes(
    shape: tuple[int, ...], attributes: dict[str, Any], reason: str
) -> None:
    model, _ = _model(shape, attributes, constant=True)
    refused = refusal_of(model, 17)
    assert (refused.code, refused.reason) == ("node.invalid", reason)


def test_refuses_sizes_without_axes() -> None:
    model, _ = _with_empty_axes((4, 4, 4), constant=True)
    assert refusal_of(model, 17).reason == "input shape has 3 sizes for 0 axes"
