"""Downgrades of complete networks from opset 20 or later to opsets as low as 9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import Array, assert_equal, build, run

import opshift


class Network:
    """Builder of a network, layer by layer; the weights are random with a fixed seed."""

    def __init__(self, feeds: dict[str, Array]) -> None:
        self.feeds = feeds
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}
        self._random = np.random.default_rng(7)

    def weight(self, *shape: int) -> str:
        return self.constant(self._random.normal(0, 0.3, shape).astype(np.float32))

    def constant(self, value: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(value)
        return name

    def add(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        return self.add_all(op_type, *inputs, outputs=outputs, **attributes)[0]

    def add_all(self, op_type: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        names = [f"v{len(self.nodes)}_{position}" for position in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, f"n{len(self.nodes)}", **attributes))
        return names

    def model(self, result: str, opset: int) -> onnx.ModelProto:
        model = build(self.nodes, self.feeds, [result], opset, ir_version=9, initializers=self.weights)
        model.graph.output[0].CopyFrom(
            helper.make_tensor_value_info(result, onnx.TensorProto.FLOAT, [None, None])
        )
        return model


def attention(net: Network, value: str, width: int, heads: int) -> str:
    normal = net.add("LayerNormalization", value, net.weight(width), net.weight(width), axis=-1)
    split = net.constant(np.array([0, 0, heads, width // heads]))
    parts = []
    for _ in range(3):
        projected = net.add("MatMul", normal, net.weight(width, width))
        parts.append(net.add("Transpose", net.add("Reshape", projected, split), perm=[0, 2, 1, 3]))
    query, key, content = parts
    scores = net.add("MatMul", query, net.add("Transpose", key, perm=[0, 1, 3, 2]))
    scores = net.add("Mul", scores, net.constant(np.float32((width // heads) ** -0.5)))
    mixed = net.add("MatMul", net.add("Softmax", scores, axis=-1), content)
    joined = net.add("Transpose", mixed, perm=[0, 2, 1, 3])
    return net.add("Add", net.add("Reshape", joined, net.constant(np.array([0, 0, width]))), value)


def feed_forward(net: Network, value: str, width: int) -> str:
    normal = net.add("LayerNormalization", value, net.weight(width), net.weight(width), axis=-1)
    wide = net.add("Gelu", net.add("MatMul", normal, net.weight(width, 2 * width)))
    return net.add("Add", net.add("MatMul", wide, net.weight(2 * width, width)), value)


def transformer_encoder() -> onnx.ModelProto:
    net = Network({"x": np.random.default_rng(0).normal(size=(2, 6, 16)).astype(np.float32)})
    value = "x"
    for _ in range(2):
        value = feed_forward(net, attention(net, value, 16, 4), 16)
    halves = net.add_all("Split", value, outputs=2, axis=-1, num_outputs=2)
    joined = net.add("Concat", net.add("Mish", halves[0]), net.add("HardSwish", halves[1]), axis=-1)
    return net.model(net.add("ReduceMean", joined, net.constant(np.array([1])), keepdims=0), 20)


def vision_transformer() -> onnx.ModelProto:
    net = Network({"x": np.random.default_rng(1).normal(size=(1, 3, 16, 16)).astype(np.float32)})
    patches = net.add("Conv", "x", net.weight(16, 3, 4, 4), net.weight(16), strides=[4, 4])
    tokens = net.add("Reshape", patches, net.constant(np.array([0, 16, -1])))
    tokens = net.add("Transpose", tokens, perm=[0, 2, 1])
    tokens = net.add("Concat", net.weight(1, 1, 16), tokens, axis=1)
    tokens = net.add("Add", tokens, net.weight(1, 17, 16))
    for _ in range(2):
        tokens = feed_forward(net, attention(net, tokens, 16, 2), 16)
    first = net.add("Slice", tokens, *(net.constant(np.array([each])) for each in (0, 1, 1)))
    first = net.add("Squeeze", first, net.constant(np.array([1])))
    return net.model(net.add("Gemm", first, net.weight(16, 5), net.weight(5)), 20)


def convnext() -> onnx.ModelProto:
    net = Network({"x": np.random.default_rng(2).normal(size=(1, 3, 32, 32)).astype(np.float32)})
    value = net.add("Conv", "x", net.weight(8, 3, 4, 4), net.weight(8), strides=[4, 4])
    for _ in range(2):
        padded = net.add("Pad", value, net.constant(np.array([0, 0, 3, 3, 0, 0, 3, 3])), mode="reflect")
        deep = net.add("Conv", padded, net.weight(8, 1, 7, 7), net.weight(8), group=8)
        last = net.add("Transpose", deep, perm=[0, 2, 3, 1])
        last = net.add("LayerNormalization", last, net.weight(8), net.weight(8), axis=-1, epsilon=1e-6)
        last = net.add(
            "MatMul", net.add("Gelu", net.add("MatMul", last, net.weight(8, 32))), net.weight(32, 8)
        )
        value = net.add("Add", value, net.add("Transpose", last, perm=[0, 3, 1, 2]))
    value = net.add("GroupNormalization", value, net.weight(8), net.weight(8), num_groups=4)
    large = net.add("Resize", value, "", net.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear")
    return net.model(net.add("ReduceMax", large, net.constant(np.array([-2, -1])), keepdims=0), 21)


def quantized_cnn() -> onnx.ModelProto:
    net = Network({"x": np.random.default_rng(3).normal(size=(1, 3, 16, 16)).astype(np.float32)})
    value = "x"
    for channels_in, channels in ((3, 8), (8, 8)):
        scale = net.constant(np.float32(0.05))
        zero = net.constant(np.uint8(128))
        value = net.add("DequantizeLinear", net.add("QuantizeLinear", value, scale, zero), scale, zero)
        kernel = np.random.default_rng(channels_in).integers(
            -127, 127, (channels, channels_in, 3, 3), np.int8
        )
        scales = net.constant(np.linspace(0.001, 0.01, channels).astype(np.float32))
        zeros = net.constant(np.zeros(channels, np.int8))
        weight = net.add("DequantizeLinear", net.constant(kernel), scales, zeros, axis=0)
        value = net.add("Conv", value, weight, net.weight(channels), pads=[1, 1, 1, 1])
        value = net.add("HardSwish", value)
        value = net.add("AveragePool", value, kernel_shape=[2, 2], strides=[2, 2])
    return net.model(net.add("ReduceMean", value, net.constant(np.array([2, 3])), keepdims=0), 21)


DOWNGRADES = [
    pytest.param(make_network, target, id=f"{make_network.__name__} to {target}")
    for make_network, targets in (
        (transformer_encoder, (18, 17, 13, 11, 9)),
        (vision_transformer, (18, 17, 13, 11, 9)),
        (convnext, (18, 17, 13, 11, 9)),
        (quantized_cnn, (18, 13, 11)),
    )
    for target in targets
]


@pytest.mark.parametrize(("make_network", "target"), DOWNGRADES)
def test_downgrade_keeps_outputs(make_network: Callable[[], onnx.ModelProto], target: int) -> None:
    model = make_network()
    feeds = {"x": _input_of(model)}
    onnx.checker.check_model(converted := opshift.convert_version(model, target))
    assert_equal(run(converted, feeds), run(model, feeds), tolerance=1e-4)


def _input_of(model: onnx.ModelProto) -> Array:
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(9).normal(size=shape).astype(np.float32)
