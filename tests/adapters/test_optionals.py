"""OptionalHasElement and OptionalGetElement: plain values where only optional ones are accepted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import build, op_types

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
FEEDS = {"x": np.ones(2, np.float32)}


@pytest.mark.parametrize(
    ("inputs", "answer"),
    [
        pytest.param(["x"], True, id="a tensor is there"),
        pytest.param([""], False, id="an input left out is not"),
        pytest.param([], False, id="nor is none"),
    ],
)
@pytest.mark.parametrize("target", [17, 15, 13, 7])
def test_whether_there_is_an_element(
    inputs: list[str], answer: bool, target: int, converted: Converted
) -> None:
    node = helper.make_node("OptionalHasElement", inputs, ["y"], name="node")
    model = build([node], FEEDS, {"y": TensorProto.BOOL}, 18)
    assert op_types(converted(model, target, FEEDS, [np.array(answer)])) == ["Identity"]


@pytest.mark.parametrize("target", [17, 13, 7])
def test_a_tensor_is_what_it_holds(target: int, converted: Converted) -> None:
    node = helper.make_node("OptionalGetElement", ["x"], ["y"], name="node")
    assert op_types(converted(build([node], FEEDS, ["y"], 18), target, FEEDS)) == ["Identity"]


@pytest.mark.parametrize("op_type", ["OptionalHasElement", "OptionalGetElement"])
def test_optional_values_stay(op_type: str) -> None:
    element = TensorProto.BOOL if op_type == "OptionalHasElement" else TensorProto.FLOAT
    nodes = [
        helper.make_node("Optional", ["x"], ["o"]),
        helper.make_node(op_type, ["o"], ["y"], name="node"),
    ]
    model = build(nodes, FEEDS, {"y": element}, 18)
    held = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    model.graph.value_info.append(helper.make_value_info("o", helper.make_optional_type_proto(held)))
    assert op_types(convert_version(model, 15)) == ["Optional", op_type]


def test_an_unknown_value_is_refused(refusal: Refusing) -> None:
    nodes = [
        helper.make_node("Anything", ["x"], ["o"], domain="com.acme"),
        helper.make_node("OptionalHasElement", ["o"], ["y"], name="node"),
    ]
    model = build(nodes, FEEDS, {"y": TensorProto.BOOL}, {"": 18, "com.acme": 1})
    assert refusal(model, 17).reason == "the type of 'o' is unknown, so it may be optional or not"
