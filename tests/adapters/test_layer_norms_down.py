"""Normalization over dimensions, in opsets before it came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.dynamic import symbolic
from support.running import Array, build, op_types

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
SHAPE = (2, 3, 4, 5)
NUMBERS = np.random.default_rng(17)


def _random(*shape: int, kind: type[np.generic] = np.float32) -> Array:
    return (NUMBERS.standard_normal(shape) * 3 + 1).astype(kind)


def _layer(
    axis: int | None,
    outputs: int = 3,
    kind: type[np.generic] = np.float32,
    *,
    bias: bool = True,
    **other: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    size = SHAPE[-1:] if axis is None else SHAPE[axis:]
    feeds = {"x": _random(*SHAPE, kind=kind), "scale": _random(*size, kind=kind)}
    if bias:
        feeds["bias"] = _random(*size, kind=kind)
    names = dict(
        zip(("y", "mean", "inverse"), [helper.np_dtype_to_tensor_dtype(np.dtype(kind)), 1, 1], strict=True)
    )
    named = dict(list(names.items())[:outputs])
    stated = other if axis is None else {"axis": axis, **other}
    node = helper.make_node("LayerNormalization", list(feeds), list(named), name="node", **stated)
    return build([node], feeds, named, 17), feeds


LAYERS = [
    pytest.param(_layer(None), id="all three outputs"),
    pytest.param(_layer(None, 1), id="one output"),
    pytest.param(_layer(None, 1, bias=False), id="no bias"),
    pytest.param(_layer(2), id="axis 2"),
    pytest.param(_layer(0), id="axis 0"),
    pytest.param(_layer(-3), id="axis from the back"),
    pytest.param(_layer(None, epsilon=0.5), id="epsilon stated"),
]


@pytest.mark.parametrize("case", LAYERS)
def test_layer_normalization(case: tuple[onnx.ModelProto, dict[str, Array]], converted: Converted) -> None:
    model, feeds = case
    for target in (7, 11, 16):
        converted(model, target, feeds)


def test_layer_normalization_of_float16_is_worked_out_in_float(converted: Converted) -> None:
    model, feeds = _layer(None, 1, np.float16)
    result = converted(model, 16, feeds, tolerance=5e-3)
    assert op_types(result)[0] == "Cast"
    assert op_types(result)[-3:] == ["Cast", "Mul", "Add"]


def test_an_axis_from_the_back_needs_no_rank(converted: Converted) -> None:
    model, feeds = _layer(-2, 1)
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    for target in (11, 16):
        converted(model, target, feeds)


def test_an_axis_from_the_front_needs_the_rank(refusal: Callable[..., Refusal]) -> None:
    model, _ = _layer(2, 1)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert refusal(model, 16).reason == "the rank of 'x' is unknown"


@pytest.mark.parametrize("axis", [-1, 1, -3], ids=["last axis", "axis 1", "axis from the back"])
def test_rms_normalization(axis: int, converted: Converted) -> None:
    feeds = {"x": _random(*SHAPE), "scale": _random(*SHAPE[axis:])}
    node = helper.make_node("RMSNormalization", list(feeds), ["y"], name="node", axis=axis, epsilon=0.01)
    model = symbolic(build([node], feeds, ["y"], 23, ir_version=10))
    for target in (7, 17, 22):
        converted(model, target, feeds)


def test_rms_normalization_has_the_type_of_its_scale(converted: Converted) -> None:
    feeds = {"x": _random(2, 8, kind=np.float16), "scale": _random(8)}
    node = helper.make_node("RMSNormalization", list(feeds), ["y"], name="node")
    model = build([node], feeds, ["y"], 23, ir_version=10)
    wide = feeds["x"].astype(np.float32)
    normal = wide / np.sqrt(np.mean(wide * wide, -1, keepdims=True) + 1e-5)
    converted(
        model, 22, feeds, [normal.astype(np.float16).astype(np.float32) * feeds["scale"]], tolerance=1e-3
    )


def test_root_mean_square_in_double(converted: Converted) -> None:
    feeds = {"x": _random(2, 8), "scale": _random(8)}
    node = helper.make_node(
        "RMSNormalization", list(feeds), ["y"], name="node", stash_type=TensorProto.DOUBLE
    )
    model = build([node], feeds, ["y"], 23, ir_version=10)
    wide = feeds["x"].astype(np.float64)
    normal = (wide / np.sqrt(np.mean(wide * wide, -1, keepdims=True) + 1e-5)).astype(np.float32)
    converted(model, 22, feeds, [normal * feeds["scale"]])


@pytest.mark.parametrize(
    ("attributes", "since"),
    [({}, 9), ({"axes": [1, 2]}, 9), ({"axes": [-1]}, 13)],
    ids=["axes left out", "axes stated", "axes from the back"],
)
def test_mean_and_variance(attributes: dict[str, Any], since: int, converted: Converted) -> None:
    feeds = {"x": _random(*SHAPE)}
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], name="node", **attributes)
    model = build([node], feeds, ["y"], since)
    axes = tuple(attributes.get("axes", (0, 2, 3)))
    distance = feeds["x"] - feeds["x"].mean(axes, keepdims=True)
    expected = [distance / np.sqrt((distance * distance).mean(axes, keepdims=True))]
    for target in (7, 8):
        converted(model, target, feeds, expected, tolerance=1e-4)


def test_a_constant_channel_is_zero(converted: Converted) -> None:
    """The deviation is 0, to which version 9 adds a little."""
    feeds = {"x": np.full(SHAPE, 2.0, np.float32)}
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], name="node")
    converted(build([node], feeds, ["y"], 9), 8, feeds, [np.zeros(SHAPE, np.float32)])
