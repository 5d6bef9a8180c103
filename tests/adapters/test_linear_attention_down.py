"""LinearAttention before 27: a loop over the tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.dynamic import symbolic
from support.running import Array, build, op_types

Converted = Callable[..., onnx.ModelProto]
BATCH, TOKENS, HEADS, SHARED, SIZE, WIDTH = 2, 3, 4, 2, 3, 5
NAMES = ("query", "key", "value", "past_state", "decay", "beta")
NUMBERS = np.random.default_rng(27)


def _random(*shape: int) -> Array:
    return (NUMBERS.standard_normal(shape) * 0.5).astype(np.float32)


def _case(
    rule: str, decay: int = SHARED, beta: int = SHARED, *, past: bool = False, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {
        "query": _random(BATCH, TOKENS, HEADS * SIZE),
        "key": _random(BATCH, TOKENS, SHARED * SIZE),
        "value": _random(BATCH, TOKENS, SHARED * WIDTH),
    }
    if past:
        feeds["past_state"] = _random(BATCH, SHARED, SIZE, WIDTH)
    if "gated" in rule:
        feeds["decay"] = -np.abs(_random(BATCH, TOKENS, decay))
    if "delta" in rule:
        feeds["beta"] = np.abs(_random(BATCH, TOKENS, beta))
    counts = {"q_num_heads": HEADS, "kv_num_heads": SHARED}
    last = max(map(NAMES.index, feeds)) + 1
    inputs = [name if name in feeds else "" for name in NAMES[:last]]
    node = helper.make_node(
        "LinearAttention", inputs, ["y", "state"], name="node", update_rule=rule, **counts, **attributes
    )
    return build([node], feeds, ["y", "state"], 27, ir_version=10), feeds


CASES = [
    pytest.param(_case("linear"), id="linear"),
    pytest.param(_case("linear", scale=0.7, past=True), id="linear, scale and past state"),
    pytest.param(_case("gated"), id="gated, a decay for each head"),
    pytest.param(_case("gated", SHARED * SIZE), id="gated, a decay for each number of a key"),
    pytest.param(_case("delta"), id="delta"),
    pytest.param(_case("delta", beta=1), id="delta, one rate for all heads"),
    pytest.param(_case("gated_delta", past=True), id="gated delta with a past state"),
]


@pytest.mark.parametrize("case", CASES)
def test_tokens_take_turns(case: tuple[onnx.ModelProto, dict[str, Array]], converted: Converted) -> None:
    model, feeds = case
    for target in (8, 9, 13, 26):
        result = converted(model, target, feeds)
        assert op_types(result).count("Loop") == 1
    unknown = onnx.ModelProto()
    unknown.CopyFrom(model)
    for target in (9, 26):
        converted(symbolic(unknown), target, feeds)


def test_the_state_may_be_wider_than_the_tokens(converted: Converted) -> None:
    model, feeds = _case("gated_delta", past=True)
    half = {name: feeds[name].astype(np.float16) for name in feeds if name != "past_state"}
    for value in (*model.graph.input, model.graph.output[0]):
        if value.name != "past_state":
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    converted(model, 26, {**feeds, **half}, tolerance=1e-3)
