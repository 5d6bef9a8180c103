"""Graphs to convert: chains of operators, including some that change in nearly every opset.

Nodes do not share weights, like in real models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPE = [1, 4, 8, 8]


class Chain:
    """A graph under construction in which each node reads the first output of the previous one.

    Constants are initializers, or Constant nodes if `has_constant_nodes` is set.
    """

    def __init__(self, opset: int, has_constant_nodes: bool = False) -> None:
        self.opset = opset
        self.has_constant_nodes = has_constant_nodes
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.value = "x"

    def constant(self, values: Any, dtype: type) -> str:
        """Add a constant and return its name."""
        if self.has_constant_nodes:
            name = f"c{len(self.nodes)}"
            value = numpy_helper.from_array(np.array(values, dtype))
            self.nodes.append(helper.make_node("Constant", [], [name], value=value))
            return name
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def add(self, op_type: str, inputs: tuple[str, ...] = (), outputs: int = 1, **attributes: Any) -> None:
        """Append a node that reads the current value; its first output becomes the current value."""
        names = [f"v{len(self.nodes)}_{position}" for position in range(outputs)]
        node = helper.make_node(op_type, [self.value, *inputs], names, f"n{len(self.nodes)}", **attributes)
        self.nodes.append(node)
        self.value = names[0]

    def model(self) -> onnx.ModelProto:
        """Return a model of the nodes added so far."""
        graph = helper.make_graph(
            self.nodes,
            "chain",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
            [helper.make_tensor_value_info(self.value, TensorProto.FLOAT, SHAPE)],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def mixed(count: int, opset: int) -> onnx.ModelProto:
    """Return a chain of at least `count` nodes of 24 operators, written for `opset`."""
    chain = Chain(opset)
    blocks = tuple(BLOCKS.values())
    step = 0
    while len(chain.nodes) < count:
        blocks[step % len(blocks)](chain)
        step += 1
    return chain.model()


def repeated(block: str, count: int, opset: int, has_constant_nodes: bool = False) -> onnx.ModelProto:
    """Return a chain of at least `count` nodes that repeats one block."""
    chain = Chain(opset, has_constant_nodes)
    add = OLD_BLOCKS.get(block) or BLOCKS[block]
    while len(chain.nodes) < count:
        add(chain)
    return chain.model()


def _clip(chain: Chain) -> None:
    if chain.opset < 11:
        chain.add("Clip", min=-1.0, max=1.0)
    else:
        chain.add("Clip", (chain.constant(-1, np.float32), chain.constant(1, np.float32)))


def _dropout(chain: Chain) -> None:
    if chain.opset < 12:
        chain.add("Dropout", ratio=0.25)
    else:
        chain.add("Dropout")


def _slice(chain: Chain) -> None:
    if chain.opset < 10:
        chain.add("Slice", starts=[0], ends=[8], axes=[2])
    else:
        bounds = [chain.constant([value], np.int64) for value in (0, 8, 2)]
        chain.add("Slice", tuple(bounds))


def _squeeze(chain: Chain) -> None:
    if chain.opset < 13:
        chain.add("Unsqueeze", axes=[2])
        chain.add("Squeeze", axes=[2])
    else:
        chain.add("Unsqueeze", (chain.constant([2], np.int64),))
        chain.add("Squeeze", (chain.constant([2], np.int64),))


def _split(chain: Chain) -> None:
    if chain.opset < 13:
        chain.add("Split", outputs=2, axis=1, split=[2, 2])
    else:
        chain.add("Split", (chain.constant([2, 2], np.int64),), outputs=2, axis=1)
    chain.add("Concat", (chain.nodes[-1].output[1],), axis=1)


def _pad(chain: Chain) -> None:
    if chain.opset < 11:
        chain.add("Pad", pads=[0] * 8)
    else:
        chain.add("Pad", (chain.constant([0] * 8, np.int64),))


def _reduce_mean(chain: Chain) -> None:
    if chain.opset < 18:
        chain.add("ReduceMean", axes=[3])
    else:
        chain.add("ReduceMean", (chain.constant([3], np.int64),))
    chain.add("Add", (chain.constant(np.ones(SHAPE), np.float32),))


def _batch_normalization(chain: Chain) -> None:
    chain.add("BatchNormalization", tuple(chain.constant(np.ones(4), np.float32) for _ in range(4)))


def _upsample(chain: Chain) -> None:
    chain.add("Upsample", (chain.constant([1, 1, 1, 1], np.float32),))


def _weighted(op_type: str, shape: list[int]) -> Callable[[Chain], None]:
    return lambda chain: chain.add(op_type, (chain.constant(np.ones(shape), np.float32),))


def _plain(op_type: str, **attributes: Any) -> Callable[[Chain], None]:
    return lambda chain: chain.add(op_type, **attributes)


BLOCKS: dict[str, Callable[[Chain], None]] = {
    "Conv": _weighted("Conv", [4, 4, 1, 1]),
    "BatchNormalization": _batch_normalization,
    "Relu": _plain("Relu"),
    "Clip": _clip,
    "Add": _weighted("Add", SHAPE),
    "Slice": _slice,
    "Sigmoid": _plain("Sigmoid"),
    "Dropout": _dropout,
    "Mul": _weighted("Mul", SHAPE),
    "Squeeze": _squeeze,
    "Tanh": _plain("Tanh"),
    "Softmax": _plain("Softmax", axis=1),
    "Split": _split,
    "Transpose": _plain("Transpose", perm=[0, 1, 2, 3]),
    "Pad": _pad,
    "MatMul": _weighted("MatMul", [8, 8]),
    "ReduceMean": _reduce_mean,
    "LeakyRelu": _plain("LeakyRelu", alpha=0.1),
    "Max": _weighted("Max", SHAPE),
    "Elu": _plain("Elu"),
    "Identity": _plain("Identity"),
}
OLD_BLOCKS: dict[str, Callable[[Chain], None]] = {"Upsample": _upsample}
"""Blocks of operators that newer opsets lack, which therefore are not part of mixed graphs."""
