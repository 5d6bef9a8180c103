"""The work grows with the model and no faster: four times the nodes, four times the calls.

Calls of functions are counted, in Python and in C; nothing is timed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from support.running import build

from opshift.converter.convert import convert, plan_version
from opshift.converter.report import Report

X = np.ones((1, 4, 8), np.float32)
SMALL, LARGE = 1_000, 4_000
SLACK = 1.05
"""What lists that grow and the like may add."""


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **stated: Any) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, **stated)
    return made


def chain(step: Callable[[int, str, str], list[NodeProto]], count: int, opset: int = 9) -> onnx.ModelProto:
    """About `count` nodes, each after the one before."""
    nodes: list[NodeProto] = []
    value, number = "x", 0
    while len(nodes) < count:
        nodes += step(number, value, f"v{number}")
        value, number = f"v{number}", number + 1
    return build(nodes, {"x": X, "yes": np.array(True)}, [value], opset)


def unchanged(i: int, a: str, b: str) -> list[NodeProto]:
    return [node(("Relu", "Sigmoid", "Tanh", "Neg")[i % 4], [a], [b])]


def changed(i: int, a: str, b: str) -> list[NodeProto]:
    """Some ask for types, some for ranks, some for constants, some become several nodes."""
    return [
        node("Clip", [a], [b + "c"], min=float(i)),
        node("Unsqueeze", [b + "c"], [b + "u"], axes=[0]),
        node("Softmax", [b + "u"], [b + "s"], axis=1),
        node("ReduceMean", [b + "s"], [b + "m"], axes=[0], keepdims=0),
        node("Pad", [b + "m"], [b + "p"], pads=[0] * 6),
        node("Dropout", [b + "p"], [b]),
    ]


def with_graphs(i: int, a: str, b: str) -> list[NodeProto]:
    """Four nodes, two of them in graphs that read what is around them and change."""
    bodies = {
        name: helper.make_graph(
            [node("Clip", [a], [b + name[0]], min=0.5)],
            name,
            [],
            [helper.make_tensor_value_info(b + name[0], TensorProto.FLOAT, None)],
        )
        for name in ("then_branch", "else_branch")
    }
    return [node("If", ["yes"], [b + "_"], **bodies), node("Relu", [b + "_"], [b])]


def shapes(i: int, a: str, b: str) -> list[NodeProto]:
    """Every rank depends on the shape of the node before."""
    return [
        node("Shape", [a], [b + "s"]),
        node("Reshape", [a, b + "s"], [b + "r"]),
        node("Softmax", [b + "r"], [b], axis=2),
    ]


def weighted(count: int) -> onnx.ModelProto:
    """Every node has a weight of its own, half of them unused ones beside."""
    model = chain(lambda i, a, b: [node("Add", [a, f"w{i}"], [b])], count)
    for i in range(count):
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), f"w{i}"))
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), f"unused{i}"))
    return model


def wide(count: int) -> onnx.ModelProto:
    """One node reads what all others make."""
    nodes = [node("Clip", ["x"], [f"v{i}"], min=0.5) for i in range(count)]
    nodes.append(node("Concat", [f"v{i}" for i in range(count)], ["y"], axis=0))
    return build(nodes, {"x": X}, ["y"], 9)


def with_functions(count: int) -> onnx.ModelProto:
    """A function for every other node."""
    imports = [helper.make_opsetid("", 9)]
    model = chain(lambda i, a, b: [node(f"F{i}", [a], [b], domain="local")], count // 2)
    model.opset_import.append(helper.make_opsetid("local", 1))
    for i in range(count // 2):
        body = [node("Unsqueeze", ["a"], ["b"], axes=[0])]
        model.functions.append(helper.make_function("local", f"F{i}", ["a"], ["b"], body, imports))
    return model


def with_taken_names(count: int) -> onnx.ModelProto:
    """The names that new values would have are all there already."""
    model = chain(changed, count)
    for i in range(count):
        name = f"const_{i}" if i else "const"
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), name))
    return model


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


MODELS: list[tuple[str, Callable[[int], onnx.ModelProto]]] = [
    ("nodes that stay", lambda n: chain(unchanged, n)),
    ("nodes that change", lambda n: chain(changed, n)),
    ("nodes with graphs", lambda n: chain(with_graphs, n // 2)),
    ("shapes that depend on shapes", lambda n: chain(shapes, n)),
    ("weights", weighted),
    ("a node that reads all others", wide),
    ("functions", with_functions),
    ("names that are taken", with_taken_names),
]


@pytest.mark.parametrize("make", [row[1] for row in MODELS], ids=[row[0] for row in MODELS])
def test_the_work_grows_as_the_model_with(make: Callable[[int], onnx.ModelProto]) -> None:
    small, large = make(SMALL), make(LARGE)
    convert(make(10), 21)  # definitions are loaded, and routes found, once
    few = calls_of(lambda: convert(small, 21))
    many = calls_of(lambda: convert(large, 21))
    assert many < few * (LARGE / SMALL) * SLACK


def test_refusals_grow_as_the_model() -> None:
    def plan(count: int) -> Report:
        model = chain(lambda i, a, b: [node("Nonesuch", [a], [b])], count)
        return Report.of(plan_version(model, 21))

    plan(10)
    few, many = (calls_of(lambda count=count: plan(count)) for count in (SMALL // 4, LARGE // 4))  # type: ignore[misc]  # mypy infers no type of a default
    assert many < few * (LARGE / SMALL) * SLACK


def test_a_node_that_stays_costs_few_calls() -> None:
    """Nodes of an operator that does not change are looked at once, together."""
    few, many = (calls_of(_converting(chain(unchanged, count))) for count in (SMALL, LARGE))
    assert (many - few) / (LARGE - SMALL) < 10


def _converting(model: onnx.ModelProto) -> Callable[[], object]:
    return lambda: convert(model, 21)
