"""Nodes that hold graphs: If, Loop and Scan; and the wrapping in an optional."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from support.graphs.graph import Graph
from support.graphs.values import Value, is_custom, type_proto

FIRST_WITH_ANY_SHAPE = 11
"""Before it, both branches of an If give the same shape."""
Grow = Callable[[Graph], None]
"""Adds some nodes to a graph."""


def body_of(graph: Graph, inputs: Sequence[Value], outputs: Sequence[Value]) -> onnx.GraphProto:
    """The graph of a node."""
    return helper.make_graph(
        graph.nodes,
        graph.name("body"),
        [helper.make_value_info(v.name, type_proto(v.data, v.shape)) for v in inputs],
        [helper.make_value_info(v.name, type_proto(v.data, v.shape)) for v in outputs],
        [numpy_helper.from_array(array, name) for name, array in graph.initializers.items()],
    )


def inside(graph: Graph, inputs: Sequence[Value] = ()) -> Graph:
    """A graph within another."""
    inner = Graph(graph.draw, graph.opsets, graph.ir_version, 0, parent=graph)
    inner.values += inputs
    return inner


def _own(graph: Graph, value: Value) -> Value:
    """The value under a name that the graph itself makes."""
    made = graph.add("Identity", [value], 1)
    assert made, f"{value.type} cannot be passed on"
    return made[0]


def _result(graph: Graph, like: Callable[[Value], bool]) -> Value | None:
    plain = (each for each in graph.values if each.is_tensor and not is_custom(each.data))
    fitting = [each for each in plain if like(each)]
    return _own(graph, graph.one_of(fitting)) if fitting else None


def add_if(graph: Graph, grow: Grow) -> bool:
    """Two branches, of which one runs."""
    condition = graph.parameter(graph.chance(50), "bool")
    one, other = inside(graph), inside(graph)
    grow(one)
    result = _result(one, lambda value: True)
    if result is None:
        return False
    grow(other)
    any_shape = graph.opset >= FIRST_WITH_ANY_SHAPE
    instead = _result(other, lambda v: v.type == result.type and (any_shape or v.shape == result.shape))
    instead = instead or _own(other, other.data(result.type, result.shape))
    attributes = {"then_branch": body_of(one, [], [result]), "else_branch": body_of(other, [], [instead])}
    return graph.add("If", [condition], 1, attributes, exact=result.exact and instead.exact) is not None


def add_loop(graph: Graph, grow: Grow) -> bool:
    """A state that goes round, and what each turn adds to a list."""
    state = graph.data(graph.one_of(["float", "float", "int64", "double"]), (graph.draw_size(), 2))
    count = graph.parameter(graph.draw_size(), "int64")
    inner = inside(graph)
    inputs = [
        Value(inner.name("i"), np.array(0)),
        Value(inner.name("c"), np.array(True)),
        Value(inner.name("s"), state.data),
    ]
    inner.values += inputs
    grow(inner)
    following = _result(inner, lambda v: v.type == state.type and v.shape == state.shape)
    scanned = _result(inner, lambda value: True)
    assert following is not None
    assert scanned is not None
    go_on = _own(inner, inputs[1])
    body = body_of(inner, inputs, [go_on, following, scanned])
    exact = following.exact and scanned.exact
    return graph.add("Loop", [count, None, state], 2, {"body": body}, exact=exact) is not None


def add_scan(graph: Graph, grow: Grow) -> bool:
    """A state, and a body that sees one slice after the other."""
    state = graph.data("float", (2,))
    listed = graph.data(graph.one_of(["float", "int64"]), (graph.draw_size(), 2))
    inner = inside(graph)
    inputs = [Value(inner.name("s"), state.data), Value(inner.name("e"), listed.data[0])]
    inner.values += inputs
    grow(inner)
    following = _result(inner, lambda v: v.type == state.type and v.shape == state.shape)
    scanned = _result(inner, lambda value: True)
    assert following is not None
    assert scanned is not None
    attributes: dict[str, Any] = {"body": body_of(inner, inputs, [following, scanned]), "num_scan_inputs": 1}
    if graph.opset >= 9:
        attributes |= {"scan_input_directions": [1]} if graph.chance(30) else {}
        attributes |= {"scan_output_axes": [scanned.rank]} if graph.chance(30) else {}
        attributes |= {"scan_output_directions": [1]} if graph.chance(30) else {}
    read: list[Value | None] = (
        [state, listed] if graph.opset >= 9 else [None, _batched(graph, state), _batched(graph, listed)]
    )
    exact = following.exact and scanned.exact
    return graph.add("Scan", read, 2, attributes, exact=exact) is not None


def _batched(graph: Graph, value: Value) -> Value:
    made = graph.add("Unsqueeze", [value], 1, {"axes": [0]})
    assert made
    return made[0]


def add_optional(graph: Graph, grow: Grow) -> bool:
    """A value in an optional, asked whether it is there, and taken out."""
    value = graph.pick(lambda value: value.is_tensor and value.type in ("float", "int64")) or graph.data(
        "float", (2,)
    )
    boxed, has, got = (graph.name("o") for _ in range(3))
    nodes = [
        helper.make_node("Optional", [value.name], [boxed]),
        helper.make_node("OptionalHasElement", [boxed], [has]),
        helper.make_node("OptionalGetElement", [boxed], [got]),
    ]
    return graph.add_nodes(nodes, [has, got]) is not None


SINCE: dict[str, tuple[int, Callable[[Graph, Grow], bool]]] = {
    "If": (1, add_if), "Loop": (1, add_loop), "Scan": (8, add_scan), "Optional": (15, add_optional),
}  # fmt: skip
"""From which opset on there are such nodes, and how one is added."""
