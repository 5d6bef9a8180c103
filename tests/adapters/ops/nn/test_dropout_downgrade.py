"""Downgrade of Dropout: inference only below opset 12, and a mask of the data type below opset 10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types
from support.old_operators import assert_round_trip

from opshift import convert_version

DATA = np.array([[1, 0, np.nan], [np.inf, -2, 3]], np.float32)
RATIO = {"r": np.array(0.25, np.float32)}
INFERENCE_MODE, TRAINING_MODE = {"t": np.array(False)}, {"t": np.array(True)}


def _model(
    inputs: Sequence[str],
    constants: Mapping[str, Array],
    outputs: Sequence[str] = ("y",),
    opset: int = 13,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    values = {"r": RATIO["r"], "t": np.array(False)}
    computed = {name: values[name] for name in inputs if name and name not in constants}
    node = helper.make_node("Dropout", ["x", *inputs], outputs, name="node", **attributes)
    output_types = dict(zip(outputs, (TensorProto.FLOAT, TensorProto.BOOL), strict=False))
    feeds = {"x": DATA, **computed}
    return build([node], feeds, output_types, opset, initializers=constants), feeds


INFERENCE_CASES = [
    pytest.param([], {}, {}, [], id="no inputs"),
    pytest.param(["r"], RATIO, {}, ["ratio"], id="constant ratio"),
    pytest.param(["r"], {}, {}, [], id="computed ratio"),
    pytest.param(["r", "t"], {**RATIO, **INFERENCE_MODE}, {}, ["ratio"], id="training_mode false"),
    pytest.param(["", "t"], INFERENCE_MODE, {"seed": 1}, [], id="seed without ratio"),
    pytest.param(
        ["r", "t"], {"r": np.array(0, np.float32), **TRAINING_MODE}, {}, ["ratio"], id="training with ratio 0"
    ),
]


@pytest.mark.parametrize(("inputs", "constants", "attributes", "attribute_names"), INFERENCE_CASES)
@pytest.mark.parametrize("target", [11, 9, 7])
def test_preserves_inference(
    inputs: Sequence[str],
    constants: Mapping[str, Array],
    attributes: Mapping[str, Any],
    attribute_names: Sequence[str],
    target: int,
) -> None:
    model, feeds = _model(inputs, constants, **attributes)
    result = convert_and_check(model, target, feeds)
    assert op_types(result) == ["Dropout"]
    assert [each.name for each in result.graph.node[0].attribute] == attribute_names


@pytest.mark.parametrize("target", [11, 9, 7])
def test_computes_all_true_mask(target: int) -> None:
    model, feeds = _model([], {}, ["y", "mask"])
    result = convert_and_check(model, target, feeds, [DATA, np.ones(DATA.shape, np.bool_)])
    assert op_types(result) == ["Dropout", "Cast", "Not", "Or"]


def test_casts_mask_of_version_10_to_bool() -> None:
    model, feeds = _model([], {}, ["y", "mask"], 10)
    assert op_types(convert_and_check(model, 7, feeds)) == ["Dropout", "Cast"]


def test_drops_unused_mask() -> None:
    model, feeds = _model([], {}, ["y", "mask"], 10)
    del model.graph.output[1]
    assert list(convert_and_check(model, 9, feeds).graph.node[0].output) == ["y"]


def test_sets_is_test_at_opset_6() -> None:
    model, feeds = _model([], {})
    (node,) = assert_round_trip(model, 6, feeds).graph.node
    assert {each.name: each.i for each in node.attribute} == {"is_test": 1}


@pytest.mark.parametrize("constants", [{**RATIO, **TRAINING_MODE}, RATIO], ids=["true", "computed"])
def test_refuses_training(constants: Mapping[str, Array]) -> None:
    model, _ = _model(["r", "t"], constants)
    refused = refusal_of(model, 11)
    assert refused.reason == "training_mode may be true; Dropout-10 never drops elements"


def test_keeps_training_at_opset_12() -> None:
    model, _ = _model(["r", "t"], {**RATIO, **TRAINING_MODE})
    assert len(convert_version(model, 12).graph.node[0].input) == 3
