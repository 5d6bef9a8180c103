"""IR version of models whose conversion removes initializers of newer types."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import assert_equal, run, run_reference

import opshift

SHAPE = (8, 4)


def blocked_model(element_type: int, *, reads: int = 1, opset: int = 21) -> onnx.ModelProto:
    """Return a model with weights of a narrow type that some nodes dequantize in blocks."""
    rng = np.random.default_rng(5)
    weight = helper.make_tensor("w", element_type, SHAPE, rng.integers(0, 7, SHAPE).ravel().tolist())
    scale = numpy_helper.from_array(rng.random((2, 4), np.float32), "s")
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], [f"d{n}"], axis=0, block_size=4)
        for n in range(reads)
    ]
    nodes.append(helper.make_node("MatMul", ["x", "d0"], ["y"]))
    x, y = (helper.make_tensor_value_info(n, 1, ["N", size]) for n, size in (("x", 8), ("y", 4)))
    outputs = [y, *(helper.make_tensor_value_info(f"d{n}", 1, SHAPE) for n in range(1, reads))]
    graph = helper.make_graph(nodes, "g", [x], outputs, [weight, scale])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.mark.parametrize("element_type", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("reads", [1, 2])
def test_lowers_the_ir_version_after_narrow_weights_became_wider(element_type: int, reads: int) -> None:
    model = blocked_model(element_type, reads=reads)
    model.graph.value_info.append(helper.make_tensor_value_info("w", element_type, SHAPE))
    found = opshift.convert_version(model, 17)
    assert found.ir_version == 8
    assert element_type not in {each.data_type for each in found.graph.initializer}
    onnx.checker.check_model(found, full_check=True)
    feeds = {"x": np.random.default_rng(1).random((3, 8), np.float32)}
    assert_equal(run(found, feeds), run_reference(model, feeds))


def test_keeps_the_ir_version_of_a_weight_with_a_doc_string() -> None:
    model = blocked_model(TensorProto.INT4)
    model.graph.initializer[0].doc_string = "kept"
    found = opshift.convert_version(model, 17)
    assert found.ir_version == 10
    assert "w" in {each.name for each in found.graph.initializer}
