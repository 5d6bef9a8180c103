"""Nodes with subgraphs (If, Loop, Scan), and values in optionals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from random_graphs.graph import Graph
from random_graphs.values import Value, is_custom, type_proto

MIN_OPSET_ANY_BRANCH_SHAPE = 11
"""Before this opset, both branches of an If return the same shape."""
Grow = Callable[[Graph], None]
"""A function that adds some nodes to a graph."""


def body_of(graph: Graph, inputs: Sequence[Value], outputs: Sequence[Value]) -> onnx.GraphProto:
    """Return a graph as the subgraph of a node."""
    return helper.make_graph(
        graph.nodes,
        graph.name("body"),
        [helper.make_value_info(v.name, type_proto(v.data, v.shape)) for v in inputs],
        [helper.make_value_info(v.name, type_proto(v.data, v.shape)) for v in outputs],
        [numpy_helper.from_array(array, name) for name, array in graph.initializers.items()],
    )


def subgraph(graph: Graph, inputs: Sequence[Value] = ()) -> Graph:
    """Return an empty subgraph."""
    inner = Graph(graph.draw, graph.opsets, graph.ir_version, 0, parent=graph)
    inner.values += inputs
    return inner


def _pass_on(graph: Graph, value: Value) -> Value:
    """Return the value under a new name that the graph produces."""
    added = graph.add("Identity", [value], 1)
    assert added, f"{value.type} has no Identity"
    return added[0]


def _pick_result(graph: Graph, fits: Callable[[Value], bool]) -> Value | None:
    tensors = (each for each in graph.values if each.is_tensor and not is_custom(each.data))
    candidates = [each for each in tensors if fits(each)]
    return _pass_on(graph, graph.one_of(candidates)) if candidates else None


def add_if(graph: Graph, grow: Grow) -> bool:
    """Add an If with two branches."""
    condition = graph.parameter(graph.chance(50), "bool")
    then_graph, else_graph = subgraph(graph), subgraph(graph)
    grow(then_graph)
    result = _pick_result(then_graph, lambda value: True)
    if result is None:
        return False
    grow(else_graph)
    any_shape = graph.opset >= MIN_OPSET_ANY_BRANCH_SHAPE
    alternative = _pick_result(
        else_graph, lambda v: v.type == result.type and (any_shape or v.shape == result.shape)
    )
    alternative = alternative or _pass_on(else_graph, else_graph.data(result.type, result.shape))
    attributes = {
        "then_branch": body_of(then_graph, [], [result]),
        "else_branch": body_of(else_graph, [], [alternative]),
    }
    return graph.add("If", [condition], 1, attributes, exact=result.exact and alternative.exact) is not None


def add_loop(graph: Graph, grow: Grow) -> bool:
    """Add a Loop with one state and one scan output."""
    state = graph.data(graph.one_of(["float", "float", "int64", "double"]), (graph.generate_size(), 2))
    count = graph.parameter(graph.generate_size(), "int64")
    inner = subgraph(graph)
    inputs = [
        Value(inner.name("i"), np.array(0)),
        Value(inner.name("c"), np.array(True)),
        Value(inner.name("s"), state.data),
    ]
    next_state, scanned = _grow_body(inner, inputs, state, grow)
    go_on = _pass_on(inner, inputs[1])
    body = body_of(inner, inputs, [go_on, next_state, scanned])
    exact = next_state.exact and scanned.exact
    return graph.add("Loop", [count, None, state], 2, {"body": body}, exact=exact) is not None


def _grow_body(inner: Graph, inputs: list[Value], state: Value, grow: Grow) -> tuple[Value, Value]:
    """Fill the body of a loop, and return its next state and a value that the loop collects."""
    inner.values += inputs
    grow(inner)
    next_state = _pick_result(inner, lambda v: v.type == state.type and v.shape == state.shape)
    scanned = _pick_result(inner, lambda value: True)
    assert next_state is not None
    assert scanned is not None
    return next_state, scanned


def add_scan(graph: Graph, grow: Grow) -> bool:
    """Add a Scan with one state and one scanned input."""
    state = graph.data("float", (2,))
    sequence = graph.data(graph.one_of(["float", "int64"]), (graph.generate_size(), 2))
    inner = subgraph(graph)
    inputs = [Value(inner.name("s"), state.data), Value(inner.name("e"), sequence.data[0])]
    next_state, scanned = _grow_body(inner, inputs, state, grow)
    attributes: dict[str, Any] = {"body": body_of(inner, inputs, [next_state, scanned]), "num_scan_inputs": 1}
    if graph.opset >= 9:
        attributes |= {"scan_input_directions": [1]} if graph.chance(30) else {}
        attributes |= {"scan_output_axes": [scanned.rank]} if graph.chance(30) else {}
        attributes |= {"scan_output_directions": [1]} if graph.chance(30) else {}
    read: list[Value | None] = (
        [state, sequence]
        if graph.opset >= 9
        else [None, _add_batch_dimension(graph, state), _add_batch_dimension(graph, sequence)]
    )
    exact = next_state.exact and scanned.exact
    return graph.add("Scan", read, 2, attributes, exact=exact) is not None


def _add_batch_dimension(graph: Graph, value: Value) -> Value:
    added = graph.add("Unsqueeze", [value], 1, {"axes": [0]})
    assert added
    return added[0]


def add_optional(graph: Graph, grow: Grow) -> bool:
    """Add an Optional, a test for its value, and the extraction of the value."""
    value = graph.pick(lambda value: value.is_tensor and value.type in ("float", "int64")) or graph.data(
        "float", (2,)
    )
    optional, has_value, element = (graph.name("o") for _ in range(3))
    nodes = [
        helper.make_node("Optional", [value.name], [optional]),
        helper.make_node("OptionalHasElement", [optional], [has_value]),
        helper.make_node("OptionalGetElement", [optional], [element]),
    ]
    return graph.add_nodes(nodes, [has_value, element]) is not None


BUILDERS: dict[str, tuple[int, Callable[[Graph, Grow], bool]]] = {
    "If": (1, add_if), "Loop": (1, add_loop), "Scan": (8, add_scan), "Optional": (15, add_optional),
}  # fmt: skip
"""The first opset with each kind of node, and the function that adds one."""
