"""SequenceMap before 17: a loop around its body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, assert_equal, op_types, run

from opshift import ConversionRefused, convert_version

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
ELEMENTS = [np.arange(3, dtype=np.float32), np.ones(2, np.float32), np.zeros(0, np.float32)]
HERS = [np.full(3, 10, np.float32), np.full(1, 20, np.float32), np.full(1, 30, np.float32)]
OFFSET = np.array([100], np.float32)


def _sequence(name: str, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, kind, None)


def _tensor(name: str, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, [None])


def _model(
    body: Sequence[onnx.NodeProto],
    others: Sequence[onnx.ValueInfoProto],
    results: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    """The elements of `s` are `e` in the body, those of other inputs have their names with an underscore."""
    inner = [_tensor("e"), *(_tensor(f"{each.name}_") for each in others)]
    graph = helper.make_graph(list(body), "body", inner, list(results), list(initializers))
    outputs = [f"{each.name}s" for each in results]
    inputs = ["s", *(each.name for each in others)]
    node = helper.make_node("SequenceMap", inputs, outputs, name="node", body=graph)
    kinds = [each.type.tensor_type.elem_type for each in results]
    declared = [_sequence(name, kind) for name, kind in zip(outputs, kinds, strict=True)]
    whole = helper.make_graph([node], "test", [_sequence("s"), *others], declared)
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


ADD = helper.make_node("Add", ["e", "t_"], ["r"])
CASES = [
    pytest.param(_model([ADD], [_tensor("t")], [_tensor("r")]), {"t": OFFSET}, id="a tensor for every turn"),
    pytest.param(_model([ADD], [_sequence("t")], [_tensor("r")]), {"t": HERS}, id="a second sequence"),
    pytest.param(
        _model(
            [helper.make_node("Neg", ["e"], ["r"]), helper.make_node("Shape", ["e"], ["l"])],
            [],
            [_tensor("r"), _tensor("l", INT64)],
        ),
        {},
        id="two results of different types",
    ),
    pytest.param(_model([], [], [_tensor("e")]), {}, id="the element itself"),
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
        id="a constant of its own and a value from outside",
    ),
]


@pytest.mark.parametrize("target", [16, 15, 13])
@pytest.mark.parametrize("elements", [ELEMENTS, []], ids=["some", "none"])
@pytest.mark.parametrize(("model", "others"), CASES)
def test_elements_take_turns(
    model: onnx.ModelProto, others: dict[str, Array], elements: list[Array], target: int
) -> None:
    feeds: dict[str, Any] = {"s": elements, **others}
    result = convert_version(model, target)
    onnx.checker.check_model(result)
    assert op_types(result).count("Loop") == 1
    assert [each.name for each in result.graph.node if each.name] == ["node"]
    for found, expected in zip(run(result, feeds), run(model, feeds), strict=True):
        assert_equal(found, expected)


def test_the_body_is_converted_too() -> None:
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


def test_loops_carry_no_sequences_before_13() -> None:
    model = _model([ADD], [_tensor("t")], [_tensor("r")])
    with pytest.raises(
        ConversionRefused, match=r"seq\(tensor\(float\)\), which ai.onnx.Loop:11 does not support"
    ):
        convert_version(model, 12)


def test_a_result_without_a_type_is_refused() -> None:
    model = _model([ADD], [_tensor("t")], [_tensor("r")])
    model.graph.node[0].attribute[0].g.output[0].ClearField("type")
    with pytest.raises(ConversionRefused, match="the element type of 'r', an output of the body, is unknown"):
        convert_version(model, 16)
