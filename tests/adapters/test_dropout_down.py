"""Dropout on its way down: inference only below 12, and a mask of other types below 10."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.old import there_and_back
from support.running import Array, build, op_types

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
DATA = np.array([[1, 0, np.nan], [np.inf, -2, 3]], np.float32)
RATIO = {"r": np.array(0.25, np.float32)}
OFF, ON = {"t": np.array(False)}, {"t": np.array(True)}


def _model(
    inputs: Sequence[str],
    constants: Mapping[str, Array],
    outputs: Sequence[str] = ("y",),
    opset: int = 13,
    **more: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    values = {"r": RATIO["r"], "t": np.array(False)}
    given = {name: values[name] for name in inputs if name and name not in constants}
    node = helper.make_node("Dropout", ["x", *inputs], outputs, name="node", **more)
    kinds = dict(zip(outputs, (TensorProto.FLOAT, TensorProto.BOOL), strict=False))
    feeds = {"x": DATA, **given}
    return build([node], feeds, kinds, opset, initializers=constants), feeds


INFERENCE = [
    pytest.param([], {}, {}, [], id="nothing said"),
    pytest.param(["r"], RATIO, {}, ["ratio"], id="a constant ratio"),
    pytest.param(["r"], {}, {}, [], id="a computed ratio"),
    pytest.param(["r", "t"], {**RATIO, **OFF}, {}, ["ratio"], id="training_mode is false"),
    pytest.param(["", "t"], OFF, {"seed": 1}, [], id="no ratio, but a seed"),
    pytest.param(
        ["r", "t"], {"r": np.array(0, np.float32), **ON}, {}, ["ratio"], id="training that drops nothing"
    ),
]


@pytest.mark.parametrize(("inputs", "constants", "more", "stated"), INFERENCE)
@pytest.mark.parametrize("target", [11, 9, 7])
def test_inference(
    inputs: Sequence[str],
    constants: Mapping[str, Array],
    more: Mapping[str, Any],
    stated: Sequence[str],
    target: int,
    converted: Converted,
) -> None:
    model, feeds = _model(inputs, constants, **more)
    result = converted(model, target, feeds)
    assert op_types(result) == ["Dropout"]
    assert [each.name for each in result.graph.node[0].attribute] == stated


@pytest.mark.parametrize("target", [11, 9, 7])
def test_a_mask_is_all_true(target: int, converted: Converted) -> None:
    model, feeds = _model([], {}, ["y", "mask"])
    result = converted(model, target, feeds, [DATA, np.ones(DATA.shape, np.bool_)])
    assert op_types(result) == ["Dropout", "Cast", "Not", "Or"]


def test_a_mask_of_version_10_becomes_boolean(converted: Converted) -> None:
    model, feeds = _model([], {}, ["y", "mask"], 10)
    assert op_types(converted(model, 7, feeds)) == ["Dropout", "Cast"]


def test_a_mask_that_nothing_reads_is_left_out(converted: Converted) -> None:
    model, feeds = _model([], {}, ["y", "mask"], 10)
    del model.graph.output[1]
    assert list(converted(model, 9, feeds).graph.node[0].output) == ["y"]


def test_version_6_is_told_that_it_tests() -> None:
    model, feeds = _model([], {})
    (node,) = there_and_back(model, 6, feeds).graph.node
    assert {each.name: each.i for each in node.attribute} == {"is_test": 1}


@pytest.mark.parametrize("constants", [{**RATIO, **ON}, RATIO], ids=["true", "computed"])
def test_training_is_refused(constants: Mapping[str, Array], refusal: Refusing) -> None:
    model, _ = _model(["r", "t"], constants)
    found = refusal(model, 11)
    assert found.reason == "training_mode may be true; Dropout-10 never drops elements"


def test_training_stays_at_12() -> None:
    model, _ = _model(["r", "t"], {**RATIO, **ON})
    assert len(convert_version(model, 12).graph.node[0].input) == 3
