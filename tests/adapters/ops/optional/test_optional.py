"""Downgrades of OptionalHasElement and OptionalGetElement with inputs that are not optionals."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import assert_equal, build, op_types, run_reference

from opshift import ConversionRefused, convert_version

FEEDS = {"x": np.ones(2, np.float32)}


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        pytest.param(["x"], True, id="tensor"),
        pytest.param([""], False, id="omitted input"),
        pytest.param([], False, id="no inputs"),
    ],
)
@pytest.mark.parametrize("target", [17, 15, 13, 7])
def test_optional_has_element_of_a_tensor_becomes_a_constant(
    inputs: list[str], expected: bool, target: int
) -> None:
    node = helper.make_node("OptionalHasElement", inputs, ["y"], name="node")
    model = build([node], FEEDS, {"y": TensorProto.BOOL}, 18)
    assert op_types(convert_and_check(model, target, FEEDS, [np.array(expected)])) == ["Identity"]


@pytest.mark.parametrize("target", [17, 13, 7])
def test_optional_get_element_of_a_tensor_becomes_identity(target: int) -> None:
    node = helper.make_node("OptionalGetElement", ["x"], ["y"], name="node")
    assert op_types(convert_and_check(build([node], FEEDS, ["y"], 18), target, FEEDS)) == ["Identity"]


@pytest.mark.parametrize("opset", [18, 21, 28])
@pytest.mark.parametrize(
    ("op_type", "inputs"), [("HasElement", []), ("HasElement", ["x"]), ("GetElement", ["x"])]
)
def test_replaces_nodes_with_tensors_if_they_are_unwanted(
    op_type: str, inputs: list[str], opset: int
) -> None:
    node = helper.make_node(f"Optional{op_type}", inputs, ["y"], name="node")
    element_type = TensorProto.BOOL if op_type == "HasElement" else TensorProto.FLOAT
    model = build([node], FEEDS, {"y": element_type}, opset, ir_version=10)
    result = convert_version(model, opset, without=f"ai.onnx.Optional{op_type}")
    assert op_types(result) == ["Identity"]
    assert_equal(
        run_reference(result, FEEDS), [FEEDS["x"] if element_type == TensorProto.FLOAT else inputs == ["x"]]
    )


@pytest.mark.parametrize("op_type", ["OptionalHasElement", "OptionalGetElement"])
def test_refuses_unwanted_nodes_with_optional_inputs(op_type: str) -> None:
    nodes = [helper.make_node("Optional", ["x"], ["o"]), helper.make_node(op_type, ["o"], ["y"])]
    element_type = TensorProto.BOOL if op_type == "OptionalHasElement" else TensorProto.FLOAT
    model = build(nodes, FEEDS, {"y": element_type}, 18)
    with pytest.raises(ConversionRefused, match=f"no other operators can replace ai.onnx.{op_type}"):
        convert_version(model, 18, without=f"ai.onnx.{op_type}")


@pytest.mark.parametrize("op_type", ["OptionalHasElement", "OptionalGetElement"])
def test_keeps_nodes_with_optional_inputs(op_type: str) -> None:
    element_type = TensorProto.BOOL if op_type == "OptionalHasElement" else TensorProto.FLOAT
    nodes = [
        helper.make_node("Optional", ["x"], ["o"]),
        helper.make_node(op_type, ["o"], ["y"], name="node"),
    ]
    model = build(nodes, FEEDS, {"y": element_type}, 18)
    content_type = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    model.graph.value_info.append(helper.make_value_info("o", helper.make_optional_type_proto(content_type)))
    assert op_types(convert_version(model, 15)) == ["Optional", op_type]


@pytest.mark.parametrize("target", [21, 17, 15])
@pytest.mark.parametrize(
    "content",
    [
        helper.make_tensor_type_proto(TensorProto.INT64, [2]),
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)),
    ],
    ids=["tensor", "sequence"],
)
def test_the_attribute_type_is_the_type_of_an_empty_optional(content: onnx.TypeProto, target: int) -> None:
    nodes = [
        helper.make_node("Optional", [], ["o"], type=content),
        helper.make_node("OptionalHasElement", ["o"], ["y"], name="node"),
    ]
    model = build(nodes, {}, {"y": TensorProto.BOOL}, 18)
    assert op_types(convert_and_check(model, target, {}, [np.array(False)])) == [
        "Optional",
        "OptionalHasElement",
    ]


def test_refuses_inputs_of_unknown_type() -> None:
    nodes = [
        helper.make_node("Anything", ["x"], ["o"], domain="com.acme"),
        helper.make_node("OptionalHasElement", ["o"], ["y"], name="node"),
    ]
    model = build(nodes, FEEDS, {"y": TensorProto.BOOL}, {"": 18, "com.acme": 1})
    assert refusal_of(model, 17).reason == "the type of 'o' is unknown, so it may be optional or not"
