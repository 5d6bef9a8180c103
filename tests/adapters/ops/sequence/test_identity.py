"""Downgrades of Identity of a sequence below opset 14."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.execution import assert_equal, op_types, run

from opshift import ConversionRefused, convert_version


def _model(element_type: int) -> onnx.ModelProto:
    values = [helper.make_tensor_sequence_value_info(name, element_type, None) for name in "sy"]
    node = helper.make_node("Identity", ["s"], ["y"], name="node")
    graph = helper.make_graph([node], "test", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


@pytest.mark.parametrize("target", [13, 11])
@pytest.mark.parametrize(
    ("element_type", "elements"),
    [
        pytest.param(TensorProto.FLOAT, [np.ones(2, np.float32), np.zeros((3, 1), np.float32)], id="floats"),
        pytest.param(TensorProto.INT64, [], id="empty sequence"),
        pytest.param(TensorProto.STRING, [np.array(["a", "b"])], id="strings"),
    ],
)
def test_copies_a_sequence_by_insert_and_erase(element_type: int, elements: list[Any], target: int) -> None:
    model = _model(element_type)
    feeds: dict[str, Any] = {"s": elements}
    result = convert_version(model, target)
    onnx.checker.check_model(result)
    assert op_types(result) == ["SequenceInsert", "SequenceErase"]
    assert_equal(run(result, feeds)[0], run(model, feeds)[0])


def test_refuses_sequences_before_opset_11() -> None:
    with pytest.raises(ConversionRefused, match="opset 10 has no sequences of tensors"):
        convert_version(_model(TensorProto.FLOAT), 10)
