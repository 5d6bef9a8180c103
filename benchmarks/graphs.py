"""Graphs to measure with: a mix of operators, some of which change at nearly every opset."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper, numpy_helper
import numpy as np

Nodes = list[onnx.NodeProto]


def mixed(count: int, opset: int) -> onnx.ModelProto:
    """A chain of about `count` nodes over 24 operators, written for `opset` (9, 13, 17 or 18)."""
    constants = {
        "ones": np.ones((1, 4, 8, 8), np.float32),
        "axes": np.array([2], np.int64),
        "last": np.array([3], np.int64),
        "halves": np.array([2, 2], np.int64),
        "low": np.array(-1, np.float32),
        "high": np.array(1, np.float32),
        "starts": np.array([0], np.int64),
        "ends": np.array([8], np.int64),
        "pads": np.zeros(8, np.int64),
        "shape": np.array([1, 4, 8, 8], np.int64),
        "scale": np.ones(4, np.float32),
        "weight": np.ones((4, 4, 1, 1), np.float32),
    }
    nodes: Nodes = []
    value = "x"
    step = 0
    while len(nodes) < count:
        value = _BLOCKS[step % len(_BLOCKS)](nodes, value, step, opset)
        step += 1
    graph = helper.make_graph(
        nodes,
        "mixed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def repeated(op_type: str, count: int, opset: int) -> onnx.ModelProto:
    """A chain of one operator."""
    model = mixed(0, opset)
    nodes: Nodes = []
    value = "x"
    block = _BY_NAME[op_type]
    for step in range(count):
        value = block(nodes, value, step, opset)
    model.graph.node.extend(nodes)
    model.graph.output[0].name = value
    return model


def _one(op_type: str, *constants: str, **attributes: object):  # type: ignore[no-untyped-def]
    def block(nodes: Nodes, value: str, step: int, opset: int) -> str:
        out = f"v{step}"
        nodes.append(helper.make_node(op_type, [value, *constants], [out], **attributes))
        return out

    return block


def _clip(nodes: Nodes, value: str, step: int, opset: int) -> str:
    attributes = {"min": -1.0, "max": 1.0} if opset < 11 else {}
    inputs = [value] if opset < 11 else [value, "low", "high"]
    nodes.append(helper.make_node("Clip", inputs, [f"v{step}"], **attributes))
    return f"v{step}"


def _dropout(nodes: Nodes, value: str, step: int, opset: int) -> str:
    attributes = {"ratio": 0.25} if opset < 12 else {}
    nodes.append(helper.make_node("Dropout", [value], [f"v{step}"], **attributes))
    return f"v{step}"


def _slice(nodes: Nodes, value: str, step: int, opset: int) -> str:
    if opset < 10:
        node = helper.make_node("Slice", [value], [f"v{step}"], starts=[0], ends=[8], axes=[2])
    else:
        node = helper.make_node("Slice", [value, "starts", "ends", "axes"], [f"v{step}"])
    nodes.append(node)
    return f"v{step}"


def _squeeze(nodes: Nodes, value: str, step: int, opset: int) -> str:
    if opset < 13:
        nodes.append(helper.make_node("Unsqueeze", [value], [f"u{step}"], axes=[2]))
        nodes.append(helper.make_node("Squeeze", [f"u{step}"], [f"v{step}"], axes=[2]))
    else:
        nodes.append(helper.make_node("Unsqueeze", [value, "axes"], [f"u{step}"]))
        nodes.append(helper.make_node("Squeeze", [f"u{step}", "axes"], [f"v{step}"]))
    return f"v{step}"


def _split(nodes: Nodes, value: str, step: int, opset: int) -> str:
    parts = [f"p{step}", f"q{step}"]
    inputs = [value, "halves"] if opset >= 13 else [value]
    attributes = {} if opset >= 13 else {"split": [2, 2]}
    nodes.append(helper.make_node("Split", inputs, parts, axis=1, **attributes))
    nodes.append(helper.make_node("Concat", parts, [f"v{step}"], axis=1))
    return f"v{step}"


def _pad(nodes: Nodes, value: str, step: int, opset: int) -> str:
    attributes = {"pads": [0] * 8} if opset < 11 else {}
    nodes.append(helper.make_node("Pad", [value] if opset < 11 else [value, "pads"], [f"v{step}"], **attributes))
    return f"v{step}"


def _reduce(nodes: Nodes, value: str, step: int, opset: int) -> str:
    if opset < 18:
        nodes.append(helper.make_node("ReduceMean", [value], [f"m{step}"], axes=[3]))
    else:
        nodes.append(helper.make_node("ReduceMean", [value, "last"], [f"m{step}"]))
    nodes.append(helper.make_node("Sub", [value, f"m{step}"], [f"v{step}"]))
    return f"v{step}"


def _softmax(nodes: Nodes, value: str, step: int, opset: int) -> str:
    nodes.append(helper.make_node("Softmax", [value], [f"v{step}"], axis=3))
    return f"v{step}"


def _middle_softmax(nodes: Nodes, value: str, step: int, opset: int) -> str:
    nodes.append(helper.make_node("Softmax", [value], [f"v{step}"], axis=1))
    return f"v{step}"


_BY_NAME = {
    "Relu": _one("Relu"),
    "Clip": _clip,
    "Slice": _slice,
    "Dropout": _dropout,
    "Squeeze": _squeeze,
    "Softmax": _middle_softmax,
    "Split": _split,
    "Pad": _pad,
    "ReduceMean": _reduce,
    "Conv": _one("Conv", "weight"),
    "BatchNormalization": _one("BatchNormalization", "scale", "scale", "scale", "scale"),
}
_BLOCKS = (
    _one("Relu"), _one("Add", "ones"), _clip, _one("Conv", "weight"), _slice, _one("Sigmoid"), _dropout,
    _one("Mul", "ones"), _squeeze, _one("Tanh"), _softmax, _one("Reshape", "shape"), _split,
    _one("Transpose", perm=[0, 1, 2, 3]), _pad, _one("Abs"), _reduce, _one("Identity"),
    _one("BatchNormalization", "scale", "scale", "scale", "scale"), _one("LeakyRelu"), _one("Max", "ones"),
    _one("MatMul", "ones"), _one("Elu"), _one("Floor"),
)  # fmt: skip
