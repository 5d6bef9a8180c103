"""Bodies that a node executes: the branch of an If, the body of a Loop or Scan, the nodes of a function."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from opshift.analysis.verification.executable_graph import ExecutableGraph
from opshift.analysis.verification.inputs import Feeds
from opshift.converter.functions.inlined_call import InlinedCall
from opshift.model.graphs import captured_names, graphs_of
from opshift.model.messages import GraphProto
from opshift.model.node import Node
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    called_function,
    canonical_domain,
    function_id,
    function_label,
    opset_imports,
)

Executions = Generator[Feeds, Sequence[object], None]
"""Inputs of each execution of a body; the outputs of each are sent to it."""


SCAN_WITHOUT_BATCHES = 9
"""First opset in which Scan executes its body once for each slice, not also for each element of a batch."""


class Body(NamedTuple):
    """Body of a node.

    Attributes:
        graph: its nodes.
        path: its path for messages.
        captured: the values of enclosing graphs that it reads.
        executions: the inputs of each execution.
        is_repeated: whether the node is a loop.
    """

    graph: ExecutableGraph
    path: str
    captured: Feeds
    executions: Executions
    is_repeated: bool = False


def body_of(outer: ExecutableGraph, position: int, path: str, feeds: Feeds) -> Body | None:
    """Return the body that a node executes; `None` for nodes without one and for unknown ways to execute it.

    Raises CannotRun if the values that it reads cannot be computed.
    """
    proto = outer.nodes[position]
    functions = {function_id(each): each for each in outer.runtime.source.model.functions}
    function = functions.get(called_function(proto))
    if function is not None:
        call = Node.from_proto(proto).copy_proto()
        call.name = ""  # nodes keep the names that they have in the function
        call.input[:] = [name and formal for name, formal in zip(proto.input, function.input, strict=False)]
        results = zip(proto.output, function.output, strict=False)
        call.output[:] = [name and formal for name, formal in results]
        opsets = opset_imports(function.opset_import or outer.runtime.source.model.opset_import)
        inlined = InlinedCall(call, function, str)
        graph = ExecutableGraph(
            outer.runtime, {DEFAULT_DOMAIN: 1, **opsets}, inlined.nodes, filter(None, call.output)
        )
        values = outer.values(filter(None, proto.input), feeds)
        given = {formal: values[name] for name, formal in zip(proto.input, call.input, strict=False) if name}
        return Body(graph, f"function {function_label(function)}", {}, _once(given))
    if canonical_domain(proto.domain) != DEFAULT_DOMAIN or not any(graphs_of(proto)):
        return None
    node = Node.from_proto(proto)
    read = {name for each in graphs_of(proto) for name in captured_names(each)}
    read -= outer.initializers - feeds.keys()
    values = outer.values({*filter(None, proto.input), *read}, feeds)
    captured = {name: values[name] for name in read}
    inputs = [values.get(name) for name in proto.input]
    if proto.op_type == "If":
        attribute = "then_branch" if np.asarray(inputs[0]).all() else "else_branch"
        executions = _once({})
    elif proto.op_type == "Loop":
        attribute = "body"
        executions = _loop(node.attribute(attribute), inputs)
    elif proto.op_type == "Scan" and outer.opsets.get(DEFAULT_DOMAIN, 1) >= SCAN_WITHOUT_BATCHES:
        attribute = "body"
        executions = _scan(node, inputs)
    else:
        return None
    graph = outer.subgraph(node.attribute(attribute))
    name = f"{path} / {proto.name or proto.op_type}.{attribute}"
    return Body(graph, name, captured, executions, proto.op_type != "If")


def _once(feeds: Feeds) -> Executions:
    yield feeds


def _loop(body: GraphProto, inputs: Sequence[Any]) -> Executions:
    trip_count, condition, *carried = [*inputs, None, None][: max(2, len(inputs))]
    names = [each.name for each in body.input]
    for iteration in count():
        is_done = trip_count is not None and iteration >= np.asarray(trip_count).item()
        if is_done or (condition is not None and not np.asarray(condition).all()):
            return
        values = np.asarray(iteration, np.int64), np.asarray(True), *carried
        condition, *outputs = yield dict(zip(names, values, strict=False))
        carried = outputs[: len(carried)]


def _scan(node: Node, inputs: Sequence[Any]) -> Executions:
    names = [each.name for each in node.attribute("body").input]
    scanned = node.attribute("num_scan_inputs")
    states, sequences = inputs[: len(inputs) - scanned], inputs[len(inputs) - scanned :]
    axes = node.attribute("scan_input_axes", [0] * scanned)
    directions = node.attribute("scan_input_directions", [0] * scanned)
    length = sequences[0].shape[axes[0]]
    for iteration in range(length):
        slices = [
            np.take(each, length - 1 - iteration if is_reversed else iteration, axis)
            for each, axis, is_reversed in zip(sequences, axes, directions, strict=True)
        ]
        outputs = yield dict(zip(names, (*states, *slices), strict=True))
        states = outputs[: len(states)]
