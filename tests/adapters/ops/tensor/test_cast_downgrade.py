"""Downgrade of Cast and CastLike: attributes of 8-bit floats, and types by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import build, op_types
from support.old_operators import assert_round_trip

from opshift import convert_version

FEEDS = {"x": np.array([1.5, -2, 300], np.float32)}


def _cast(to: int, opset: int, **attributes: Any) -> onnx.ModelProto:
    return build(
        [helper.make_node("Cast", ["x"], ["y"], name="node", to=to, **attributes)], FEEDS, {"y": to}, opset
    )


TRUNCATED = FEEDS["x"].astype(np.int32)


@pytest.mark.parametrize("target", [18, 13, 9, 7])
def test_drops_attributes_of_8_bit_floats(target: int) -> None:
    model = _cast(TensorProto.INT32, 24, saturate=0, round_mode="nearest")
    attribute_names = {
        each.name for each in convert_and_check(model, target, FEEDS, [TRUNCATED]).graph.node[0].attribute
    }
    assert attribute_names == {"to"}


def test_keeps_saturate_of_8_bit_floats() -> None:
    result = convert_version(_cast(TensorProto.FLOAT8E5M2, 24, saturate=0, round_mode="up"), 23)
    assert {each.name for each in result.graph.node[0].attribute} == {"to", "saturate"}


@pytest.mark.parametrize("to", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2])
def test_refuses_8_bit_floats_below_opset_19(to: int) -> None:
    assert "which ai.onnx.Cast:13 does not support" in refusal_of(_cast(to, 19, saturate=0), 18).reason


@pytest.mark.parametrize("to", [TensorProto.INT64, TensorProto.DOUBLE, TensorProto.BOOL])
def test_converts_type_number_to_name(to: int) -> None:
    (node,) = assert_round_trip(_cast(to, 9), 5, FEEDS).graph.node
    assert node.attribute[0].s.decode() == TensorProto.DataType.Name(to)


@pytest.mark.parametrize("target", [18, 14, 7])
def test_replaces_cast_like_with_cast(target: int) -> None:
    feeds = {**FEEDS, "like": np.zeros(2, np.int32)}
    node = helper.make_node("CastLike", ["x", "like"], ["y"], name="node", saturate=0)
    result = convert_and_check(build([node], feeds, {"y": TensorProto.INT32}, 19), target, feeds, [TRUNCATED])
    assert op_types(result) == (["CastLike"] if target > 14 else ["Cast"])


def test_refuses_unknown_type() -> None:
    nodes = [
        helper.make_node("Anything", ["x"], ["like"], domain="com.acme"),
        helper.make_node("CastLike", ["x", "like"], ["y"], name="node"),
    ]
    model = build(nodes, FEEDS, {"y": 1}, {"": 15, "com.acme": 1})
    del model.graph.output[:]
    assert refusal_of(model, 14).reason == "the element type of 'like' is unknown"
    assert convert_version(model, 15)
