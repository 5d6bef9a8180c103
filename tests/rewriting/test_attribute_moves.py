"""A rewrite that serves nodes with other attribute values writes the bytes of a rewrite of its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import opshift
from opshift.model.node import Node
from opshift.rewriting import rewrite_cache
from opshift.rewriting.result import ComputedRewrite
from opshift.rewriting.rewrite_node import rewrite_node

FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.5,
    6.0,
    1e-30,
    7e4,
    3.4028234663852886e38,
    -3.4028234663852886e38,
    np.inf,
    np.nan,
)
TYPES = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
REDUCTIONS = ("ReduceMean", "ReduceL2", "ReduceMax", "ReduceSum")


def integers(low: int, high: int, longest: int = 3) -> Callable[[random.Random], list[int]]:
    return lambda r: [r.randint(low, high) for _ in range(r.randint(1, longest))]


def one_of(*values: object) -> Callable[[random.Random], Any]:
    return lambda r: r.choice(values)


CASES: dict[str, tuple[int, int, dict[str, Callable[[random.Random], Any]]]] = {
    "Slice": (9, 13, {"starts": integers(-3, 9), "ends": integers(-3, 2**40), "axes": integers(0, 4)}),
    "Clip": (9, 13, {"min": one_of(*FLOATS), "max": one_of(*FLOATS)}),
    "Pad": (
        10, 13, {"pads": integers(-2, 9, 8), "value": one_of(*FLOATS), "mode": one_of("constant", "edge")}
    ),
    "Squeeze": (11, 13, {"axes": integers(-4, 5)}),
    "Unsqueeze": (11, 13, {"axes": integers(-6, 7)}),
    "Split": (11, 13, {"split": integers(0, 4), "axis": one_of(0, 1, -1)}),
    "TopK": (9, 11, {"k": one_of(1, 2, 3, 10**10), "axis": one_of(0, 1, 9)}),
    "Upsample": (8, 9, {"scales": lambda r: [r.choice(FLOATS) for _ in range(4)], "mode": one_of("nearest")}),
    **{
        each: (12, 18, {"axes": integers(-4, 4), "keepdims": one_of(0, 1)}) for each in REDUCTIONS
    },
}  # fmt: skip


def node_with_random_attributes(op_type: str, seed: int) -> onnx.ModelProto:
    """Return a model of one node with random attributes, some missing or out of range."""
    opset, _, attributes = CASES[op_type]
    choices = random.Random(f"{op_type} {seed}")
    drawn = {name: draw(choices) for name, draw in attributes.items() if choices.random() < 0.9}
    outputs = ["y", "z"] if op_type in ("Split", "TopK") else ["y"]
    node = helper.make_node(op_type, ["x"], outputs, **drawn)
    data = helper.make_tensor_value_info("x", choices.choice(TYPES), [2, 3, 4, 5])
    graph = helper.make_graph([node], "g", [data], [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)


def converted(model: onnx.ModelProto, target: int) -> bytes | str:
    try:
        return bytes(opshift.convert_version(model, target).SerializeToString())
    except opshift.ConversionRefused as error:
        return str(error)


@pytest.mark.parametrize("op_type", CASES)
def test_shared_rewrite_writes_the_same_bytes(op_type: str) -> None:
    target = CASES[op_type][1]
    models = [node_with_random_attributes(op_type, seed) for seed in range(60)]
    alone = []
    for model in models:
        rewrite_cache._shared_rewrites.cache_clear()
        alone.append(converted(model, target))
    rewrite_cache._shared_rewrites.cache_clear()
    assert [converted(model, target) for model in models] == alone
    assert any(isinstance(each, bytes) for each in alone)


@pytest.mark.parametrize(("op_type", "fixed"), [("Slice", {"axes": [1]}), ("Clip", {}), ("Pad", {})])
def test_nodes_with_other_values_share_a_rewrite(
    op_type: str, fixed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    values: dict[str, Callable[[int], dict[str, Any]]] = {
        "Slice": lambda i: {"starts": [i], "ends": [i + 9]},
        "Clip": lambda i: {"min": -1.0 - i, "max": 1.0 + i},
        "Pad": lambda i: {"pads": [0, i + 1, 0, 0, 0, 0, i, 0]},
    }
    nodes = [helper.make_node(op_type, ["x"], [f"y{i}"], **values[op_type](i), **fixed) for i in range(20)]
    data = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4, 5])
    outputs = [helper.make_empty_tensor_value_info(node.output[0]) for node in nodes]
    graph = helper.make_graph(nodes, "g", [data], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=7)
    computed: list[object] = []

    def record(node: Node, *arguments: Any) -> ComputedRewrite:
        computed.append(node)
        return rewrite_node(node, *arguments)

    monkeypatch.setattr(rewrite_cache, "rewrite_node", record)
    rewrite_cache._shared_rewrites.cache_clear()
    opshift.convert_version(model, 13)
    assert len(computed) == 1
