"""Calls do not keep arguments that the converted body of the function does not read any more."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.calls import call, function, node
from support.execution import Feeds, assert_equal, build, run

from opshift import convert_version

FEEDS = {"s": np.array([1, 0.5, 0.25], np.float32)}
DATA = np.arange(12).reshape(3, 4) % 8
EXPECTED = ((DATA - np.array([[1], [2], [3]])) * FEEDS["s"][:, None]).astype(np.float32)
DEQUANTIZE = node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=0)


def _model(dtype: type, *functions: onnx.FunctionProto, calls: list[onnx.NodeProto]) -> onnx.ModelProto:
    model = build(calls, FEEDS, ["y"], {"": 21, "local": 1}, ir_version=10)
    constants: Feeds = {"q": DATA.astype(dtype), "z": np.array([1, 2, 3]).astype(dtype)}
    model.graph.initializer.extend(numpy_helper.from_array(*each[::-1]) for each in constants.items())
    model.functions.extend(functions)
    return model


INNER = function("F", [DEQUANTIZE], 21, inputs=("q", "s", "z"), outputs=("y",))
OUTER = function("G", [call("F", ["q", "s", "z"], ["y"])], 21, inputs=("z", "q", "s"), outputs=("y",))


@pytest.mark.parametrize("target", [18, 13])
@pytest.mark.parametrize("dtype", [ml_dtypes.uint4, ml_dtypes.int4])
@pytest.mark.parametrize(
    ("functions", "called"),
    [
        pytest.param((INNER,), call("F", ["q", "s", "z"], ["y"]), id="function"),
        pytest.param((INNER, OUTER), call("G", ["z", "q", "s"], ["y"]), id="function that calls another"),
    ],
)
def test_omits_arguments_that_became_constants_of_the_body(
    functions: tuple[onnx.FunctionProto, ...], called: onnx.NodeProto, dtype: type, target: int
) -> None:
    model = _model(dtype, *functions, calls=[called])
    result = convert_version(model, target)
    assert_equal(run(result, FEEDS), [EXPECTED])
    assert [name for name in result.graph.node[0].input if name] == ["s"]
    assert not result.graph.initializer


def test_omits_arguments_of_calls_in_branches() -> None:
    branches = {
        f"{side}_branch": helper.make_graph(
            [call("F", ["q", "s", "z"], [side])],
            side,
            [],
            [helper.make_tensor_value_info(side, TensorProto.FLOAT, None)],
        )
        for side in ("then", "else")
    }
    model = _model(ml_dtypes.uint4, INNER, calls=[node("If", ["c"], ["y"], **branches)])
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "c"))
    result = convert_version(model, 18)
    assert_equal(run(result, FEEDS), run(model, FEEDS))
    assert [each.name for each in result.graph.initializer] == ["c"]


def test_keeps_initializers_with_other_readers() -> None:
    model = _model(np.uint8, INNER, calls=[call("F", ["q", "s", "z"], ["y"])])
    model.graph.node.append(node("Cast", ["q"], ["other"], to=TensorProto.FLOAT))
    model.graph.output.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, None))
    result = convert_version(model, 13)
    assert "q" in [each.name for each in result.graph.initializer]
    assert_equal(run(result, FEEDS), run(model, FEEDS))


def test_reversible_conversions_keep_all_arguments() -> None:
    model = _model(ml_dtypes.uint4, INNER, calls=[call("F", ["q", "s", "z"], ["y"])])
    result = convert_version(model, 18, reversible=True)
    restored = convert_version(result, 21)
    assert list(result.graph.node[0].input) == ["q", "s", "z"]
    assert_equal(run(restored, FEEDS), run(model, FEEDS))


def test_keeps_initializers_with_a_doc_string_or_a_training_binding() -> None:
    model = _model(ml_dtypes.uint4, INNER, calls=[call("F", ["q", "s", "z"], ["y"])])
    model.graph.initializer[0].doc_string = "the data"
    binding = model.training_info.add().update_binding.add()
    binding.key, binding.value = "z", "z"
    result = convert_version(model, 18, ir_version="keep")
    assert [each.name for each in result.graph.initializer] == ["q", "z"]


def test_keeps_arguments_that_the_function_never_read() -> None:
    unused = function("F", [DEQUANTIZE], 21, inputs=("q", "s", "z", "unused"), outputs=("y",))
    model = _model(ml_dtypes.uint4, unused, calls=[call("F", ["q", "s", "z", "s"], ["y"])])
    result = convert_version(model, 18)
    assert list(result.graph.node[0].input) == ["", "s", "", "s"]
    assert_equal(run(result, FEEDS), [EXPECTED])
