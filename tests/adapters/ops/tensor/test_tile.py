"""Upgrades of Tile: a count along one axis becomes a count for every dimension."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types

DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _model(axis: int, count: int, constants: str) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return a Tile-1 model; `constants` names the inputs (`t`: count, `a`: axis) that are initializers."""
    node = helper.make_node("Tile", ["x", "t", "a"], ["y"], name="node")
    values = {"x": DATA, "t": np.array([count], np.float32), "a": np.array([axis], np.float32)}
    feeds = {name: array for name, array in values.items() if name not in constants}
    initializers = {name: values[name] for name in constants}
    return build([node], feeds, ["y"], 1, initializers=initializers), feeds


def _expected_tile(axis: int, count: int) -> Array:
    return np.concatenate([DATA] * count, axis)


@pytest.mark.parametrize("target", [6, 13])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_upgrades_a_constant_count(axis: int, count: int, target: int) -> None:
    model, feeds = _model(axis, count, "ta")
    assert op_types(convert_and_check(model, target, feeds, [_expected_tile(axis, count)])) == ["Tile"]


@pytest.mark.parametrize("target", [6, 13])
@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_upgrades_a_computed_count(axis: int, target: int) -> None:
    model, feeds = _model(axis, 2, "a")
    result = convert_and_check(model, target, feeds, [_expected_tile(axis, 2)])
    assert op_types(result) == ["Cast", "Reshape", "Concat", "Tile"]


def test_upgrades_a_scalar_count() -> None:
    model, feeds = _model(1, 2, "a")
    feeds["t"] = np.array(2, np.float32)
    model.graph.input[1].type.tensor_type.shape.Clear()
    convert_and_check(model, 6, feeds, [_expected_tile(1, 2)])


def test_refuses_a_computed_axis() -> None:
    refused = refusal_of(_model(1, 2, "t")[0], 6)
    assert refused.reason == "input axis ('a') is not a constant"
    assert refused.remedy == "make the value an initializer that is not a graph input"


def test_refuses_unknown_rank() -> None:
    model = _model(1, 2, "ta")[0]
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert refusal_of(model, 6).reason == "the rank of 'x' is unknown"
