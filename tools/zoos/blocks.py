"""Random networks: blocks of nodes that most opset changes affect, each in the form of the model's opset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

Attribute: TypeAlias = "float | str | Sequence[float] | GraphProto"
Block = Callable[["Network", str], str]
"""Function that appends nodes after a value of shape [1, channels, 8, 8]; it returns such a value."""

SIDE = 8
LARGEST_TENSOR = 64 << 20
TWO_OUTPUTS = "Split", "TopK"


class Network:
    """Graph under construction."""

    def __init__(self, random: Random, opset: int, channels: int) -> None:
        self.random = random
        self.opset = opset
        self.channels = channels
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self.size = 0

    def node(self, op_type: str, *inputs: str, **attributes: Attribute) -> str:
        """Append a node and return its first output; further outputs have the suffixes _1, _2."""
        outputs = 2 if op_type in TWO_OUTPUTS else 1
        name = f"{op_type.lower()}_{len(self.nodes)}"
        names = [name, *(f"{name}_{each}" for each in range(1, outputs))]
        self.nodes.append(helper.make_node(op_type, inputs, names, name=name, **attributes))
        self.size += 60
        return name

    def tensor(self, data: bytes, dims: Sequence[int], element_type: int = TensorProto.FLOAT) -> str:
        """Add an initializer and return its name."""
        name = f"w_{len(self.initializers)}"
        self.initializers.append(TensorProto(name=name, data_type=element_type, dims=dims, raw_data=data))
        self.size += len(data) + 20
        return name

    def weight(self, *dims: int) -> str:
        """Add an initializer with random floats between 0 and 2."""
        count = 1
        for each in dims:
            count *= each
        data = bytearray(self.random.randbytes(4 * count))
        data[3::4] = bytes([0x3F]) * count  # sign and exponent
        return self.tensor(bytes(data), dims)

    def integers(self, *values: int) -> str:
        """Add an initializer with integers."""
        data = b"".join(each.to_bytes(8, "little", signed=True) for each in values)
        return self.tensor(data, [len(values)], TensorProto.INT64)

    def variant(self, op_type: str, moved_at: int, *inputs: str, **lists: Sequence[int]) -> str:
        """Append a node with lists as attributes, or as inputs from the opset that moves them to inputs."""
        if self.opset < moved_at:
            return self.node(op_type, *inputs, **lists)
        return self.node(op_type, *inputs, *(self.integers(*each) for each in lists.values()))

    def model(self, output: str) -> ModelProto:
        """Return the model that returns a value."""
        shape = [1, self.channels, SIDE, SIDE]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "network", [x], [y], self.initializers)
        imports = [helper.make_opsetid("", self.opset)]
        ir_version = helper.find_min_ir_version_for(imports)
        return helper.make_model(graph, opset_imports=imports, ir_version=max(ir_version, 4))


def _add_conv(net: Network, x: str) -> str:
    kernel = net.weight(net.channels, net.channels, 3, 3)
    return net.node("Conv", x, kernel, net.weight(net.channels), kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def _add_activation(net: Network, x: str) -> str:
    names = ["Relu", "Sigmoid", "Tanh", "Softplus", "Elu", "LeakyRelu", "HardSigmoid", "Selu"]
    names += ["HardSwish"] * (net.opset >= 14) + ["Mish"] * (net.opset >= 18) + ["Gelu"] * (net.opset >= 20)
    return net.node(net.random.choice(names), x)


def _add_clip(net: Network, x: str) -> str:
    if net.opset < 11:
        return net.node("Clip", x, min=0.0, max=6.0)
    low, high = (net.tensor(bytes(data), []) for data in ([0, 0, 0, 0], [0, 0, 0xC0, 0x40]))
    return net.node("Clip", x, low, high)


def _add_batch_norm(net: Network, x: str) -> str:
    return net.node("BatchNormalization", x, *(net.weight(net.channels) for _ in range(4)))


def _add_dropout(net: Network, x: str) -> str:
    return net.node("Dropout", x, ratio=0.3) if net.opset < 12 else net.node("Dropout", x)


def _add_pad_and_slice(net: Network, x: str) -> str:
    padded = net.variant("Pad", 11, x, pads=[0, 0, 1, 1, 0, 0, 1, 1])
    if net.opset < 10:
        return net.node("Slice", padded, starts=[1, 1], ends=[SIDE + 1, SIDE + 1], axes=[2, 3])
    lists = [1, 1], [SIDE + 1, SIDE + 1], [2, 3]
    return net.node("Slice", padded, *(net.integers(*each) for each in lists))


def _add_softmax(net: Network, x: str) -> str:
    return net.node(net.random.choice(["Softmax", "LogSoftmax"]), x, axis=net.random.randrange(1, 4))


def _add_attention_over_channels(net: Network, x: str) -> str:
    mean = net.variant("ReduceMean", 18, x, axes=[2, 3])
    return net.node("Mul", x, net.node("Sigmoid", mean))


def _add_sum_and_squeeze(net: Network, x: str) -> str:
    total = net.variant("ReduceSum", 13, x, axes=[3])
    squeezed = net.variant("Squeeze", 13, total, axes=[3])
    return net.node("Add", x, net.variant("Unsqueeze", 13, squeezed, axes=[3]))


def _add_split_and_concat(net: Network, x: str) -> str:
    parts = [net.channels // 2, net.channels - net.channels // 2]
    if net.opset < 13:
        first = net.node("Split", x, axis=1, split=parts)
    else:
        first = net.node("Split", x, net.integers(*parts), axis=1)
    return net.node("Concat", f"{first}_1", first, axis=1)


def _add_upsample_and_pool(net: Network, x: str) -> str:
    scales = net.tensor(b"".join(bytes([0, 0, each, 0x3F + (not each)]) for each in (0x80, 0x80, 0, 0)), [4])
    if net.opset < 9:
        large = net.node("Upsample", x, mode="nearest", scales=[1.0, 1.0, 2.0, 2.0])
    elif net.opset < 10:
        large = net.node("Upsample", x, scales, mode="nearest")
    elif net.opset < 11:
        large = net.node("Resize", x, scales, mode="nearest")
    else:
        region = net.tensor(b"", [0]) if net.opset < 13 else ""  # required up to opset 12, but not used
        large = net.node("Resize", x, region, scales, mode="nearest")
    return net.node("AveragePool", large, kernel_shape=[2, 2], strides=[2, 2])


def _add_reshape(net: Network, x: str) -> str:
    flat = net.node("Flatten", x, axis=1)
    return net.node("Reshape", flat, net.integers(1, net.channels, SIDE, SIDE))


def _add_transpose(net: Network, x: str) -> str:
    return net.node("Transpose", net.node("Transpose", x, perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2])


def _add_quantize(net: Network, x: str) -> str:
    if net.opset < 10:
        return net.node("Identity", x)
    scale, zero = net.tensor(bytes([0, 0, 0, 0x3F]), []), net.tensor(b"\x80", [], TensorProto.UINT8)
    return net.node("DequantizeLinear", net.node("QuantizeLinear", x, scale, zero), scale, zero)


def _add_group_norm(net: Network, x: str) -> str:
    if net.opset < 21:
        return net.node("InstanceNormalization", x, net.weight(net.channels), net.weight(net.channels))
    scales = [net.weight(net.channels), net.weight(net.channels)]
    return net.node("GroupNormalization", x, *scales, num_groups=1)


def _add_branch(net: Network, x: str) -> str:
    branches = []
    for op_type in "Softmax", "Hardmax":
        name = f"{op_type}_{len(net.nodes)}"
        node = helper.make_node(op_type, [x], [name], name=name, axis=1)
        y = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        branches.append(helper.make_graph([node], name, [], [y]))
    condition = net.tensor(b"\x01", [], TensorProto.BOOL)
    return net.node("If", condition, then_branch=branches[0], else_branch=branches[1])


def _add_normalize(net: Network, x: str) -> str:
    if net.opset >= 17:
        return net.node("LayerNormalization", x, net.weight(SIDE), net.weight(SIDE), axis=-1)
    return net.node("LRN", x, size=3)


def _add_top_k(net: Network, x: str) -> str:
    if net.opset < 10:
        return net.node("TopK", x, k=SIDE, axis=3)
    return net.node("TopK", x, net.integers(SIDE), axis=3)


BLOCKS: tuple[Block, ...] = (
    _add_conv, _add_conv, _add_conv, _add_activation, _add_activation, _add_activation, _add_batch_norm,
    _add_clip, _add_dropout, _add_pad_and_slice, _add_softmax, _add_attention_over_channels,
    _add_sum_and_squeeze, _add_split_and_concat, _add_upsample_and_pool, _add_reshape, _add_transpose,
    _add_quantize, _add_group_norm, _add_branch, _add_normalize, _add_top_k,
)  # fmt: skip


def _add_refused_text(net: Network, x: str) -> str:
    words = TensorProto(name="words", data_type=TensorProto.STRING, dims=[2], string_data=[b"a", b"b"])
    net.initializers.append(words)
    joined = net.node("StringConcat", "words", "words")
    matches = net.node("RegexFullMatch", joined, pattern="a.*")
    return net.node("Add", x, net.node("ReduceMax", net.node("Cast", matches, to=TensorProto.FLOAT)))


def _add_refused_float8(net: Network, x: str) -> str:
    narrow = net.node("Cast", x, to=TensorProto.FLOAT8E4M3FN)
    return net.node("Cast", net.node("Identity", narrow), to=TensorProto.FLOAT)


REFUSED: tuple[Block, ...] = _add_refused_text, _add_refused_float8
"""Blocks of opset 20 that no opset below 19 can express."""


def random_model(random: Random, opset: int, size: int, special: Block | None = None) -> ModelProto:
    """Return a model of about `size` bytes; `special` adds the nodes that decide its outcome."""
    net = Network(random, opset, random.choice([4, 8, 12]))
    value = special(net, "x") if special else "x"
    while net.size < min(size, 90_000) and len(net.nodes) < 60:
        value = random.choice(BLOCKS)(net, value)
    while net.size < size - 4 * net.channels:
        value = _add_lookup(net, value, size - net.size)
    return net.model(net.node("Identity", value))


def _add_lookup(net: Network, x: str, size: int) -> str:
    """Add a row of a large table, which fills the remaining bytes up to those of the largest tensor."""
    largest = net.random.randrange(LARGEST_TENSOR // 64, LARGEST_TENSOR) if size > LARGEST_TENSOR else size
    rows = max(1, min(size, largest) // (4 * net.channels))
    table = net.tensor(net.random.randbytes(4 * rows * net.channels), [rows, net.channels, 1, 1])
    return net.node("Add", x, net.node("Gather", table, net.integers(net.random.randrange(rows))))


def externalize(model: ModelProto, location: str) -> bytes:
    """Move the raw data of all floats to a file, and return its content."""
    data = bytearray()
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.raw_data:
            fields = {"location": location, "offset": len(data), "length": len(tensor.raw_data)}
            for key, value in fields.items():
                tensor.external_data.add(key=key, value=str(value))
            data += tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
    return bytes(data)
