"""Downgrades of RNN, GRU and LSTM: batchwise layout, and output_sequence before opset 7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types, run
from support.old_operators import assert_round_trip

from opshift import convert_version

RANDOM = np.random.default_rng(0)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OUTPUTS = {"RNN": ["y", "last"], "GRU": ["y", "last"], "LSTM": ["y", "last", "cell"]}
TIME, BATCH, FEATURES, HIDDEN = 4, 3, 2, 5


def _model(
    op_type: str,
    opset: int,
    outputs: Sequence[str],
    *,
    states: bool = True,
    layout: int = 0,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    rows = GATES[op_type] * HIDDEN
    data, state = (BATCH, TIME, FEATURES), (BATCH, 1, HIDDEN)
    if not layout:
        data, state = (TIME, BATCH, FEATURES), (1, BATCH, HIDDEN)
    shapes = {"x": data, "w": (1, rows, FEATURES), "r": (1, rows, HIDDEN), "b": (1, 2 * rows)}
    feeds: dict[str, Array] = {
        name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    inputs = list(feeds)
    if states:
        names = ["h", "c"] if op_type == "LSTM" else ["h"]
        feeds |= {name: RANDOM.standard_normal(state).astype(np.float32) for name in names}
        inputs += ["", *names]
    if layout:
        attributes["layout"] = layout
    node = helper.make_node(op_type, inputs, outputs, name="node", hidden_size=HIDDEN, **attributes)
    return build([node], feeds, [name for name in outputs if name], opset), feeds


@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.parametrize("states", [True, False], ids=["states", "no states"])
def test_transposes_batchwise_layout(op_type: str, states: bool) -> None:
    """Expect transposed outputs of the default layout, because onnxruntime lacks the batchwise layout."""
    sequence_major, feeds = _model(op_type, 14, OUTPUTS[op_type], states=states)
    batch_major, _ = _model(op_type, 14, OUTPUTS[op_type], states=states, layout=1)
    batch_major_feeds = {
        name: value.swapaxes(0, 1) if name in ("x", "h", "c") else value for name, value in feeds.items()
    }
    expected = run(convert_and_check(sequence_major, 13, feeds), feeds)
    batch_major_outputs = [expected[0].transpose(2, 0, 1, 3), *(each.swapaxes(0, 1) for each in expected[1:])]
    result = convert_and_check(batch_major, 13, batch_major_feeds, batch_major_outputs)
    assert "Transpose" in op_types(result)


@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.parametrize("outputs", [["y"], ["", "last"]], ids=["all steps", "last step"])
@pytest.mark.parametrize("target", [6, 1])
def test_sets_output_sequence_if_the_sequence_is_used(
    op_type: str, outputs: Sequence[str], target: int
) -> None:
    model, feeds = _model(op_type, 7, outputs, states=False)
    if target == 1:
        model, feeds = _model(op_type, 7, outputs, states=False, direction="reverse")
    node = next(
        each for each in assert_round_trip(model, target, feeds).graph.node if each.op_type == op_type
    )
    attributes = {each.name: each.i for each in node.attribute}
    assert attributes.get("output_sequence") == (1 if outputs[0] else None)


def test_gru_1_has_both_outputs() -> None:
    model, feeds = _model("GRU", 7, ["y"], states=False)
    (node,) = assert_round_trip(model, 1, feeds).graph.node
    assert len(node.output) == 2
    assert {each.name: each.s for each in node.attribute}["direction"] == b"forward"


def test_refuses_linear_before_reset_at_gru_1() -> None:
    model, _ = _model("GRU", 7, ["y"], states=False, linear_before_reset=1)
    assert refusal_of(model, 2).reason == "linear_before_reset is 1, which GRU-1 does not support"
    assert convert_version(model, 3)


@pytest.mark.parametrize(
    ("attributes", "name", "attribute"),
    [
        pytest.param({"activations": ["HardSigmoid", "Tanh"]}, "HardSigmoid", "activation_alpha", id="none"),
        pytest.param(
            {"activations": ["HardSigmoid", "Tanh"], "activation_alpha": [0.3]},
            "HardSigmoid",
            "activation_beta",
            id="no beta",
        ),
        pytest.param(
            {
                "activations": ["HardSigmoid", "LeakyRelu"],
                "activation_alpha": [0.3],
                "activation_beta": [0.4],
            },
            "LeakyRelu",
            "activation_alpha",
            id="too few",
        ),
    ],
)
def test_refuses_default_activation_parameters_at_gru_1(
    attributes: dict[str, Any], name: str, attribute: str
) -> None:
    model, _ = _model("GRU", 7, ["y"], states=False, **attributes)
    reason = f"activation {name!r} relies on the default of {attribute}, which GRU-1 does not define"
    assert refusal_of(model, 2).reason == reason
    assert convert_version(model, 3)


def test_keeps_activation_parameters_at_gru_1() -> None:
    parameters: dict[str, Any] = {"activation_alpha": [0.3, 0.02], "activation_beta": [0.4]}
    model, feeds = _model(
        "GRU", 7, ["y"], states=False, activations=["HardSigmoid", "LeakyRelu"], **parameters
    )
    assert assert_round_trip(model, 1, feeds)
