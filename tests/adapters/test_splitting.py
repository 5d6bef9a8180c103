"""Split: where the sizes of the parts stand, and how their number is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
DATA = np.arange(24, dtype=np.float32).reshape(4, 6)


def _model(
    opset: int, parts: int, inputs: Sequence[str] = ("x",), *, given: Any = None, **attributes: Any
) -> onnx.ModelProto:
    outputs = [f"y{position}" for position in range(parts)]
    node = helper.make_node("Split", inputs, outputs, name="node", **attributes)
    return build([node], {"x": DATA}, outputs, opset, initializers=given)


def _stated(model: onnx.ModelProto) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in model.graph.node[0].attribute}


SIZES = np.array([1, 3, 2])


@pytest.mark.parametrize("target", [2, 11, 13, 18])
@pytest.mark.parametrize("axis", [0, 1])
def test_equal_parts_of_version_1(axis: int, target: int, converted: Converted) -> None:
    converted(_model(1, 2, axis=axis), target, {"x": DATA}, np.split(DATA, 2, axis))


@pytest.mark.parametrize("target", [2, 11, 13, 18])
def test_an_axis_that_version_1_leaves_out_is_the_first(target: int, converted: Converted) -> None:
    result = converted(_model(1, 2), target, {"x": DATA}, np.split(DATA, 2))
    assert _stated(result)["axis"] == 0


@pytest.mark.parametrize("target", [2, 11, 13, 18])
@pytest.mark.parametrize(
    ("inputs", "given", "attributes"),
    [
        pytest.param(["x"], {}, {"split": [1, 3, 2]}, id="an attribute"),
        pytest.param(["x", "s"], {"s": SIZES.astype(np.float32)}, {}, id="an input of the data's type"),
        pytest.param(["x", ""], {}, {"split": [1, 3, 2]}, id="an attribute, and an input without a name"),
    ],
)
def test_sizes_of_version_1(
    inputs: list[str], given: dict[str, Array], attributes: Any, target: int, converted: Converted
) -> None:
    model = _model(1, 3, inputs, given=given, axis=1, **attributes)
    result = converted(model, target, {"x": DATA}, np.split(DATA, np.cumsum(SIZES)[:-1], 1))
    if target < 13:
        assert _stated(result) == {"axis": 1, "split": [1, 3, 2]}
        assert list(result.graph.node[0].input) == ["x"]


def test_sizes_that_are_computed_are_refused(refusal: Refusing) -> None:
    model = _model(1, 3, ["x", "s"])
    model.graph.input.append(helper.make_tensor_value_info("s", 1, [3]))
    found = refusal(model, 2)
    assert found.reason == "input split ('s') is not a constant"
    assert found.remedy == "make it an initializer that is not a graph input"


@pytest.mark.parametrize("opset", [2, 11])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sizes_become_an_input_at_13(opset: int, axis: int, converted: Converted) -> None:
    if axis < 0 and opset < 11:
        return
    sizes = [1, 3] if axis == 0 else [1, 3, 2]
    model = _model(opset, len(sizes), axis=axis, split=sizes)
    for target in (13, 18, 21):
        result = converted(model, target, {"x": DATA})
        assert "split" not in _stated(result)
        assert "num_outputs" not in _stated(result)
        assert len(result.graph.node[0].input) == 2


@pytest.mark.parametrize("opset", [2, 11, 13])
@pytest.mark.parametrize(("axis", "parts"), [(0, 1), (0, 2), (1, 3), (1, 6)])
def test_equal_parts_are_counted_at_18(opset: int, axis: int, parts: int, converted: Converted) -> None:
    model = _model(opset, parts, axis=axis)
    for target in (18, 21):
        result = converted(model, target, {"x": DATA})
        assert _stated(result) == {"axis": axis, "num_outputs": parts}


@pytest.mark.parametrize(
    ("inputs", "counted"), [(["x", "s"], False), (["x", ""], True)], ids=["sizes", "no sizes"]
)
def test_parts_are_counted_only_without_sizes(inputs: list[str], counted: bool, converted: Converted) -> None:
    given = {"s": np.array([2, 2, 2])} if counted is False else None
    result = converted(_model(13, 3, inputs, given=given, axis=1), 18, {"x": DATA})
    assert ("num_outputs" in _stated(result)) == counted
