"""Inferred types, shapes and constants of all values, compared with runs of the model."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.shape_computations import random_graph

import opshift

ODD = ("ReduceMax", "ReduceMin", "Slice")

MODEL = onnx.parser.parse_model("""
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
example (float[N, 3] x, bool c) => (float[N, 3] y, seq(float[N, 3]) s) <float[3] w = {1, 2, 3}> {
    a = Add (x, w)
    shape = Shape (w)
    b = local.Twice (a)
    y = If (c) <
        then_branch = yes () => (float[N, 3] p) { p = Relu (b) },
        else_branch = no () => (float[N, 3] q) { q = Neg (b) }
    >
    s = SequenceConstruct (y)
}
<domain: "local", opset_import: ["" : 21]>
Twice (v) => (r) { r = Add (v, v) }
""")


def test_describes_all_values() -> None:
    found = opshift.infer(MODEL)
    texts = {name: str(value) for name, value in found.values.items()}
    assert texts == {
        "x": "tensor(float)[?, 3]",
        "c": "tensor(bool)[]",
        "w": "tensor(float)[3] = [1.0, 2.0, 3.0]",
        "a": "tensor(float)[?, 3]",
        "shape": "tensor(int64)[1] = [3]",
        "b": "tensor(float)[?, 3]",
        "y": "tensor(float)[?, 3]",
        "s": "seq(tensor(float))",
    }
    assert set(found.graphs) == {
        "graph", "function local.Twice",
        "graph, node If -> y, then_branch", "graph, node If -> y, else_branch",
    }  # fmt: skip
    assert "tensor(float)[?, 3]" in str(found)


def test_declared_shapes_are_facts() -> None:
    found = opshift.infer(MODEL, shapes={"x": (2, 3)})
    assert found.values["y"].shape == (2, 3)


def test_weights_are_not_decoded() -> None:
    weights = numpy_helper.from_array(np.zeros(2000, np.float32), "w")
    node = helper.make_node("Identity", ["w"], ["y"])
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2000])
    model = helper.make_model(helper.make_graph([node], "g", [], [output], [weights]))
    assert opshift.infer(model).values["w"] == opshift.InferredValue("tensor(float)", (2000,))


@pytest.mark.parametrize("seed", range(40))
def test_agrees_with_runs_of_random_computations(seed: int) -> None:
    graph = random_graph(seed)
    # Here onnxruntime deviates from the definition if a tensor is empty, or an end beyond every size.
    odd = {name for node in graph.nodes if node.op_type in ODD for name in node.output}
    for name, value in opshift.infer(graph.model()).values.items():
        for array in graph.values.get(name, ()) if name not in odd else ():
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            assert value.type == f"tensor({onnx.TensorProto.DataType.Name(kind).lower()})"
            assert value.shape is not None
            assert all(size in (None, found) for size, found in zip(value.shape, array.shape, strict=True))
            if value.constant is not None:
                assert list(value.constant.values) == array.ravel().tolist()


def test_refuses_what_is_no_model() -> None:
    with pytest.raises(opshift.InvalidModel):
        opshift.infer(b"no model")
