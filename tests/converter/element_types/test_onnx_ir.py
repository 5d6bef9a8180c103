"""Models of onnx_ir get other element types; tensors of other types are shared with the given model."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from opshift import convert_types

onnx_ir = pytest.importorskip("onnx_ir")


@pytest.mark.parametrize("size", [4, 300_000])
def test_converts_the_tensors_of_a_type(size: int) -> None:
    x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, [size]) for each in "xy")
    nodes = [helper.make_node("Add", ["x", "w"], ["a"]), helper.make_node("Gather", ["a", "i"], ["y"])]
    weight, index = np.linspace(-3, 3, size, dtype=np.float32), np.arange(size)
    tensors = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(index, "i")]
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    model = onnx_ir.from_proto(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    )
    result = convert_types(model, "float=float16", allow="approximate")
    found = {name: value.const_value for name, value in result.graph.initializers.items()}
    np.testing.assert_array_equal(found["w"].numpy(), weight.astype(np.float16))
    assert found["i"] is model.graph.initializers["i"].const_value
    np.testing.assert_array_equal(model.graph.initializers["w"].const_value.numpy(), weight)
