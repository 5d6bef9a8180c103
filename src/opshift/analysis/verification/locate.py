"""Search for the first node with a value that differs between a model and its conversion."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.analysis.verification.bodies import Executions, body_of
from opshift.analysis.verification.difference_source import describe
from opshift.analysis.verification.executable_graph import ModelRuntime
from opshift.analysis.verification.graph_pair import DifferentNode, GraphPair, compare_values
from opshift.analysis.verification.inputs import Feeds
from opshift.analysis.verification.result import DifferenceLocation, OutputCompared
from opshift.analysis.verification.runtimes import CannotRun
from opshift.model.progress import Progress

FIRST_COUNT, GROWTH = 8, 4
"""Number of values that the first run returns, and the factor by which later runs may return more."""

MAX_BYTES = 256 * 2**20
"""Approximate size of the values that a run of one model returns: all of them are in memory at once."""

MAX_FAILURES = 20
"""Number of failed runs after which a search ends: each loads a model."""

MAX_EXECUTIONS = 1000
"""Number of executions of a body to compare."""


def locate(
    models: tuple[ModelRuntime, ModelRuntime],
    feeds: Feeds,
    different: Sequence[OutputCompared],
    tolerance: float | None,
    progress: Progress,
) -> DifferenceLocation | None:
    """Return the first node, in topological order, with a value that differs between two models.

    Only nodes that the different outputs depend on, and values that have a name in both models, are
    compared. Values of subgraphs and functions are compared in the execution that first differs. If the node
    only enlarges a difference within the tolerance, it is the node that introduces that difference.
    """
    original, converted = models
    pair = GraphPair(original.main_graph(), converted.main_graph(), (feeds, feeds), "graph", progress)
    found = _search(pair, [each.name for each in different], tolerance)
    if found is None:
        # the values before the output have other names, or cannot be compared
        position = pair.original.producers.get(different[0].name)
        if position is None:
            return None
        found = DifferentNode(pair, position, different[0])
    return describe(found, tolerance)


def _search(pair: GraphPair, outputs: Sequence[str], tolerance: float | None) -> DifferentNode | None:
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
        except CannotRun:  # some types cannot be returned, so find the value, and skip it
            failures += 1
            done += len(listed) == 1
            size = max(1, len(listed) // 2)
            continue
        done += len(listed)
        size = min(len(listed) * GROWTH, MAX_BYTES * len(listed) // max(byte_count, 1)) or 1
    return None


def _search_body(found: DifferentNode, tolerance: float | None) -> DifferentNode | None:
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
        place = found.place + (f" in iteration {number}" if one.is_repeated else "")
        inner = GraphPair(
            one.graph, other.graph, feeds, one.path, pair.progress, (*pair.enclosing, place), found
        )
        outputs = one.graph.execute(feeds[0]), other.graph.execute(feeds[1])
        compared = zip(one.graph.outputs, *outputs, strict=False)
        values = [compare_values(*each, tolerance) for each in compared]
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
