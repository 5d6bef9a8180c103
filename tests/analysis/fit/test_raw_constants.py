"""Constants as raw bytes, for runtimes that misread other fields."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper, numpy_helper

from opshift.analysis.fit.readable_constants import write_raw_constants
from opshift.model.offloaded_tensors import model_tensors

VALUES: dict[str, list[float]] = {
    "UINT32": [0, 1, 2**32 - 1],
    "UINT64": [0, 2**64 - 1],
    "INT8": [-128, -1, 127],
    "UINT16": [0, 65535],
    "INT32": [-(2**31), -1, 2**31 - 1],
    "INT64": [-(2**63), -1, 2**63 - 1],
    "BOOL": [0, 1],
    "FLOAT16": [-1.5, 65504, float("inf")],
    "BFLOAT16": [-1.5, float("nan")],
    "FLOAT8E4M3FN": [-448, 0.5],
    "FLOAT8E5M2": [-2, float("inf")],
}


@pytest.mark.parametrize("name", VALUES)
def test_raw_constants_keep_their_values(name: str) -> None:
    """All tensors are stored as raw bytes: of subgraphs, functions and their defaults, also sparse ones."""
    tensor = helper.make_tensor("t", onnx.TensorProto.DataType.Value(name), [len(VALUES[name])], VALUES[name])
    indices = helper.make_tensor("i", onnx.TensorProto.INT64, [len(VALUES[name])], range(len(VALUES[name])))
    sparse = helper.make_sparse_tensor(tensor, indices, [10])
    body = helper.make_graph([helper.make_node("Constant", [], ["b"], value=tensor)], "b", [], [])
    nodes = [
        helper.make_node("Constant", [], ["s"], sparse_value=sparse),
        helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
    ]
    graph = helper.make_graph(nodes, "g", [], [], [tensor], sparse_initializer=[sparse])
    function = helper.make_function(
        "l", "f", [], ["y"], [nodes[0]], [], attribute_protos=[helper.make_attribute("a", tensor)]
    )
    model = helper.make_model(graph, functions=[function])
    before = [numpy_helper.to_array(each) for each in model_tensors(model)]
    write_raw_constants(model, [name.lower()])
    after = [*model_tensors(model)]
    assert len(after) == 10
    for old, new in zip(before, after, strict=True):
        assert new.HasField("raw_data") == (new.data_type == tensor.data_type)
        assert [each.name for each, _ in new.ListFields() if each.name.endswith("_data")] == (
            ["raw_data"] if new.HasField("raw_data") else ["int64_data"]
        )
        read = numpy_helper.to_array(new)
        assert (read.dtype, read.tobytes()) == (old.dtype, old.tobytes())
