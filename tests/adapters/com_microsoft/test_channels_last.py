"""Convolutions of com.microsoft with the channels last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.com_microsoft import assert_replaced, case, model_of, without_microsoft
from support.execution import Array, assert_equal, run
from support.forms import RANKED_FORMS

RANDOM = np.random.default_rng(3)

SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "pads and strides": {"pads": [1, 0, 2, 1], "strides": [2, 1]},
    "dilations": {"dilations": [2, 1]},
    "same": {"auto_pad": "SAME_UPPER"},
    "two groups": {"group": 2},
    "kernel shape": {"kernel_shape": [3, 2]},
}


def _quantized(channels_last: int, bias: bool, group: int = 1) -> list[Any]:
    data = RANDOM.integers(0, 255, (2, 4, 7, 6), np.uint8)
    if channels_last:
        data = data.transpose(0, 2, 3, 1)
    weights = RANDOM.integers(-127, 127, (6, 4 // group, 3, 2), np.int8)
    scales = [np.float32(0.02), np.uint8(120), weights, np.full(6, 0.01, np.float32), np.zeros(6, np.int8)]
    result = [np.float32(0.5), np.uint8(100)]
    biases = [RANDOM.integers(-900, 900, 6, np.int32)] if bias else []
    return [data, *scales, *result, *biases]


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("opset", [10, 21])
def test_quantized_convolution(channels_last: int, bias: bool, settings: dict[str, Any], opset: int) -> None:
    inputs = _quantized(channels_last, bias, settings.get("group", 1))
    assert_replaced(
        case("QLinearConv", *inputs, channels_last=channels_last, **settings), "initializer", opset
    )


def _expected(op_type: str, inputs: list[Array], **settings: Any) -> Array:
    """Compute the convolution by FusedConv with the channels in the second dimension."""
    moved = [
        each.transpose(0, 3, 1, 2) if position in (0, 3) else each for position, each in enumerate(inputs)
    ]
    (found,) = run(*model_of(case("FusedConv", *moved, **settings)))
    return np.asarray(found).transpose(0, 2, 3, 1)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_convolution(settings: dict[str, Any], form: str) -> None:
    inputs = [
        RANDOM.normal(size=(2, 7, 6, 4)).astype(np.float32),
        RANDOM.normal(size=(6, 4 // settings.get("group", 1), 3, 2)).astype(np.float32),
        RANDOM.normal(size=6).astype(np.float32),
    ]
    given = case("NhwcConv", *inputs, **settings)
    assert_replaced(given, form, expected=[_expected("NhwcConv", inputs, **settings)], tolerance=1e-4)


@pytest.mark.parametrize("activation", [{}, {"activation": "Relu"}, {"activation": "Tanh"}], ids=str)
def test_fused_convolution(activation: dict[str, Any]) -> None:
    inputs = [
        RANDOM.normal(size=(2, 7, 6, 4)).astype(np.float32),
        RANDOM.normal(size=(6, 4, 3, 2)).astype(np.float32),
        RANDOM.normal(size=6).astype(np.float32),
        RANDOM.normal(size=(2, 5, 5, 6)).astype(np.float32),
    ]
    expected = _expected("NhwcFusedConv", inputs, **activation)
    assert_replaced(case("NhwcFusedConv", *inputs, **activation), expected=[expected], tolerance=1e-4)


@pytest.mark.parametrize("channels_last", [0, 1])
def test_the_inferred_shape_is_that_of_the_result(channels_last: int) -> None:
    """The conversion of Softmax needs the rank."""
    model, feeds = model_of(
        case("QLinearConv", *_quantized(channels_last, True), channels_last=channels_last)
    )
    model.graph.node.append(helper.make_node("Cast", ["y0"], ["z"], to=1))
    model.graph.node.append(helper.make_node("Softmax", ["z"], ["s"], axis=1))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("s", 1, None))
    converted = without_microsoft(model, 11)
    assert_equal(run(converted, feeds), run(model, feeds))
