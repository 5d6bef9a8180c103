"""Expansion of CausalConvWithState below opset 27."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, build, op_types

BATCH, CHANNELS, LENGTH = 2, 3, 5
RANDOM = np.random.default_rng(27)


def _case(
    kernel_size: int = 4, activation: str = "none", *, bias: bool = False, past: bool = False
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    shapes: dict[str, tuple[int, ...]] = {
        "x": (BATCH, CHANNELS, LENGTH),
        "weight": (CHANNELS, 1, kernel_size),
    }
    shapes |= {"bias": (CHANNELS,)} if bias else {}
    shapes |= {"past": (BATCH, CHANNELS, kernel_size - 1)} if past else {}
    feeds = {name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    inputs = ["x", "weight", "bias" if bias else "", *(["past"] if past else [])]
    node = helper.make_node("CausalConvWithState", inputs, ["y", "state"], name="node", activation=activation)
    return build([node], feeds, ["y", "state"], 27, ir_version=10), feeds


CASES = [
    pytest.param(_case(), id="no past state"),
    pytest.param(_case(past=True), id="past state"),
    pytest.param(_case(bias=True, past=True), id="bias and past state"),
    pytest.param(_case(7), id="kernel longer than the data"),
    pytest.param(_case(1), id="kernel of length 1"),
    pytest.param(_case(activation="silu"), id="SiLU activation"),
    pytest.param(_case(activation="swish", past=True), id="Swish activation"),
]


@pytest.mark.parametrize("case", CASES)
def test_prepends_the_past_state(case: tuple[onnx.ModelProto, dict[str, Array]]) -> None:
    model, feeds = case
    for target in (7, 13, 26):
        assert "Conv" in op_types(convert_and_check(model, target, feeds))


def test_refuses_unknown_kernel_size() -> None:
    model, _ = _case()
    assert (
        refusal_of(with_symbolic_dims(model), 26).reason
        == "the number of channels or the kernel width is unknown"
    )
