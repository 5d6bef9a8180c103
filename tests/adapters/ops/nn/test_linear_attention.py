"""Expansion of LinearAttention into a Scan over tokens below opset 27."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, build, op_types

BATCH, TOKENS, HEADS, KV_HEADS, KEY_SIZE, VALUE_SIZE = 2, 3, 4, 2, 3, 5
INPUTS = ("query", "key", "value", "past_state", "decay", "beta")
RANDOM = np.random.default_rng(27)


def _random(*shape: int) -> Array:
    return (RANDOM.standard_normal(shape) * 0.5).astype(np.float32)


def _case(
    rule: str, decay: int = KV_HEADS, beta: int = KV_HEADS, *, past: bool = False, **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {
        "query": _random(BATCH, TOKENS, HEADS * KEY_SIZE),
        "key": _random(BATCH, TOKENS, KV_HEADS * KEY_SIZE),
        "value": _random(BATCH, TOKENS, KV_HEADS * VALUE_SIZE),
    }
    if past:
        feeds["past_state"] = _random(BATCH, KV_HEADS, KEY_SIZE, VALUE_SIZE)
    if "gated" in rule:
        feeds["decay"] = -np.abs(_random(BATCH, TOKENS, decay))
    if "delta" in rule:
        feeds["beta"] = np.abs(_random(BATCH, TOKENS, beta))
    head_counts = {"q_num_heads": HEADS, "kv_num_heads": KV_HEADS}
    last = max(map(INPUTS.index, feeds)) + 1
    inputs = [name if name in feeds else "" for name in INPUTS[:last]]
    node = helper.make_node(
        "LinearAttention", inputs, ["y", "state"], name="node", update_rule=rule, **head_counts, **attributes
    )
    return build([node], feeds, ["y", "state"], 27, ir_version=10), feeds


CASES = [
    pytest.param(_case("linear"), id="linear"),
    pytest.param(_case("linear", scale=0.7, past=True), id="linear with scale and past state"),
    pytest.param(_case("gated"), id="gated with decay per head"),
    pytest.param(_case("gated", KV_HEADS * KEY_SIZE), id="gated with decay per key element"),
    pytest.param(_case("delta"), id="delta"),
    pytest.param(_case("delta", beta=1), id="delta with beta shared by heads"),
    pytest.param(_case("gated_delta", past=True), id="gated delta with past state"),
]


@pytest.mark.parametrize("case", CASES)
def test_expands_into_scan_of_tokens(case: tuple[onnx.ModelProto, dict[str, Array]]) -> None:
    model, feeds = case
    for target in (8, 9, 13, 26):
        result = convert_and_check(model, target, feeds)
        assert op_types(result).count("Scan" if target > 8 else "Loop") == 1
    unknown_sizes = onnx.ModelProto()
    unknown_sizes.CopyFrom(model)
    for target in (9, 26):
        convert_and_check(with_symbolic_dims(unknown_sizes), target, feeds)


def test_accepts_float_state_with_float16_tokens() -> None:
    model, feeds = _case("gated_delta", past=True)
    half_precision = {name: feeds[name].astype(np.float16) for name in feeds if name != "past_state"}
    for value in (*model.graph.input, model.graph.output[0]):
        if value.name != "past_state":
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    convert_and_check(model, 26, {**feeds, **half_precision}, tolerance=1e-3)


@pytest.mark.parametrize(
    ("stated", "rule", "reason"),
    [
        ("linear", "gated", "update_rule 'gated' requires the input decay"),
        ("gated", "gated_delta", "update_rule 'gated_delta' requires the input beta"),
        ("gated", "linear", "update_rule 'linear' forbids the input decay"),
        ("gated_delta", "gated", "update_rule 'gated' forbids the input beta"),
    ],
)
def test_refuses_inputs_that_contradict_the_rule(stated: str, rule: str, reason: str) -> None:
    """`stated` is the rule that the inputs are for, and `rule` the one in the node."""
    model, _ = _case(stated)
    (attribute,) = (each for each in model.graph.node[0].attribute if each.name == "update_rule")
    attribute.s = rule.encode()
    found = refusal_of(model, 26)
    assert (found.code, found.reason) == ("node.invalid", reason)
