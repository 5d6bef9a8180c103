"""CausalConvWithState before 27."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from support.dynamic import symbolic
from support.running import Array, build, op_types

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
BATCH, CHANNELS, LENGTH = 2, 3, 5
NUMBERS = np.random.default_rng(27)


def _case(
    width: int = 4, activation: str = "none", *, bias: bool = False, past: bool = False
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    shapes: dict[str, tuple[int, ...]] = {"x": (BATCH, CHANNELS, LENGTH), "weight": (CHANNELS, 1, width)}
    shapes |= {"bias": (CHANNELS,)} if bias else {}
    shapes |= {"past": (BATCH, CHANNELS, width - 1)} if past else {}
    feeds = {name: NUMBERS.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    inputs = ["x", "weight", "bias" if bias else "", *(["past"] if past else [])]
    node = helper.make_node("CausalConvWithState", inputs, ["y", "state"], name="node", activation=activation)
    return build([node], feeds, ["y", "state"], 27, ir_version=10), feeds


CASES = [
    pytest.param(_case(), id="zeros before the first column"),
    pytest.param(_case(past=True), id="a past state"),
    pytest.param(_case(bias=True, past=True), id="bias and past state"),
    pytest.param(_case(7), id="a kernel wider than the data"),
    pytest.param(_case(1), id="a kernel that reaches nothing else"),
    pytest.param(_case(activation="silu"), id="activated"),
    pytest.param(_case(activation="swish", past=True), id="activated by another name"),
]


@pytest.mark.parametrize("case", CASES)
def test_past_columns_come_first(
    case: tuple[onnx.ModelProto, dict[str, Array]], converted: Converted
) -> None:
    model, feeds = case
    for target in (7, 13, 26):
        assert "Conv" in op_types(converted(model, target, feeds))


def test_the_kernel_has_to_be_known(refusal: Callable[..., Refusal]) -> None:
    model, _ = _case()
    assert refusal(symbolic(model), 26).reason == "the number of channels and the kernel width are unknown"
