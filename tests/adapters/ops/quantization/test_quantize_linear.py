"""Upgrades of QuantizeLinear: since opset 19 the data must have the type of the scale."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check
from support.execution import Array, build, op_types

EXPECTED: Array = np.array([0, 1, 255], np.uint8)
"""Results for -3, 2 and 700 with scale 1.75; no available runtime quantizes integers before opset 19."""


def _model(data: Array, opset: int, *, shapes: bool = True) -> tuple[onnx.ModelProto, dict[str, Array]]:
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], name="node")
    scale: dict[str, Array] = {"s": np.array(1.75, np.float32)}
    model = build([node], {"x": data}, {"y": TensorProto.UINT8}, opset, initializers=scale, shapes=shapes)
    return model, {"x": data}


@pytest.mark.parametrize("target", [19, 21, 23, 25])
@pytest.mark.parametrize("opset", [10, 13, 18])
def test_casts_integers_to_the_type_of_the_scale(opset: int, target: int) -> None:
    model, feeds = _model(np.array([-3, 2, 700], np.int32), opset)
    assert op_types(convert_and_check(model, target, feeds, [EXPECTED])) == ["Cast", "QuantizeLinear"]


@pytest.mark.parametrize("target", [18, 19, 25])
def test_keeps_quantize_linear_of_floats(target: int) -> None:
    model, feeds = _model(np.array([-3, 2, 700], np.float32), 10)
    assert op_types(convert_and_check(model, target, feeds)) == ["QuantizeLinear"]


def test_casts_data_of_unknown_type() -> None:
    """A cast to float is safe for unknown types, because it does not change float data."""
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], name="node")
    imports = [helper.make_opsetid("", 13)]
    function = helper.make_function("local", "F", ["x", "s"], ["y"], [node], imports)
    feeds: dict[str, Array] = {"x": np.array([-3, 2, 700], np.int32), "s": np.array(1.75, np.float32)}
    call = helper.make_node("F", ["x", "s"], ["y"], domain="local")
    model = build([call], feeds, {"y": TensorProto.UINT8}, {"": 13, "local": 1})
    model.functions.append(function)
    result = convert_and_check(model, 19, feeds, [EXPECTED])
    assert [each.op_type for each in result.functions[0].node] == ["Cast", "QuantizeLinear"]
