"""Expansion of layer, RMS and mean-variance normalization below the opset that introduced them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, build, op_types

SHAPE = (2, 3, 4, 5)
RANDOM = np.random.default_rng(17)


def _random(*shape: int, dtype: type[np.generic] = np.float32) -> Array:
    return (RANDOM.standard_normal(shape) * 3 + 1).astype(dtype)


def _layer_case(
    axis: int | None,
    outputs: int = 3,
    dtype: type[np.generic] = np.float32,
    *,
    bias: bool = True,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    scale_shape = SHAPE[-1:] if axis is None else SHAPE[axis:]
    feeds = {"x": _random(*SHAPE, dtype=dtype), "scale": _random(*scale_shape, dtype=dtype)}
    if bias:
        feeds["bias"] = _random(*scale_shape, dtype=dtype)
    output_types = dict(
        zip(("y", "mean", "inverse"), [helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), 1, 1], strict=True)
    )
    used_outputs = dict(list(output_types.items())[:outputs])
    node_attributes = attributes if axis is None else {"axis": axis, **attributes}
    node = helper.make_node(
        "LayerNormalization", list(feeds), list(used_outputs), name="node", **node_attributes
    )
    return build([node], feeds, used_outputs, 17), feeds


LAYER_CASES = [
    pytest.param(_layer_case(None), id="three outputs"),
    pytest.param(_layer_case(None, 1), id="single output"),
    pytest.param(_layer_case(None, 1, bias=False), id="no bias"),
    pytest.param(_layer_case(2), id="axis 2"),
    pytest.param(_layer_case(0), id="axis 0"),
    pytest.param(_layer_case(-3), id="negative axis"),
    pytest.param(_layer_case(None, epsilon=0.5), id="explicit epsilon"),
]


@pytest.mark.parametrize("case", LAYER_CASES)
def test_expands_layer_normalization(case: tuple[onnx.ModelProto, dict[str, Array]]) -> None:
    model, feeds = case
    for target in (7, 11, 16):
        convert_and_check(model, target, feeds)


def test_computes_float16_layer_normalization_in_float() -> None:
    model, feeds = _layer_case(None, 1, np.float16)
    result = convert_and_check(model, 16, feeds, tolerance=5e-3)
    assert op_types(result)[0] == "Cast"
    assert op_types(result)[-3:] == ["Cast", "Mul", "Add"]


def test_needs_no_rank_for_negative_axis() -> None:
    model, feeds = _layer_case(-2, 1)
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    for target in (11, 16):
        convert_and_check(model, target, feeds)


def test_refuses_nonnegative_axis_of_unknown_rank() -> None:
    model, _ = _layer_case(2, 1)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert refusal_of(model, 16).reason == "the rank of 'x' is unknown"


@pytest.mark.parametrize("axis", [-1, 1, -3], ids=["last axis", "axis 1", "negative axis"])
def test_expands_rms_normalization(axis: int) -> None:
    feeds = {"x": _random(*SHAPE), "scale": _random(*SHAPE[axis:])}
    node = helper.make_node("RMSNormalization", list(feeds), ["y"], name="node", axis=axis, epsilon=0.01)
    model = with_symbolic_dims(build([node], feeds, ["y"], 23, ir_version=10))
    for target in (7, 17, 22):
        convert_and_check(model, target, feeds)


def test_returns_the_scale_type_of_rms_normalization() -> None:
    feeds = {"x": _random(2, 8, dtype=np.float16), "scale": _random(8)}
    node = helper.make_node("RMSNormalization", list(feeds), ["y"], name="node")
    model = build([node], feeds, ["y"], 23, ir_version=10)
    widened = feeds["x"].astype(np.float32)
    normalized = widened / np.sqrt(np.mean(widened * widened, -1, keepdims=True) + 1e-5)
    convert_and_check(
        model, 22, feeds, [normalized.astype(np.float16).astype(np.float32) * feeds["scale"]], tolerance=1e-3
    )


def test_computes_rms_normalization_in_double() -> None:
    feeds = {"x": _random(2, 8), "scale": _random(8)}
    node = helper.make_node(
        "RMSNormalization", list(feeds), ["y"], name="node", stash_type=TensorProto.DOUBLE
    )
    model = build([node], feeds, ["y"], 23, ir_version=10)
    widened = feeds["x"].astype(np.float64)
    normalized = (widened / np.sqrt(np.mean(widened * widened, -1, keepdims=True) + 1e-5)).astype(np.float32)
    convert_and_check(model, 22, feeds, [normalized * feeds["scale"]])


@pytest.mark.parametrize(
    ("attributes", "since"),
    [({}, 9), ({"axes": [1, 2]}, 9), ({"axes": [-1]}, 13)],
    ids=["default axes", "explicit axes", "negative axes"],
)
def test_expands_mean_variance_normalization(attributes: dict[str, Any], since: int) -> None:
    feeds = {"x": _random(*SHAPE)}
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], name="node", **attributes)
    model = build([node], feeds, ["y"], since)
    axes = tuple(attributes.get("axes", (0, 2, 3)))
    centered = feeds["x"] - feeds["x"].mean(axes, keepdims=True)
    expected = [centered / np.sqrt((centered * centered).mean(axes, keepdims=True))]
    for target in (7, 8):
        convert_and_check(model, target, feeds, expected, tolerance=1e-4)


def test_returns_zero_for_constant_channel() -> None:
    """Version 9 adds a small constant to the standard deviation, which is 0 here."""
    feeds = {"x": np.full(SHAPE, 2.0, np.float32)}
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], name="node")
    convert_and_check(build([node], feeds, ["y"], 9), 8, feeds, [np.zeros(SHAPE, np.float32)])
