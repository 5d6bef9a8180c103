"""Nodes of one operator that differ: in attributes before an upgrade, or in constants before a downgrade."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from in_memory import times_of
from jobs import OURS, THEIRS
from settings import Settings
from tables import Cell, Findings, Table, at_least

NODES = 1_000
SHAPE = [4, 4, 64, 64]
COUNTS = (1, 10, 100, 1_000)
"""Numbers of different values among the nodes."""
ROUNDS = 7

ATTRIBUTES: dict[str, tuple[int, int, Callable[[int], dict[str, Any]]]] = {
    "Slice": (9, 13, lambda i: {"starts": [i], "ends": [i + 8], "axes": [2]}),
    "Clip": (9, 13, lambda i: {"min": -1.0 - i, "max": 1.0 + i}),
    "Pad": (9, 13, lambda i: {"pads": [0, 0, i, 0, 0, 0, 0, i], "value": 0.0}),
    "ReduceL2": (13, 18, lambda i: {"axes": [i % 4, -(i // 4) % 4]}),
}
"""Opsets, and attributes that the upgrade turns into inputs, by operator."""

CONSTANTS: dict[str, tuple[int, int, Callable[[int], list[Any]]]] = {
    "Unsqueeze": (13, 12, lambda i: [np.array([i % 5])]),
    "Slice": (11, 9, lambda i: [np.array([i]), np.array([i + 8]), np.array([2])]),
    "Clip": (11, 10, lambda i: [np.float32(-1 - i), np.float32(1 + i)]),
    "Pad": (11, 10, lambda i: [np.array([0, 0, i, 0, 0, 0, 0, i])]),
}
"""Opsets, and constant inputs that the downgrade turns into attributes, by operator."""

REQUIRED = {1: 2.0, 10: 2.0, 100: 2.0, 1_000: 1.0}
"""Number of different values to the required speedup over ONNX's converter, for attributes."""


def measure(settings: Settings) -> Findings:
    """Measure every operator with each number of different values."""
    rounds = settings.rounds(ROUNDS)
    rows = []
    for op_type, (source, target, attributes) in ATTRIBUTES.items():
        cells: list[Cell] = [f"{op_type}, {source} to {target}, attributes"]
        for count in COUNTS:
            model = _with_attributes(op_type, source, count, attributes)
            cells.append(at_least(_speedup(model, target, rounds), REQUIRED[count]))
        rows.append(cells)
    for op_type, (source, target, constants) in CONSTANTS.items():
        cells = [f"{op_type}, {source} to {target}, constants"]
        for count in COUNTS:
            model = _with_constants(op_type, source, count, constants)
            (ours,) = times_of(model, target, (OURS,), rounds).values()
            cells.append(f"{ours / NODES * 1e6:.0f} µs a node")
        rows.append(cells)
    columns = ("conversion", *(f"{count:,} different" for count in COUNTS))
    note = f"{NODES:,} nodes of one operator. Upgrades: times as fast as ONNX, which lacks these downgrades."
    return Findings([Table("Different values", columns, rows, note)])


def _speedup(model: onnx.ModelProto, target: int, rounds: int) -> float:
    times = times_of(model, target, (OURS, THEIRS), rounds)
    return times[THEIRS] / times[OURS]


def _with_attributes(
    op_type: str, opset: int, count: int, attributes: Callable[[int], dict[str, Any]]
) -> onnx.ModelProto:
    nodes = [helper.make_node(op_type, ["x"], [f"y{i}"], **attributes(i % count)) for i in range(NODES)]
    return _model(nodes, opset, [])


def _with_constants(
    op_type: str, opset: int, count: int, constants: Callable[[int], list[Any]]
) -> onnx.ModelProto:
    values = [constants(i) for i in range(count)]
    weights = [
        numpy_helper.from_array(np.asarray(value), f"c{i}_{position}")
        for i, inputs in enumerate(values)
        for position, value in enumerate(inputs)
    ]
    nodes = []
    for i in range(NODES):
        names = [f"c{i % count}_{position}" for position in range(len(values[0]))]
        nodes.append(helper.make_node(op_type, ["x", *names], [f"y{i}"]))
    return _model(nodes, opset, weights)


def _model(nodes: list[onnx.NodeProto], opset: int, weights: list[onnx.TensorProto]) -> onnx.ModelProto:
    data = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    result = helper.make_value_info(
        nodes[-1].output[0], helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    )
    graph = helper.make_graph(nodes, "g", [data], [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
