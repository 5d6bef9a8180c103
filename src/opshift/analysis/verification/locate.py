"""Search for the first node with a value that differs between a model and its conversion.

A `GraphPair` computes the values of a graph in both models, from the same model inputs.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from opshift.analysis.verification.compare import compare_output
from opshift.analysis.verification.executable_graph import ExecutableGraph, ModelRuntime
from opshift.analysis.verification.inputs import Feeds
from opshift.analysis.verification.interface_casts import cast_like
from opshift.analysis.verification.numpy_types import Array, array_element_type
from opshift.analysis.verification.result import DifferenceLocation, OutputCompared
from opshift.analysis.verification.runtimes import CannotRun
from opshift.converter.convert import plan_with
from opshift.converter.functions.inlined_call import InlinedCall
from opshift.converter.options import ALLOW_VALUES, Options
from opshift.converter.report import ChangedNode, changed_node
from opshift.model.errors import OpshiftError
from opshift.model.graphs import captured_names, graphs_of, node_place, passed_inputs
from opshift.model.messages import GraphProto, ModelProto
from opshift.model.node import Node
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    called_function,
    canonical_domain,
    function_id,
    function_label,
    opset_imports,
)
from opshift.model.progress import Progress
from opshift.registry.registry import Registry


class GraphPair(NamedTuple):
    """A graph in the original model, its counterpart in the converted model, and the inputs of both graphs.

    Attributes:
        original, converted, feeds: the graphs and their inputs.
        path: the path of the original graph for messages.
        progress: progress of the search.
        enclosing: labels of the nodes that execute the graph, outermost first.
        outer: the node that executes the graph; `None` for the main graph.
    """

    original: ExecutableGraph
    converted: ExecutableGraph
    feeds: tuple[Feeds, Feeds]
    path: str
    progress: Progress
    enclosing: tuple[str, ...] = ()
    outer: DifferentNode | None = None

    def values(self, names: Sequence[str]) -> Iterator[tuple[str, object, object]]:
        """Yield each name with its value in the original and in the converted graph."""
        original, converted = (
            graph.values(names, feeds) for graph, feeds in zip(self[:2], self.feeds, strict=True)
        )
        for name in names:
            yield name, original[name], converted[name]

    def label_of(self, position: int) -> str:
        """Return the place of a node of the original graph, for messages."""
        return node_place(self.path, self.original.nodes[position])


class DifferentNode(NamedTuple):
    """Node with an output that differs between the models.

    Attributes:
        pair: the graph of the node.
        position: position of the node in the original.
        value: comparison of the output.
        smaller: comparisons of earlier values in the graph that differ within the tolerance.
    """

    pair: GraphPair
    position: int
    value: OutputCompared
    smaller: tuple[OutputCompared, ...] = ()

    @property
    def label(self) -> str:
        """Place of the node for messages: graph and name."""
        return self.pair.label_of(self.position)


def compare_values(
    name: str, original: object, converted: object, tolerance: float | None
) -> OutputCompared | None:
    """Compare two values; return `None` for equal arrays, or if the types cannot be compared.

    A conversion may compute a value in another integer or float type; such a value is cast first.
    """
    if isinstance(original, np.ndarray) and isinstance(converted, np.ndarray):
        # equal arrays are the usual case, found in a tenth of the time of `compare_output`
        if np.array_equal(original, converted):
            return None
        cast: Array = cast_like(converted, original)
        if array_element_type(original) != array_element_type(cast):
            return None
        converted = cast
    elif type(original) is not type(converted):
        return None
    return compare_output(name, [original], [converted], tolerance)


Executions = Generator[Feeds, Sequence[object], None]
"""Generator of the inputs of each execution of a body; its `send` takes the outputs of the execution."""


SCAN_WITHOUT_BATCHES = 9
"""First opset in which Scan executes its body once for each slice, not also for each element of a batch."""


class ExecutedBody(NamedTuple):
    """Function body or subgraph that a node executes.

    Attributes:
        graph: the nodes of the body.
        path: the path of the body for messages.
        captured: the values of enclosing graphs that the body reads.
        executions: the inputs of each execution.
        is_repeated: whether the node is a loop.
    """

    graph: ExecutableGraph
    path: str
    captured: Feeds
    executions: Executions
    is_repeated: bool = False


def body_of(outer: ExecutableGraph, position: int, path: str, feeds: Feeds) -> ExecutedBody | None:
    """Return the body of a function call, If, Loop or Scan (opset 9 and newer); `None` for other nodes.

    Raises CannotRun if the values that the body reads cannot be computed.
    """
    proto = outer.nodes[position]
    functions = {function_id(each): each for each in outer.runtime.source.model.functions}
    function = functions.get(called_function(proto))
    if function is not None:
        call = Node.from_proto(proto).copy_proto()
        call.name = ""  # otherwise InlinedCall renames a node of the body to the name of the call
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
        return ExecutedBody(graph, f"function {function_label(function)}", {}, _execute_once(given))
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
        executions = _execute_once({})
    elif proto.op_type == "Loop":
        attribute = "body"
        executions = _loop_executions(node.attribute(attribute), inputs)
    elif proto.op_type == "Scan" and outer.opsets.get(DEFAULT_DOMAIN, 1) >= SCAN_WITHOUT_BATCHES:
        attribute = "body"
        executions = _scan_executions(node, inputs)
    else:
        return None
    graph = outer.subgraph(node.attribute(attribute))
    name = f"{path} / {proto.name or proto.op_type}.{attribute}"
    return ExecutedBody(graph, name, captured, executions, proto.op_type != "If")


def _execute_once(feeds: Feeds) -> Executions:
    yield feeds


def _loop_executions(body: GraphProto, inputs: Sequence[Any]) -> Executions:
    trip_count, condition, *carried = [*inputs, None, None][: max(2, len(inputs))]
    names = [each.name for each in passed_inputs(body)]
    for iteration in count():
        is_done = trip_count is not None and iteration >= np.asarray(trip_count).item()
        if is_done or (condition is not None and not np.asarray(condition).all()):
            return
        values = np.asarray(iteration, np.int64), np.asarray(True), *carried
        condition, *outputs = yield dict(zip(names, values, strict=False))
        carried = outputs[: len(carried)]


def _scan_executions(node: Node, inputs: Sequence[Any]) -> Executions:
    names = [each.name for each in passed_inputs(node.attribute("body"))]
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


MAX_CANDIDATES = 20
"""Maximum number of nodes in a graph to run on equal inputs, to find the source of a difference."""

Changes: TypeAlias = Mapping[tuple[str, str], ChangedNode]
"""Nodes that the conversion changes, by the path of their graph and the name of an output."""


def describe(found: DifferentNode, tolerance: float | None) -> DifferenceLocation:
    """Return the location of `found`, or of an earlier changed node that introduces the difference."""
    runtime = found.pair.original.runtime
    changes = _changed_nodes(
        runtime.source.model, found.pair.converted.runtime.source.model, runtime.registry
    )
    source = _source_of_difference(found, changes, tolerance)
    node, opsets = source.pair.original.nodes[source.position], source.pair.original.opsets
    domain = canonical_domain(node.domain)
    version = runtime.registry.known_at(node.op_type, opsets.get(domain, 0), domain)
    change = changes.get((source.pair.path, source.value.name))
    return DifferenceLocation(
        source.label,
        str(version.id) if version else f"{domain}.{node.op_type}",
        change.becomes if change else (),
        change.steps if change else (),
        source.value,
        source.pair.enclosing,
        "" if source is found else found.label,
    )


def _source_of_difference(found: DifferentNode, changes: Changes, tolerance: float | None) -> DifferentNode:
    """Return the earlier changed node with the largest difference, if `found` only amplifies a difference.

    An unchanged node computes equal results from equal inputs, so its difference starts at a changed node.
    Without such a node, return `found`.
    """
    own = _own_difference(found, found.value, changes, tolerance)
    if own is not None and not own.equal:
        return found
    level: DifferentNode | None = found
    while level is not None:
        graph = level.pair.original
        ancestors = set(graph.ancestors(graph.reads[level.position]))
        candidates = [each for each in level.smaller if graph.producers[each.name] in ancestors]
        candidates.sort(key=_severity_of, reverse=True)
        compared = [_own_difference(level, each, changes, tolerance) for each in candidates[:MAX_CANDIDATES]]
        values = [each for each in (*compared, own) if each is not None and each.absolute]
        if values:
            worst = max(values, key=_severity_of)
            return level._replace(position=graph.producers[worst.name], value=worst)
        level, own = level.pair.outer, None
    return found


def _severity_of(value: OutputCompared) -> float:
    """Return the largest difference divided by its limit, to rank values of different types and sizes."""
    return value.worst.difference / (value.worst.allowed or 1) if value.worst else 0.0


def _own_difference(
    level: DifferentNode, value: OutputCompared, changes: Changes, tolerance: float | None
) -> OutputCompared | None:
    """Compare a changed node on equal inputs; `None` if unchanged or equal, `value` if this does not run."""
    pair, name = level.pair, value.name
    if (pair.path, name) not in changes:
        return None
    read = [
        each
        for each in pair.original.reads[pair.original.producers[name]]
        if each not in pair.original.initializers
    ]
    try:
        original = pair.original.values([*read, name], pair.feeds[0])
        known = pair.converted.producers.keys() | pair.feeds[1].keys()
        given = {each: cast_like(original[each], pair.feeds[1].get(each)) for each in read if each in known}
        feeds = {**pair.feeds[1], **given}
        converted = pair.converted.values([name], feeds)
    except CannotRun:  # for example, if the converted model computes an input in a different type
        return value
    return compare_values(name, original[name], converted[name], tolerance)


def _changed_nodes(original: ModelProto, converted: ModelProto, registry: Registry) -> Changes:
    """Return the nodes that a conversion of the original to the opsets of the converted model changes."""
    before, after = (opset_imports(each.opset_import, each.ir_version) for each in (original, converted))
    target = {each: opset for each, opset in after.items() if before.get(each, opset) != opset}
    if not target:
        return {}
    try:
        plan = plan_with(original, Options.of(target, allow=ALLOW_VALUES, registry=registry))
    except OpshiftError:  # planning fails if the converted model is not a conversion of the original
        return {}
    return {
        # The path of a specialized function contains its callers: remove them.
        (re.sub(r", called by .*?(?= / |$)", "", change.path), name): changed_node(change, container)
        for container in plan.containers()
        for change in container.changes
        for name in change.record[4]
    }


FIRST_COUNT, GROWTH = 8, 4
"""Number of values that the first run returns, and the factor by which later runs may return more."""

MAX_BYTES = 256 * 2**20
"""Approximate limit of the bytes that a run of one model returns: all values are in memory at once."""

MAX_FAILURES = 20
"""Number of failed runs after which the search in a graph ends, because each run loads a model."""

MAX_EXECUTIONS = 1000
"""Maximum number of executions of a body to compare, such as iterations of a Loop."""


def locate(
    models: tuple[ModelRuntime, ModelRuntime],
    feeds: Feeds,
    different: Sequence[OutputCompared],
    tolerance: float | None,
    progress: Progress,
) -> DifferenceLocation | None:
    """Return the first node, in topological order, whose output differs between two models.

    Only nodes that the different outputs depend on, and values with a name in both models, are compared.
    Values of subgraphs and functions are compared in the first execution that differs. If the node only
    enlarges a difference within the tolerance, return the node that introduces this difference instead.
    Return `None` if no node produces the different output.
    """
    original, converted = models
    both_feeds = feeds, converted.source.casts.cast_inputs(feeds)
    pair = GraphPair(original.main_graph(), converted.main_graph(), both_feeds, "graph", progress)
    found = _search_graph(pair, [each.name for each in different], tolerance)
    if found is None:
        # No value with a name in both models differs: report the producer of the output.
        position = pair.original.producers.get(different[0].name)
        if position is None:
            return None
        found = DifferentNode(pair, position, different[0])
    return describe(found, tolerance)


def _search_graph(pair: GraphPair, outputs: Sequence[str], tolerance: float | None) -> DifferentNode | None:
    found = _first_difference(pair, outputs, tolerance)
    if found is None:
        return None
    try:
        return _search_body(found, tolerance) or found
    except CannotRun:
        return found


def _first_difference(
    pair: GraphPair, outputs: Sequence[str], tolerance: float | None
) -> DifferentNode | None:
    graph, produced = pair.original, pair.converted.producers
    names = [
        name for each in graph.ancestors(outputs) for name in graph.nodes[each].output if name in produced
    ]
    smaller: list[OutputCompared] = []
    size, failures, done = FIRST_COUNT, 0, 0
    progress = pair.progress
    progress.total, progress.note = len(names), f"searching {pair.path} for the first difference"
    while done < len(names) and failures < MAX_FAILURES:
        progress.done = done
        listed = names[done : done + size]
        try:
            byte_count = 0
            for name, one, other in pair.values(listed):
                value = compare_values(name, one, other, tolerance)
                if value is not None and not value.equal:
                    return DifferentNode(pair, graph.producers[name], value, tuple(smaller))
                smaller += [value] if value and value.absolute else []
                byte_count += getattr(one, "nbytes", 0)
        # The runtime may be unable to return one of the values: halve the list to find and skip this value.
        except CannotRun:
            failures += 1
            done += len(listed) == 1
            size = max(1, len(listed) // 2)
            continue
        done += len(listed)
        size = min(len(listed) * GROWTH, MAX_BYTES * len(listed) // max(byte_count, 1)) or 1
    return None


def _search_body(found: DifferentNode, tolerance: float | None) -> DifferentNode | None:
    """Search the subgraph or function body of a node, in the first execution with different outputs."""
    pair, name = found.pair, found.value.name
    positions = found.position, pair.converted.producers[name]
    one, other = (
        body_of(graph, position, pair.path, feeds)
        for graph, position, feeds in zip(pair[:2], positions, pair.feeds, strict=True)
    )
    if one is None or other is None:
        return None
    inputs = next(one.executions, None), next(other.executions, None)
    for number in range(MAX_EXECUTIONS):
        if inputs[0] is None or inputs[1] is None:
            return None
        feeds = {**one.captured, **inputs[0]}, {**other.captured, **inputs[1]}
        place = found.label + (f" in iteration {number}" if one.is_repeated else "")
        inner = GraphPair(
            one.graph, other.graph, feeds, one.path, pair.progress, (*pair.enclosing, place), found
        )
        outputs = one.graph.execute(feeds[0]), other.graph.execute(feeds[1])
        compared = zip(one.graph.outputs, *outputs, strict=False)
        values = [compare_values(*each, tolerance) for each in compared]
        different = [each.name for each in values if each and not each.equal]
        if different:
            return _search_graph(inner, different, tolerance)
        inputs = _next_feeds(one.executions, outputs[0]), _next_feeds(other.executions, outputs[1])
    return None


def _next_feeds(executions: Executions, outputs: Sequence[object]) -> Feeds | None:
    try:
        return executions.send(outputs)
    except StopIteration:
        return None
