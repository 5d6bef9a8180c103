"""Random networks of images and sequences, from which tools make quantized, optimized and mixed models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IR_VERSIONS = {21: 10, 22: 10, 23: 11}
"""IR version for each opset; older opsets have IR version 8."""

Feeds = Mapping[str, Any]


class NetworkModel(NamedTuple):
    """Model with values of its inputs."""

    name: str
    model: onnx.ModelProto
    feeds: Feeds


class Network:
    """Network that is being built."""

    def __init__(self, random: Random, opset: int, rank: int) -> None:
        self.random = random
        self.opset = opset
        self.channels, self.rank = 8, rank
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self._generator = np.random.default_rng(random.getrandbits(32))

    def node(self, op_type: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node, and return the name of its output, or the names of several outputs."""
        names = [f"v{len(self.nodes)}_{number}" for number in range(outputs)]
        given = {name: each for name, each in attributes.items() if each is not None}
        self.nodes.append(helper.make_node(op_type, list(inputs), names, domain=domain, **given))
        return names[0] if outputs == 1 else names

    def weight(self, *shape: int, scale: float = 0.3) -> str:
        """Add random numbers as a constant, and return its name."""
        return self.array(self._generator.normal(size=shape, scale=scale).astype(np.float32))

    def array(self, value: Any) -> str:
        """Add a constant, and return its name."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        """Add int64 numbers as a constant, and return its name."""
        return self.array(np.array(values, np.int64))

    def number(self, value: float) -> str:
        """Add a float as a constant, and return its name."""
        return self.array(np.float32(value))


Block = Callable[[Network, str], str]


def _add_conv(net: Network, x: str) -> str:
    groups = net.random.choice([1, 1, 1, 2, net.channels])
    size = net.random.choice([1, 3])
    inputs = [x, net.weight(net.channels, net.channels // groups, size, size)]
    if net.random.random() < 0.7:
        inputs.append(net.weight(net.channels))
    return str(net.node("Conv", *inputs, group=groups, pads=[size // 2] * 4))


def _add_activation(net: Network, x: str) -> str:
    kind = net.random.choice(
        [
            "Relu",
            "LeakyRelu",
            "Sigmoid",
            "Tanh",
            "Elu",
            "HardSigmoid",
            "Softplus",
            "clip",
            "silu",
            "gelu",
            "tanh gelu",
        ]
    )
    if kind == "clip":
        return str(net.node("Clip", x, net.number(0), net.number(6)))
    if kind == "silu":
        return str(net.node("Mul", x, net.node("Sigmoid", x)))
    if kind == "gelu":
        scaled = net.node("Div", x, net.number(2**0.5))
        total = net.node("Add", net.node("Erf", scaled), net.number(1))
        return str(net.node("Mul", net.node("Mul", x, total), net.number(0.5)))
    if kind == "tanh gelu":
        cube = net.node("Mul", net.node("Pow", x, net.number(3)), net.number(0.044715))
        inner = net.node("Tanh", net.node("Mul", net.node("Add", x, cube), net.number(0.7978845)))
        return str(
            net.node("Mul", net.node("Mul", x, net.number(0.5)), net.node("Add", inner, net.number(1)))
        )
    return str(net.node(kind, x))


def _add_batch_norm(net: Network, x: str) -> str:
    ones = np.ones(net.channels, np.float32)
    weights = net.array(ones), net.weight(net.channels), net.weight(net.channels), net.array(ones)
    return str(net.node("BatchNormalization", x, *weights))


def _add_residual(net: Network, x: str) -> str:
    return str(net.node(net.random.choice(["Add", "Mul"]), x, net.random.choice(BLOCKS[net.rank])(net, x)))


def _add_pool_and_resize(net: Network, x: str) -> str:
    pool = net.random.choice(["MaxPool", "AveragePool"])
    small = net.node(pool, x, kernel_shape=[2, 2], strides=[2, 2])
    scales = net.array(np.array([1, 1, 2, 2], np.float32))
    mode = net.random.choice(["nearest", "linear"])
    return str(net.node("Resize", small, "", scales, mode=mode))


def _add_split_and_concat(net: Network, x: str) -> str:
    axis, half = (1 if net.rank == 4 else 2), net.channels // 2
    if net.opset < 13:
        first, second = net.node("Split", x, outputs=2, axis=axis, split=[half, half])
    else:
        first, second = net.node("Split", x, net.integers(half, half), outputs=2, axis=axis)
    return str(net.node("Concat", second, first, axis=axis))


def _add_excitation(net: Network, x: str) -> str:
    mean = net.node(net.random.choice(["GlobalAveragePool", "GlobalMaxPool"]), x)
    return str(net.node("Mul", x, net.node("Sigmoid", mean)))


def _add_transposed_conv(net: Network, x: str) -> str:
    return str(net.node("ConvTranspose", x, net.weight(net.channels, net.channels, 3, 3), pads=[1, 1, 1, 1]))


def _add_softmax(net: Network, x: str) -> str:
    return str(net.node("Softmax", x, axis=net.rank - 1))


def _add_instance_norm(net: Network, x: str) -> str:
    return str(net.node("InstanceNormalization", x, net.weight(net.channels), net.weight(net.channels)))


def _add_pad(net: Network, x: str) -> str:
    padded = net.node("Pad", x, net.integers(*[0] * (net.rank - 1), 1, *[0] * net.rank))
    return str(net.node("Slice", padded, net.integers(1), net.integers(2**31), net.integers(net.rank - 1)))


def _add_linear(net: Network, x: str) -> str:
    product = net.node("MatMul", x, net.weight(net.channels, net.channels))
    return str(net.node("Add", product, net.weight(net.channels)))


def _add_gemm(net: Network, x: str) -> str:
    rows = net.node("Reshape", x, net.integers(-1, net.channels))
    inputs = rows, net.weight(net.channels, net.channels), net.weight(net.channels)
    result = net.node("Gemm", *inputs, transB=net.random.randint(0, 1))
    return str(net.node("Reshape", result, net.integers(2, -1, net.channels)))


def _add_layer_norm(net: Network, x: str) -> str:
    scale, bias = net.weight(net.channels), net.weight(net.channels)
    if net.opset >= 17 and net.random.random() < 0.5:
        return str(net.node("LayerNormalization", x, scale, bias))

    def mean(value: str) -> Any:
        if net.opset < 18:
            return net.node("ReduceMean", value, axes=[-1])
        return net.node("ReduceMean", value, net.integers(-1))

    centered = net.node("Sub", x, mean(x))
    variance = mean(net.node("Pow", centered, net.number(2)))
    deviation = net.node("Sqrt", net.node("Add", variance, net.number(1e-5)))
    scaled = net.node("Mul", net.node("Div", centered, deviation), scale)
    return str(net.node("Add", scaled, bias))


def _add_rms_norm(net: Network, x: str) -> str:
    square = net.node("Pow", x, net.number(2))
    axes: dict[str, Any] = {"axes": [-1]} if net.opset < 18 else {}
    mean = net.node("ReduceMean", square, *([] if axes else [net.integers(-1)]), **axes)
    root = net.node("Sqrt", net.node("Add", mean, net.number(1e-6)))
    return str(net.node("Mul", net.node("Div", x, root), net.weight(net.channels)))


def _add_attention(net: Network, x: str) -> str:
    def split(order: list[int]) -> Any:
        heads = net.node("Reshape", _add_linear(net, x), net.integers(0, 0, 2, net.channels // 2))
        return net.node("Transpose", heads, perm=order)

    scores = net.node("MatMul", split([0, 2, 1, 3]), split([0, 2, 3, 1]))
    weights = net.node("Softmax", net.node("Div", scores, net.number(2)), axis=3)
    mixed = net.node("Transpose", net.node("MatMul", weights, split([0, 2, 1, 3])), perm=[0, 2, 1, 3])
    return _add_linear(net, net.node("Reshape", mixed, net.integers(0, 0, net.channels)))


def _add_recurrent(net: Network, x: str) -> str:
    op_type, gates = net.random.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    steps = net.node("Transpose", x, perm=[1, 0, 2])
    size = net.channels
    weights = net.weight(1, gates * size, size), net.weight(1, gates * size, size)
    inputs = [*weights, net.weight(1, 2 * gates * size)] if net.random.random() < 0.5 else weights
    states = net.node(op_type, steps, *inputs, hidden_size=size)
    axes = [net.integers(1)] if net.opset >= 13 else []
    squeezed = net.node("Squeeze", states, *axes, axes=None if axes else [1])
    return str(net.node("Transpose", squeezed, perm=[1, 0, 2]))


def _add_where(net: Network, x: str) -> str:
    is_large = net.node("Greater", x, net.number(0.1))
    return str(net.node("Where", is_large, x, net.node("Neg", x)))


def _add_gather(net: Network, x: str) -> str:
    indices = net.node("ArgMax", x, axis=net.rank - 1, keepdims=0)
    return str(net.node("Add", x, net.node("Gather", net.weight(64, net.channels), indices)))


def _add_scaled_matmul(net: Network, x: str) -> str:
    turned = net.node("Transpose", x, perm=[0, 2, 1])
    product = net.node("Mul", net.node("MatMul", x, turned), net.number(0.25))
    return str(net.node("MatMul", product, x))


BLOCKS: Mapping[int, tuple[Block, ...]] = {
    4: (
        _add_conv, _add_conv, _add_conv, _add_activation, _add_activation, _add_batch_norm, _add_residual,
        _add_pool_and_resize, _add_split_and_concat, _add_excitation, _add_transposed_conv, _add_softmax,
        _add_instance_norm, _add_pad, _add_where,
    ),
    3: (
        _add_linear, _add_linear, _add_gemm, _add_activation, _add_layer_norm, _add_rms_norm,
        _add_attention, _add_recurrent, _add_residual, _add_split_and_concat, _add_softmax, _add_pad,
        _add_where, _add_gather, _add_scaled_matmul,
    ),
}  # fmt: skip
"""Functions that add a block of nodes, by the rank of the block's value."""


def random_network(random: Random, opset: int | None = None) -> NetworkModel:
    """Return a random network with float values."""
    opset = opset or random.choice([11, 12, 13, 14, 15, 16, 17, 18, 19])
    rank = random.choice([3, 4])
    net = Network(random, opset, rank)
    value = "x"
    for _ in range(random.randint(2, 6)):
        value = random.choice(BLOCKS[rank])(net, value)
    shape = [2, 8, 6, 6] if rank == 4 else [2, 6, 8]
    feeds = {"x": np.random.default_rng(random.getrandbits(32)).normal(size=shape).astype(np.float32)}
    declared = ["batch", *shape[1:]] if random.random() < 0.3 and not _has_batch(net) else shape
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, declared)]
    outputs = [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)]
    graph = helper.make_graph(net.nodes, "network", inputs, outputs, net.weights)
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSIONS.get(opset, 8))
    return NetworkModel(f"network at {opset}", model, feeds)


def _has_batch(net: Network) -> bool:
    """Return whether the size of the batch is fixed by a Reshape."""
    return any(each.op_type == "Reshape" for each in net.nodes)
