"""Models that onnxruntime quantized or optimized become standard models with equal outputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from support.com_microsoft import DOMAIN, without_microsoft
from support.execution import Array, Feeds, build, run

f = np.float32
RNG = np.random.default_rng(0)
IMAGES = {"x": RNG.normal(size=(16, 3, 8, 8)).astype(f)}
ROWS = {"x": RNG.normal(size=(4, 6, 16)).astype(f)}


def _weights(**shapes: tuple[int, ...]) -> dict[str, Array]:
    return {name: RNG.normal(size=shape, scale=0.3).astype(f) for name, shape in shapes.items()}


def _network() -> onnx.ModelProto:
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        node("LeakyRelu", ["c1"], ["r1"], alpha=0.1),
        node("Conv", ["r1", "w2", "b2"], ["c2"], pads=[1, 1, 1, 1]),
        node("Sigmoid", ["c2"], ["s2"]),
        node("Mul", ["c2", "s2"], ["m"]),
        node("Add", ["m", "r1"], ["a"]),
        node("AveragePool", ["a"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", ["p", "p"], ["both"], axis=1),
        node("GlobalAveragePool", ["both"], ["g"]),
        node("Flatten", ["g"], ["rows"]),
        node("Gemm", ["rows", "wg", "bg"], ["gemm"], transB=1),
        node("Softmax", ["gemm"], ["y"]),
    ]
    weights = _weights(w1=(8, 3, 3, 3), b1=(8,), w2=(8, 8, 3, 3), b2=(8,), wg=(10, 16), bg=(10,))
    return build(nodes, IMAGES, ["y"], 13, initializers=weights)


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        self._left: Iterator[Feeds] = iter([{"x": IMAGES["x"] * scale} for scale in (f(0.5), f(1), f(1.5))])

    def get_next(self) -> Feeds | None:
        return next(self._left, None)


@pytest.mark.parametrize("activations", [QuantType.QUInt8, QuantType.QInt8])
def test_quantized_network_is_equal_bit_for_bit(activations: Any, tmp_path: Path) -> None:
    source, result = str(tmp_path / "float.onnx"), str(tmp_path / "quantized.onnx")
    onnx.save(_network(), source)
    quantize_static(
        source,
        result,
        _Samples(),
        QuantFormat.QOperator,
        activation_type=activations,
        weight_type=QuantType.QInt8,
    )
    model = onnx.load(result)
    found = {each.op_type for each in model.graph.node if each.domain == DOMAIN}
    assert {"QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearGlobalAveragePool", "QGemm"} <= found
    expected = run(model, IMAGES)
    for opset in (11, 13, 21):
        converted = without_microsoft(model, opset, ["approximate"])
        np.testing.assert_array_equal(run(converted, IMAGES)[0], expected[0])


def test_dynamically_quantized_network(tmp_path: Path) -> None:
    source, result = str(tmp_path / "float.onnx"), str(tmp_path / "quantized.onnx")
    onnx.save(_network(), source)
    quantize_dynamic(source, result)
    model = _optimized(onnx.load(result), tmp_path)
    assert "DynamicQuantizeMatMul" in {each.op_type for each in model.graph.node}
    np.testing.assert_array_equal(run(without_microsoft(model, 13), IMAGES)[0], run(model, IMAGES)[0])


def _optimized(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(options.optimized_model_filepath)


def _feed_forward() -> onnx.ModelProto:
    node = helper.make_node
    nodes = [
        node("Transpose", ["k"], ["kt"], perm=[1, 0]),
        node("MatMul", ["x", "kt"], ["h"]),
        node("Add", ["h", "b"], ["hb"]),
        node("Div", ["hb", "root"], ["scaled"]),
        node("Erf", ["scaled"], ["erf"]),
        node("Add", ["erf", "one"], ["gate"]),
        node("Mul", ["hb", "gate"], ["twice"]),
        node("Mul", ["twice", "half"], ["gelu"]),
        node("MatMul", ["gelu", "v"], ["out"]),
        node("Add", ["out", "x"], ["sum"]),
        node("LayerNormalization", ["sum", "gamma", "beta"], ["y"], axis=-1),
    ]
    weights = _weights(k=(32, 16), b=(32,), v=(32, 16), gamma=(16,), beta=(16,))
    constants = {"root": np.array(2**0.5, f), "one": np.array(1, f), "half": np.array(0.5, f)}
    return build(nodes, ROWS, ["y"], 17, initializers={**weights, **constants})


def test_optimized_networks(tmp_path: Path) -> None:
    for model, feeds, fused in (
        (_network(), IMAGES, {"FusedConv", "QuickGelu"}),
        (_feed_forward(), ROWS, {"Gelu", "SkipLayerNormalization"}),
    ):
        optimized = _optimized(model, tmp_path)
        assert fused <= {each.op_type for each in optimized.graph.node}
        expected = run(model, feeds)[0]
        for opset in (13, 17, 21):
            found = run(without_microsoft(optimized, opset), feeds)[0]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
