"""Node that introduces a difference, and the conversion steps that replace it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from opshift.analysis.verification.graph_pair import DifferentNode, compare_values
from opshift.analysis.verification.result import DifferenceLocation, OutputCompared
from opshift.analysis.verification.runtimes import CannotRun
from opshift.converter.convert import plan_with
from opshift.converter.options import ALLOW_VALUES, Options
from opshift.converter.report import ChangedNode, changed_node
from opshift.model.errors import OpshiftError
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import canonical_domain, opset_imports
from opshift.registry.registry import Registry

MAX_CANDIDATES = 20
"""Number of nodes that are run on their own, to find the one that introduces a difference."""

Changes: TypeAlias = Mapping[tuple[str, str], ChangedNode]
"""Changed nodes, by the path of their graph and the name of an output."""


def describe(found: DifferentNode, tolerance: float | None) -> DifferenceLocation:
    """Return the location of a node, or of the changed node before it that introduces its difference."""
    runtime = found.pair.original.runtime
    changes = _changes(runtime.source.model, found.pair.converted.runtime.source.model, runtime.registry)
    source = _source(found, changes, tolerance)
    node, opsets = source.pair.original.nodes[source.position], source.pair.original.opsets
    domain = canonical_domain(node.domain)
    version = runtime.registry.at(node.op_type, opsets.get(domain, 0), domain)
    change = changes.get((source.pair.path, source.value.name))
    return DifferenceLocation(
        source.place,
        str(version.id) if version else f"{domain}.{node.op_type}",
        change.becomes if change else (),
        change.steps if change else (),
        source.value,
        source.pair.enclosing,
        "" if source is found else found.place,
    )


def _source(found: DifferentNode, changes: Changes, tolerance: float | None) -> DifferentNode:
    """Return the changed node with the largest difference of its own, if `found` only enlarges one.

    An unchanged node computes equal results from equal inputs, so its difference starts at a changed node.
    """
    own = _own_difference(found, found.value, changes, tolerance)
    if own is not None and not own.equal:
        return found
    level: DifferentNode | None = found
    while level is not None:
        graph = level.pair.original
        ancestors = set(graph.ancestors(graph.reads[level.position]))
        candidates = [each for each in level.smaller if graph.producers[each.name] in ancestors]
        candidates.sort(key=_severity, reverse=True)
        compared = [_own_difference(level, each, changes, tolerance) for each in candidates[:MAX_CANDIDATES]]
        values = [each for each in (*compared, own) if each is not None and each.absolute]
        if values:
            worst = max(values, key=_severity)
            return level._replace(position=graph.producers[worst.name], value=worst)
        level, own = level.pair.outer, None
    return found


def _severity(value: OutputCompared) -> float:
    """Return the largest difference in relation to the limit; other differences are not comparable."""
    return value.worst.difference / (value.worst.allowed or 1) if value.worst else 0.0


def _own_difference(
    level: DifferentNode, value: OutputCompared, changes: Changes, tolerance: float | None
) -> OutputCompared | None:
    """Compare the results of a changed node for the same inputs; return `None` for other nodes."""
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
        feeds = {**pair.feeds[1], **{each: original[each] for each in read if each in known}}
        converted = pair.converted.values([name], feeds)
    except CannotRun:  # for example if the conversion computes an input in a different type
        return value
    return compare_values(name, original[name], converted[name], tolerance)


def _changes(original: ModelProto, converted: ModelProto, registry: Registry) -> Changes:
    """Return the nodes that a conversion to the opsets of the converted model changes."""
    before, after = (opset_imports(each.opset_import, each.ir_version) for each in (original, converted))
    target = {each: opset for each, opset in after.items() if before.get(each, opset) != opset}
    if not target:
        return {}
    try:
        plan = plan_with(original, Options.of(target, allow=ALLOW_VALUES, registry=registry))
    except OpshiftError:  # the converted model is not a conversion of the original
        return {}
    return {
        # labels of specialized functions contain their callers
        (re.sub(r", called by .*?(?= / |$)", "", change.path), name): changed_node(change, container)
        for container in plan.containers()
        for change in container.changes
        for name in change.record[4]
    }
