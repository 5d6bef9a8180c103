"""Search for the first node with a value that differs between a model and its conversion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from opshift.analysis.verification.bodies import Executions, body_of
from opshift.analysis.verification.compare import compare_output
from opshift.analysis.verification.executable_graph import ExecutableGraph, ModelRuntime
from opshift.analysis.verification.inputs import Feeds
from opshift.analysis.verification.numpy_types import array_element_type
from opshift.analysis.verification.result import DifferenceLocation, OutputCompared
from opshift.analysis.verification.runtimes import CannotRun
from opshift.converter.convert import plan_with
from opshift.converter.options import ALLOW_VALUES, Options
from opshift.converter.report import ChangedNode, changed_node
from opshift.model.errors import OpshiftError
from opshift.model.graphs import node_label
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import canonical_domain, opset_imports
from opshift.model.progress import Progress
from opshift.registry.registry import Registry

FIRST_COUNT, GROWTH = 8, 4
"""Number of values that the first run returns, and the factor by which later runs may return more."""

MAX_BYTES = 256 * 2**20
"""Approximate size of the values that a run of one model returns: all of them are in memory at once."""

MAX_FAILURES = 40
"""Number of failed runs after which a search ends: each loads a model."""

MAX_EXECUTIONS = 1000
"""Number of executions of a body to compare."""


class GraphPair(NamedTuple):
    """Graph of the original and its conversion, and the inputs of both."""

    original: ExecutableGraph
    converted: ExecutableGraph
    feeds: tuple[Feeds, Feeds]
    path: str
    progress: Progress
    enclosing: tuple[str, ...] = ()

    def values(self, names: Sequence[str]) -> Iterator[tuple[str, object, object]]:
        """Yield values with their names."""
        original, converted = (
            graph.values(names, feeds) for graph, feeds in zip(self[:2], self.feeds, strict=True)
        )
        for name in names:
            yield name, original[name], converted[name]


class Found(NamedTuple):
    """Node with a different value, and the comparison of the value."""

    pair: GraphPair
    position: int
    value: OutputCompared


def locate(
    models: tuple[ModelRuntime, ModelRuntime],
    feeds: Feeds,
    different: Sequence[OutputCompared],
    tolerance: float | None,
    progress: Progress,
) -> DifferenceLocation | None:
    """Return the first node, in topological order, with a value that differs between two models.

    Only nodes that the different outputs depend on, and values that have a name in both models, are
    compared. Values of subgraphs and functions are compared in the execution that first differs.
    """
    original, converted = models
    pair = GraphPair(original.main_graph(), converted.main_graph(), (feeds, feeds), "graph", progress)
    found = _search(pair, [each.name for each in different], tolerance)
    if found is None:
        # the values before the output have other names, or cannot be compared
        position = pair.original.producers.get(different[0].name)
        if position is None:
            return None
        found = Found(pair, position, different[0])
    return _location(found, original, converted.source.model)


def _search(pair: GraphPair, outputs: Sequence[str], tolerance: float | None) -> Found | None:
    found = _first_difference(pair, outputs, tolerance)
    if found is None:
        return None
    try:
        return _search_body(found, tolerance) or found
    except CannotRun:
        return found


def _first_difference(pair: GraphPair, outputs: Sequence[str], tolerance: float | None) -> Found | None:
    graph, produced = pair.original, pair.converted.producers
    names = [
        name for each in graph.ancestors(outputs) for name in graph.nodes[each].output if name in produced
    ]
    size, failures, done = FIRST_COUNT, 0, 0
    progress = pair.progress
    progress.total, progress.note = len(names), f"searching the first different node of {pair.path}"
    while done < len(names) and failures < MAX_FAILURES:
        progress.done = done
        listed = names[done : done + size]
        try:
            byte_count = 0
            for name, one, other in pair.values(listed):
                value = _compare(name, one, other, tolerance)
                if value is not None and not value.equal:
                    return Found(pair, graph.producers[name], value)
                byte_count += getattr(one, "nbytes", 0)
        except CannotRun:  # some types cannot be returned, so find the value, and skip it
            failures += 1
            done += len(listed) == 1
            size = max(1, len(listed) // 2)
            continue
        done += len(listed)
        size = min(len(listed) * GROWTH, MAX_BYTES * len(listed) // max(byte_count, 1)) or 1
    return None


def _compare(
    name: str, original: object, converted: object, tolerance: float | None
) -> OutputCompared | None:
    """Compare two values; return `None` if their types cannot be compared.

    A conversion may compute inner values in a different type.
    """
    if isinstance(original, np.ndarray) and isinstance(converted, np.ndarray):
        kinds = {original.dtype.kind, converted.dtype.kind}
        if kinds <= {"i", "u"} or kinds == {"f"}:
            converted = converted.astype(original.dtype)
        elif array_element_type(original) != array_element_type(converted):
            return None
    elif type(original) is not type(converted):
        return None
    return compare_output(name, [original], [converted], tolerance)


def _search_body(found: Found, tolerance: float | None) -> Found | None:
    """Search the bodies that a different node executes in both models, in the first different execution."""
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
        place = _place(pair, found.position) + (f" in iteration {number}" if one.is_repeated else "")
        inner = GraphPair(one.graph, other.graph, feeds, one.path, pair.progress, (*pair.enclosing, place))
        outputs = one.graph.execute(feeds[0]), other.graph.execute(feeds[1])
        compared = zip(one.graph.outputs, *outputs, strict=False)
        values = [_compare(*each, tolerance) for each in compared]
        different = [each.name for each in values if each and not each.equal]
        if different:
            return _search(inner, different, tolerance)
        inputs = _next(one.executions, outputs[0]), _next(other.executions, outputs[1])
    return None


def _next(executions: Executions, outputs: Sequence[object]) -> Feeds | None:
    try:
        return executions.send(outputs)
    except StopIteration:
        return None


def _place(pair: GraphPair, position: int) -> str:
    node = pair.original.nodes[position]
    return f"{pair.path}, node {node_label(node.name, node.op_type, node.output)}"


def _location(found: Found, original: ModelRuntime, converted: ModelProto) -> DifferenceLocation:
    pair, registry = found.pair, original.registry
    node = pair.original.nodes[found.position]
    domain = canonical_domain(node.domain)
    version = registry.at(node.op_type, pair.original.opsets.get(domain, 0), domain)
    change = _change(found, original.source.model, converted, registry)
    return DifferenceLocation(
        _place(pair, found.position),
        str(version.id) if version else f"{domain}.{node.op_type}",
        change.becomes if change else (),
        change.steps if change else (),
        found.value,
        pair.enclosing,
    )


def _change(
    found: Found, original: ModelProto, converted: ModelProto, registry: Registry
) -> ChangedNode | None:
    """Return what a conversion to the opsets of the converted model changes at a node."""
    before, after = (opset_imports(each.opset_import, each.ir_version) for each in (original, converted))
    target = {each: opset for each, opset in after.items() if before.get(each, opset) != opset}
    if not target:
        return None
    try:
        plan = plan_with(original, Options.of(target, allow=ALLOW_VALUES, registry=registry))
    except OpshiftError:  # the converted model is not a conversion of the original
        return None
    for container in plan.containers():
        for change in container.changes:
            # labels of specialized functions contain their callers
            path = re.sub(r", called by .*?(?= / |$)", "", change.path)
            if path == found.pair.path and found.value.name in change.record[4]:
                return changed_node(change, container)
    return None
