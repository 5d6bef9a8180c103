"""Upgrades of Split: sizes move to an input, and num_outputs is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, assert_equal, build, op_types, run

from opshift import convert_version

DATA = np.arange(24, dtype=np.float32).reshape(4, 6)


def _model(
    opset: int, parts: int, inputs: Sequence[str] = ("x",), *, initializers: Any = None, **attributes: Any
) -> onnx.ModelProto:
    outputs = [f"y{position}" for position in range(parts)]
    node = helper.make_node("Split", inputs, outputs, name="node", **attributes)
    return build([node], {"x": DATA}, outputs, opset, initializers=initializers)


def _attributes(model: onnx.ModelProto) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in model.graph.node[0].attribute}


SIZES = np.array([1, 3, 2])


@pytest.mark.parametrize("target", [2, 11, 13, 18])
@pytest.mark.parametrize("axis", [0, 1])
def test_upgrades_equal_parts_of_split_1(axis: int, target: int) -> None:
    convert_and_check(_model(1, 2, axis=axis), target, {"x": DATA}, np.split(DATA, 2, axis))


@pytest.mark.parametrize("target", [2, 11, 13, 18])
def test_writes_the_default_axis_of_split_1(target: int) -> None:
    result = convert_and_check(_model(1, 2), target, {"x": DATA}, np.split(DATA, 2))
    assert _attributes(result)["axis"] == 0


@pytest.mark.parametrize("target", [2, 11, 13, 18])
@pytest.mark.parametrize(
    ("inputs", "initializers", "attributes"),
    [
        pytest.param(["x"], {}, {"split": [1, 3, 2]}, id="attribute"),
        pytest.param(["x", "s"], {"s": SIZES.astype(np.float32)}, {}, id="input with the type of the data"),
        pytest.param(["x", ""], {}, {"split": [1, 3, 2]}, id="attribute and empty input name"),
    ],
)
def test_upgrades_sizes_of_split_1(
    inputs: list[str], initializers: dict[str, Array], attributes: Any, target: int
) -> None:
    model = _model(1, 3, inputs, initializers=initializers, axis=1, **attributes)
    result = convert_and_check(model, target, {"x": DATA}, np.split(DATA, np.cumsum(SIZES)[:-1], 1))
    if target < 13:
        assert _attributes(result) == {"axis": 1, "split": [1, 3, 2]}
        assert list(result.graph.node[0].input) == ["x"]


def test_folds_sizes_of_split_1_in_an_input() -> None:
    node = helper.make_node("Split", ["a", "s"], ["y0", "y1"], axis=1)
    initializers = {"a": DATA, "s": np.array([1, 5], np.float32)}
    folded = convert_version(build([node], {}, ["y0", "y1"], 1, initializers=initializers), 13, fold=True)
    assert "Split" not in op_types(folded)
    assert_equal(run(folded, {}), np.split(DATA, [1], 1))


def test_refuses_computed_sizes() -> None:
    model = _model(1, 3, ["x", "s"])
    model.graph.input.append(helper.make_tensor_value_info("s", 1, [3]))
    refused = refusal_of(model, 2)
    assert refused.reason == "input split ('s') is not a constant"
    assert refused.remedy == "make the value an initializer that is not a graph input"


@pytest.mark.parametrize("opset", [2, 11])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_moves_sizes_to_an_input_at_opset_13(opset: int, axis: int) -> None:
    if axis < 0 and opset < 11:
        return
    sizes = [1, 3] if axis == 0 else [1, 3, 2]
    model = _model(opset, len(sizes), axis=axis, split=sizes)
    for target in (13, 18, 21):
        result = convert_and_check(model, target, {"x": DATA})
        assert "split" not in _attributes(result)
        assert "num_outputs" not in _attributes(result)
        assert len(result.graph.node[0].input) == 2


@pytest.mark.parametrize("opset", [2, 11, 13])
@pytest.mark.parametrize(("axis", "parts"), [(0, 1), (0, 2), (1, 3), (1, 6)])
def test_sets_num_outputs_at_opset_18(opset: int, axis: int, parts: int) -> None:
    model = _model(opset, parts, axis=axis)
    for target in (18, 21):
        result = convert_and_check(model, target, {"x": DATA})
        assert _attributes(result) == {"axis": axis, "num_outputs": parts}


@pytest.mark.parametrize(
    ("inputs", "has_num_outputs"), [(["x", "s"], False), (["x", ""], True)], ids=["sizes", "no sizes"]
)
def test_sets_num_outputs_only_without_sizes(inputs: list[str], has_num_outputs: bool) -> None:
    initializers = {"s": np.array([2, 2, 2])} if has_num_outputs is False else None
    result = convert_and_check(_model(13, 3, inputs, initializers=initializers, axis=1), 18, {"x": DATA})
    assert ("num_outputs" in _attributes(result)) == has_num_outputs
