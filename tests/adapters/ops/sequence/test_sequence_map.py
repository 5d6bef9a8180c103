"""Downgrades of SequenceMap below opset 17 to a loop over its body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.execution import Array, assert_equal, op_types, run

from opshift import ConversionRefused, convert_version

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
ELEMENTS = [np.arange(3, dtype=np.float32), np.ones(2, np.float32), np.zeros(0, np.float32)]
OTHER_ELEMENTS = [np.full(3, 10, np.float32), np.full(1, 20, np.float32), np.full(1, 30, np.float32)]
OFFSET = np.array([100], np.float32)


def _sequence(name: str, element_type: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, element_type, None)


def _tensor(name: str, element_type: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, [None])


def _model(
    body: Sequence[onnx.NodeProto],
    other_inputs: Sequence[onnx.ValueInfoProto],
    body_outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    """Return a SequenceMap over `s`; its body inputs are `e` and the other names with an underscore."""
    body_inputs = [_tensor("e"), *(_tensor(f"{each.name}_") for each in other_inputs)]
    body_graph = helper.make_graph(list(body), "body", body_inputs, list(body_outputs), list(initializers))
    outputs = [f"{each.name}s" for each in body_outputs]
    inputs = ["s", *(each.name for each in other_inputs)]
    node = helper.make_node("SequenceMap", inputs, outputs, name="node", body=body_graph)
    element_types = [each.type.tensor_type.elem_type for each in body_outputs]
    declared = [
        _sequence(name, element_type) for name, element_type in zip(outputs, element_types, strict=True)
    ]
    graph = helper.make_graph([node], "test", [_sequence("s"), *other_inputs], declared)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


ADD = helper.make_node("Add", ["e", "t_"], ["r"])
CASES = [
    pytest.param(_model([ADD], [_tensor("t")], [_tensor("r")]), {"t": OFFSET}, id="additional tensor"),
    pytest.param(
        _model([ADD], [_sequence("t")], [_tensor("r")]), {"t": OTHER_ELEMENTS}, id="second sequence"
    ),
    pytest.param(
        _model(
            [helper.make_node("Neg", ["e"], ["r"]), helper.make_node("Shape", ["e"], ["l"])],
            [],
            [_tensor("r"), _tensor("l", INT64)],
        ),
        {},
        id="two outputs of different types",
    ),
    pytest.param(_model([], [], [_tensor("e")]), {}, id="element as output"),
    pytest.param(
        _model(
            [
                helper.make_node("ReduceSum", ["e", "axes"], ["k"]),
                helper.make_node("Mul", ["k", "outer"], ["r"]),
            ],
            [_tensor("outer")],
            [_tensor("r")],
            [helper.make_tensor("axes", INT64, [1], [0])],
        ),
        {"outer": OFFSET},
        id="body initializer and outer value",
    ),
]


@pytest.mark.parametrize("target", [16, 15, 13])
@pytest.mark.parametrize("elements", [ELEMENTS, []], ids=["three elements", "no elements"])
@pytest.mark.parametrize(("model", "other_feeds"), CASES)
def test_rewrites_sequence_map_to_loop(
    model: onnx.ModelProto, other_feeds: dict[str, Array], elements: list[Array], target: int
) -> None:
    feeds: dict[str, Any] = {"s": elements, **other_feeds}
    result = convert_version(model, target)
    onnx.checker.check_model(result)
    assert op_types(result).count("Loop") == 1
    assert [each.name for each in result.graph.node if each.name] == ["node"]
    for found, expected in zip(run(result, feeds), run(model, feeds), strict=True):
        assert_equal(found, expected)


def test_converts_the_body() -> None:
    sums = [helper.make_node("ReduceSum", ["e", "axes"], ["r"])]
    axes = helper.make_tensor("axes", INT64, [1], [0])
    model = _model([*sums], [], [_tensor("r")], [axes])
    model.opset_import[0].version = 18
    body = model.graph.node[0].attribute[0].g
    body.node[0].op_type = "ReduceMax"
    result = convert_version(model, 13)
    (loop,) = (each for each in result.graph.node if each.op_type == "Loop")
    (inner,) = (each for each in loop.attribute[0].g.node if each.op_type == "ReduceMax")
    assert inner.input == ["e"]
    feeds: dict[str, Any] = {"s": ELEMENTS[:2]}
    assert_equal(run(result, feeds)[0], run(model, feeds)[0])


def test_refuses_sequence_map_before_opset_13() -> None:
    model = _model([ADD], [_tensor("t")], [_tensor("r")])
    reason = r"the operator has no equivalent for seq\(tensor\(float\)\) below opset 13"
    with pytest.raises(ConversionRefused, match=reason):
        convert_version(model, 12)


def test_refuses_body_outputs_of_unknown_type() -> None:
    model = _model([ADD], [_tensor("t")], [_tensor("r")])
    model.graph.node[0].attribute[0].g.output[0].ClearField("type")
    with pytest.raises(ConversionRefused, match="the element type of 'r', an output of the body, is unknown"):
        convert_version(model, 16)
