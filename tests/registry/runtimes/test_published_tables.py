"""Runtimes that published tables describe: which nodes they run."""

from __future__ import annotations

import pytest
from support.toy_runtime import model

from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.check_support import check_support

AXES = "axes = Constant<value_ints = [0]> ()"


@pytest.mark.parametrize(
    ("runtime", "nodes", "inputs", "reason"),
    [
        pytest.param("tensorrt-10.1", "y = Relu (x)", "float[2] x", "", id="TensorRT"),
        pytest.param("tensorrt-10.1", "y = Relu (x)", "double[2] x", "", id="double computed as float"),
        pytest.param("tensorrt-10.1", "y = Det (x)", "float[2, 2] x", "no kernel of ai.onnx.Det", id="Det"),
        pytest.param("tensorrt-10.1", "y = Abs (x)", "uint8[2] x", "has no kernel of", id="type"),
        pytest.param(
            "tensorrt-10.1",
            "y = AveragePool<kernel_shape = [2]> (x)",
            "float[1, 1, 4] x",
            "`X` must have rank 4 or 5",
            id="rank",
        ),
        pytest.param(
            "tensorrt-10.1",
            "y = AveragePool<kernel_shape = [2, 2]> (x)",
            "float[1, 1, 4, 4] x",
            "",
            id="attribute that the version lacks",
        ),
        pytest.param(
            "tensorrt-10.1",
            "y = AveragePool<kernel_shape = [2, 2], dilations = [1, 2]> (x)",
            "float[1, 1, 4, 4] x",
            "the elements of `dilations` must be 1",
            id="element of an attribute",
        ),
        pytest.param(
            "tensorrt-10.1",
            "y = ReduceSum (x, axes)",
            "float[2] x, int64[1] axes",
            "`axes` must be constant",
            id="fed axes",
        ),
        pytest.param(
            "tensorrt-10.1", f"{AXES} y = ReduceSum (x, axes)", "float[2] x", "", id="constant axes"
        ),
        pytest.param("tensorrt-8.6", "y = ReduceSum (x, axes)", "float[2] x, int64[1] axes", "", id="older"),
        pytest.param("tensorrt-8.6", "y = Add (x, x)", "int64[2] x", "", id="int64 computed as int32"),
        pytest.param("tensorrt-8.6", AXES + "y = Relu (x)", "float[2] x", "", id="int64 constant"),
        pytest.param("tensorrt-8.6", "y = Cast <to = 7> (x)", "float[2] x", "", id="cast to int64"),
        pytest.param("tensorrt-8.6", "y = Cast <to = 11> (x)", "float[2] x", "", id="cast to double"),
        pytest.param("tensorrt-8.6", "y = Cast <to = 3> (x)", "int64[2] x", "", id="cast of int64"),
        pytest.param(
            "tensorrt-8.6", "y = Cast <to = 5> (x)", "int64[2] x", "no kernel of", id="cast to int16"
        ),
        pytest.param(
            "tensorrt-8.6",
            "y = ConstantOfShape <value = int64[1] {1}> (x)",
            "int64[2] x",
            "",
            id="filled with int64",
        ),
        pytest.param("migraphx-2.15", "y = com.microsoft.FastGelu (x)", "float[2] x", "", id="com.microsoft"),
        pytest.param(
            "migraphx-2.15",
            "y = Squeeze (x, axes)",
            "float[1] x, int64[1] axes",
            "`axes` must be constant",
            id="MIGraphX",
        ),
        pytest.param("migraphx-2.15", "y = STFT (x, s, , s)", "float[1, 8, 1] x, int64 s", "STFT", id="STFT"),
        pytest.param("onnx-mlir-0.5.0", "y = Add (x, x)", "float[2] x", "", id="onnx-mlir"),
        pytest.param(
            "onnx-mlir-0.5.0", "y = Add (x, x)", "int16[2] x", "`A` must not be a short integer", id="int16"
        ),
        pytest.param("onnx-mlir-0.5.0", "y = Add (x, x)", "bfloat16[2] x", "no kernel of", id="bfloat16"),
        pytest.param("onnxruntime-webgpu-1.30", "y = Add (x, x)", "float16[2] x", "", id="WebGPU"),
        pytest.param(
            "onnxruntime-webgpu-1.30", "y = Add (x, x)", "bfloat16[2] x", "no kernel", id="WebGPU, bfloat16"
        ),
        pytest.param(
            "onnxruntime-coreml-1.32", "y = Add (x, x)", "bfloat16[2] x", "no kernel", id="CoreML, bfloat16"
        ),
        pytest.param(
            "onnxruntime-nnapi-1.32", "y = Gather (x, i)", "float[2] x, int64[1] i", "", id="indices"
        ),
        pytest.param(
            "onnx-mlir-0.5.0", "y = Reshape (x, s)", "float[2] x, int64[1] s", "", id="undecided restriction"
        ),
        pytest.param(
            "onnx-mlir-0.5.0",
            "y = Reshape<allowzero = 1> (x, s)",
            "float[2] x, int64[1] s",
            "the attribute `allowzero` must be 0",
            id="attribute",
        ),
    ],
)
def test_checks_nodes(runtime: str, nodes: str, inputs: str, reason: str) -> None:
    opset = 17 if runtime == "tensorrt-8.6" else 19
    found = check_support(model(nodes, inputs, opset=opset), get_runtime(runtime))
    assert len(found) == (reason != "")
    assert all(reason in each.reason for each in found)
