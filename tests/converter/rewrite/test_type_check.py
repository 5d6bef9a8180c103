"""Emitted nodes are checked against the types of their operator versions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.running import build

from opshift import ConversionRefused, convert_version

REMEDY = "cast around the node to a supported type, if range and precision allow it"


def _model(
    nodes: list[onnx.NodeProto], inputs: dict[str, int], output: int, opset: int, **constants: np.ndarray
) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, kind, [2, 3]) for name, kind in inputs.items()]
    initializers = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    result = helper.make_tensor_value_info("y", output, None)
    graph = helper.make_graph(nodes, "g", values, [result], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _bfloat16_mod() -> onnx.ModelProto:
    node = helper.make_node("Mod", ["x", "z"], ["y"], fmod=1)
    return _model([node], dict.fromkeys("xz", TensorProto.BFLOAT16), TensorProto.BFLOAT16, 13)


def _complex_non_zero(element_type: int = TensorProto.COMPLEX64) -> onnx.ModelProto:
    return _model([helper.make_node("NonZero", ["x"], ["y"])], {"x": element_type}, TensorProto.INT64, 13)


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("element_type", [TensorProto.COMPLEX64, TensorProto.COMPLEX128])
def test_refuses_non_zero_of_complex(target: int, element_type: int) -> None:
    refusal = refusal_of(_complex_non_zero(element_type), target)
    assert "does not support tensor(complex" in refusal.reason
    assert refusal.remedy == REMEDY


@pytest.mark.parametrize("target", [7, 8, 9])
def test_result_of_mod_in_bfloat16_is_refused_or_legal(target: int) -> None:
    model = _bfloat16_mod()
    try:
        result = convert_version(model, target, allow="approximate")
    except ConversionRefused as error:
        (refusal,) = error.refusals
        assert "bfloat16" in refusal.reason
        assert refusal.remedy
    else:
        onnx.checker.check_model(result, full_check=True)


@pytest.mark.parametrize("is_declared", [True, False])
def test_reads_the_types_of_computed_values(*, is_declared: bool) -> None:
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("NonZero", ["a"], ["y"]),
    ]
    model = _model(nodes, {"x": TensorProto.COMPLEX64}, TensorProto.INT64, 13)
    if is_declared:
        model.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.COMPLEX64, [2, 3]))
    assert "tensor(complex64)" in refusal_of(model, 8).reason


def test_one_cached_rewrite_serves_only_supported_types() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["y"]),
        helper.make_node("NonZero", ["z"], ["w"]),
        helper.make_node("NonZero", ["x"], ["v"]),
    ]
    model = _model(nodes, {"x": TensorProto.FLOAT, "z": TensorProto.COMPLEX64}, TensorProto.INT64, 13)
    refusal = refusal_of(model, 8)
    assert refusal.place == "graph, node NonZero -> w"


def test_converts_supported_types() -> None:
    data = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
    model = build([helper.make_node("NonZero", ["x"], ["y"])], {"x": data}, {"y": TensorProto.INT64}, 13)
    convert_and_check(model, 8, {"x": data})


def test_refuses_an_attribute_that_the_emitted_operator_does_not_define() -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", unknown=1)
    model = _model([node], {"x": TensorProto.FLOAT}, TensorProto.FLOAT, 13, s=np.ones(2, np.float32))
    assert "'unknown'" in refusal_of(model, 11).reason
