"""DFT from opset 17 to 20: `axis` becomes an input, and its default changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build

SIGNAL = np.random.default_rng(0).standard_normal((2, 6, 4, 1)).astype(np.float32)
COMPLEX = np.random.default_rng(1).standard_normal((2, 6, 4, 2)).astype(np.float32)


def _model(data: Array, length: int | None, **attributes: Any) -> onnx.ModelProto:
    constants = {} if length is None else {"n": np.array(length, np.int64)}
    node = helper.make_node("DFT", ["x", *constants], ["y"], name="node", **attributes)
    return build([node], {"x": data}, ["y"], 17, initializers=constants)


@pytest.mark.parametrize(
    ("data", "length", "attributes"),
    [
        pytest.param(SIGNAL, None, {}, id="default axis"),
        pytest.param(SIGNAL, None, {"axis": 1}, id="explicit default axis"),
        pytest.param(SIGNAL, None, {"axis": 2}, id="last axis"),
        pytest.param(SIGNAL, None, {"axis": -2}, id="negative axis"),
        pytest.param(SIGNAL, None, {"axis": 0}, id="first axis"),
        pytest.param(SIGNAL, None, {"onesided": 1}, id="one-sided"),
        pytest.param(COMPLEX, None, {"inverse": 1, "axis": 2}, id="inverse"),
        pytest.param(COMPLEX, None, {}, id="complex signal"),
        pytest.param(SIGNAL, 4, {}, id="shorter signal"),
        pytest.param(SIGNAL, 8, {"axis": 2}, id="longer signal"),
    ],
)
def test_moves_axis_to_input(data: Array, length: int | None, attributes: Mapping[str, int]) -> None:
    model = _model(data, length, **attributes)
    for target in (20, 21):
        result = convert_and_check(model, target, {"x": data})
        node = result.graph.node[0]
        assert list(node.input[:2]) == ["x", "n" if length else ""]
        (axis,) = (each for each in result.graph.initializer if each.name == node.input[2])
        assert numpy_helper.to_array(axis) == np.int64(attributes.get("axis", 1))
        assert "axis" not in {each.name for each in node.attribute}


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3])
@pytest.mark.parametrize("target", [19, 17, 16, 9, 7])
@pytest.mark.parametrize(
    ("data", "attributes"),
    [
        pytest.param(SIGNAL, {"onesided": 1}, id="one-sided"),
        pytest.param(COMPLEX, {"inverse": 1}, id="inverse"),
    ],
)
def test_accepts_computed_axis(data: Array, attributes: Mapping[str, int], target: int, axis: int) -> None:
    node = helper.make_node("DFT", ["x", "", "axis"], ["y"], name="node", **attributes)
    feeds = {"x": data, "axis": np.array(axis)}
    convert_and_check(build([node], feeds, ["y"], 20), target, feeds)


def test_refuses_bfloat16_below_opset_16() -> None:
    node = helper.make_node("DFT", ["x", "", "axis"], ["y"], name="node")
    feeds = {"x": SIGNAL.astype(ml_dtypes.bfloat16), "axis": np.array(1)}
    model = build([node], feeds, {"y": TensorProto.BFLOAT16}, 20)
    refusal = refusal_of(model, 15)
    assert refusal.reason == "the operator has no equivalent for bfloat16 below opset 16"
    assert refusal.nearest == 16
