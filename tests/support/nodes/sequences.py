"""Recurrent layers, loops, and values that are not tensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper

from opshift.model.operator_ids import DEFAULT_DOMAIN
from support.dynamic import with_symbolic_dims
from support.execution import Array, build
from support.nodes.row import IMAGE, RANDOM, Row, X, row
from support.published import Case

FLOAT = TensorProto.FLOAT


def rows() -> Iterator[Row]:
    yield from recurrent()
    yield from control()
    yield from optional()
    yield from lists()
    yield from attention()


def _weights(gates: int, hidden: int = 2) -> dict[str, Array]:
    shapes = {"x": (3, 1, 3), "w": (1, gates * hidden, 3), "r": (1, gates * hidden, hidden)}
    return {name: RANDOM.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def recurrent() -> Iterator[Row]:
    """Yield recurrent nodes; before opset 7, the sequence is an output only with `output_sequence`."""
    last, both = {"": FLOAT, "h": FLOAT}, {"y": FLOAT, "h": FLOAT}
    for op, gates, versions in (("RNN", 1, (1,)), ("GRU", 3, (1, 3)), ("LSTM", 4, (1,))):
        for version in versions:
            yield row(op, version, _weights(gates), {"hidden_size": 2, "output_sequence": 0}, outputs=last)
        yield row(op, 7, _weights(gates), {"hidden_size": 2}, outputs=both)


def _adding_body() -> onnx.GraphProto:
    values = [helper.make_tensor_value_info(name, FLOAT, [3]) for name in "srto"]
    nodes = [helper.make_node("Add", ["s", "r"], ["t"]), helper.make_node("Neg", ["t"], ["o"])]
    return helper.make_graph(nodes, "body", values[:2], values[2:])


def control() -> Iterator[Row]:
    attributes = {"body": _adding_body(), "num_scan_inputs": 1}
    outputs = {"total": FLOAT, "sums": FLOAT}
    batch = {"start": X[:1], "rows": X[None]}
    yield row("Scan", 8, batch, attributes, inputs=["", "start", "rows"], outputs=outputs)
    columns = {"start": X[0], "columns": X.T.copy()}
    yield row("Scan", 11, columns, {**attributes, "scan_input_axes": [-1]}, outputs=outputs)
    feeds = {"often": np.array(3), "start": X[0]}
    loop = {"body": _doubling_body()}
    yield row("Loop", 13, feeds, loop, inputs=["often", "", "start"], outputs={"last": FLOAT})


def _doubling_body() -> onnx.GraphProto:
    values = [helper.make_tensor_value_info("i", TensorProto.INT64, [])]
    values += [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("go", "on")]
    values += [helper.make_tensor_value_info(name, FLOAT, [3]) for name in "ab"]
    nodes = [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["a", "a"], ["b"])]
    number, go, on, a, b = values
    return helper.make_graph(nodes, "body", [number, go, a], [on, b])


def optional() -> Iterator[Row]:
    nodes = [helper.make_node("Optional", ["x"], ["o"]), helper.make_node("OptionalGetElement", ["o"], ["y"])]
    for version in (15, 28):
        yield Row(DEFAULT_DOMAIN, "Optional", version, Case(build(nodes, {"x": X}, ["y"], version), {"x": X}))


def lists() -> Iterator[Row]:
    """Yield rows that share one model with all sequence operators."""
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["two"]),
        helper.make_node("SequenceInsert", ["two", "x"], ["three"]),
        helper.make_node("SequenceErase", ["three", "i"], ["left"]),
        helper.make_node("SequenceAt", ["left", "i"], ["y"]),
        helper.make_node("SequenceLength", ["left"], ["n"]),
        helper.make_node("ConcatFromSequence", ["left"], ["z"], axis=0),
        helper.make_node("SequenceEmpty", [], ["none"]),
        helper.make_node("SequenceLength", ["none"], ["m"]),
    ]
    feeds = {"x": X, "i": np.array(1)}
    outputs = {"y": FLOAT, "z": FLOAT, "n": TensorProto.INT64, "m": TensorProto.INT64}
    model = build(nodes, feeds, outputs, 11)
    for op in dict.fromkeys(node.op_type for node in nodes):
        yield Row(DEFAULT_DOMAIN, op, 11, Case(model, feeds))


def attention() -> Iterator[Row]:
    """Yield Attention nodes that change at opset 24, if masks may have one column, and at opset 25."""
    heads = dict.fromkeys("qkv", IMAGE)
    masked = row("Attention", 23, {**heads, "mask": X[0, 0] + np.zeros((4, 4), np.float32)}, to=24)
    with_symbolic_dims(masked.case.model)
    yield masked
    yield row("Attention", 24, heads, {"q_num_heads": 2, "kv_num_heads": 2}, to=25)
