"""Nodes between which optimizers of onnxruntime repeat a quantization, and sums that they merge with Gelu."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from support.execution import loads
from support.runtimes import verdict_of

MIDDLE, LATEST = "onnxruntime-1.23.2", "onnxruntime-1.31.1"

MOVED = """
    <ir_version: 10, opset_import: ["" : {opset}]>
    g ({input}) => (float[] y{output})
    {{ s = Constant <value = float {{0.5}}> () {zero} {constant} d = DequantizeLinear (x, s{z}) {move} }}
"""


@pytest.mark.parametrize("move", ["y = Squeeze (d)", "y = Transpose (d)", "k = Relu (d) y = Squeeze (k)"])
@pytest.mark.parametrize("opset", [20, 21])
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("has_zero_point", [False, True])
@pytest.mark.parametrize("returned", ["", ", float[] d"])
@pytest.mark.parametrize("element_type", ["int8", "uint8", "int32"])
def test_knows_when_quantized_data_can_be_moved(
    element_type: str, returned: str, move: str, opset: int, *, is_constant: bool, has_zero_point: bool
) -> None:
    model = onnx.parser.parse_model(
        MOVED.format(
            opset=opset,
            input="" if is_constant else f"{element_type}[2, 1, 2] x",
            output=returned,
            zero=f"z = Constant <value = {element_type} {{0}}> ()" if has_zero_point else "",
            constant=f"x = Constant <value = {element_type}[2, 1, 2] {{1, 2, 3, 4}}> ()"
            if is_constant
            else "",
            z=", z" if has_zero_point else "",
            move=move,
        )
    )
    for each in model.graph.output:
        each.type.tensor_type.ClearField("shape")
    assert (verdict_of(model, LATEST) != "does not run") is loads(model)
    fails = element_type == "int32" and has_zero_point and "k" not in move
    assert (verdict_of(model, MIDDLE) == "does not run") is fails


SUM = """
    <ir_version: 8, opset_import: ["" : 20, "com.microsoft" : 1]>
    g (float[3, {size}] x, float[{size}] b) => (float[3, {size}] y) {{ a = Add (x, b) {nodes} }}
"""
ERF = """
    s = Constant <value = float {1.4142135}> () o = Constant <value = float {1.0}> ()
    h = Constant <value = float {0.5}> ()
    d = Div (a, s) e = Erf (d) p = Add (e, o) m = Mul (a, p) y = Mul (m, h)
"""


@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize(
    "nodes",
    ["y = Gelu (a)", "y = com.microsoft.Gelu (a)", "y = com.microsoft.FastGelu (a)", ERF],
    ids=["Gelu", "com.microsoft.Gelu", "FastGelu", "Erf"],
)
def test_refuses_empty_sums_that_become_biases(nodes: str, size: int) -> None:
    model = onnx.parser.parse_model(SUM.format(nodes=nodes, size=size))
    assert (verdict_of(model, MIDDLE) == "does not run") is (size == 0)
    assert verdict_of(model, LATEST) == "runs"
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feeds = {"x": np.ones((3, size), np.float32), "b": np.ones(size, np.float32)}
    assert session.run(None, feeds)[0].shape == (3, size)
