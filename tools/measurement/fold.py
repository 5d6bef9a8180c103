"""Derive kernels, restrictions and wrong results, in the format of runtime files, from measurements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from measurement.conditions import Node, find_conditions
from measurement.describe import COMPUTED, CONSTANT, definition_of
from measurement.probes import Probe, last_opset
from measurement.restrictions import restriction
from measurement.run_models import Outcome
from opshift.model.operator_ids import OperatorId

Measured = Sequence[tuple[Probe, Outcome]]

Box = dict[str, frozenset[str]]
"""Types by type variable; a kernel accepts all combinations of them."""

Boxes = dict[tuple[int, int], list[Box]]
"""Kernels (boxes of types) by first and last opset of an operator version."""


class Folded(NamedTuple):
    """Facts about an operator that the measurements show."""

    boxes: Boxes
    restrictions: list[dict[str, Any]]
    wrong: dict[int, list[dict[str, Any]]]
    unexplained: list[str]
    """Refused nodes that no restriction explains."""


def fold(measured: Measured) -> dict[str, Folded]:
    """Return the facts that the measurements show, by operator such as `ai.onnx.Add`."""
    groups: dict[str, list[tuple[Probe, Outcome]]] = defaultdict(list)
    for probe, outcome in measured:
        operator = probe.described.operator
        groups[f"{operator.domain}.{operator.op_type}"].append((probe, outcome))
    return {name: fold_operator(group) for name, group in sorted(groups.items())}


def fold_operator(measured: Measured) -> Folded:
    """Return the facts that the measurements of one operator show."""
    by_version: dict[int, list[tuple[Probe, Outcome]]] = defaultdict(list)
    for probe, outcome in measured:
        by_version[probe.described.operator.since_version].append((probe, outcome))
    kernels = {
        version: boxes for version, group in by_version.items() if (boxes := _accepted_boxes(unfolded(group)))
    }
    supported = [
        each
        for version, boxes in kernels.items()
        for each in by_version[version]
        if each[1].loads or not _is_folded(each[0])
        if any(_box_accepts(box, each[0].described.types) for box in boxes)
    ]
    nodes = [_measured_node(probe, outcome, outcome.loads) for probe, outcome in supported]
    conditions = find_conditions(nodes)
    unexplained = [
        f"{probe.name}: {outcome.error}"
        for (probe, outcome), node in zip(supported, nodes, strict=True)
        if not node.accepted and not any(each.holds(node) for each in conditions)
    ]
    return Folded(
        {
            _opset_range(by_version[version][0][0].described.operator): boxes
            for version, boxes in kernels.items()
        },
        [restriction(each, sorted(kernels)) for each in conditions],
        wrong_results(supported),
        unexplained,
    )


def unfolded(measured: Measured) -> Measured:
    """Return the nodes with a computed input if one of them loads: others are replaced by their result."""
    found = [each for each in measured if not _is_folded(each[0])]
    return found if any(outcome.loads for _, outcome in found) else measured


def _is_folded(probe: Probe) -> bool:
    """Return whether all inputs of a node are constant."""
    values = probe.described.features.values()
    return CONSTANT in values and COMPUTED not in values


def _measured_node(probe: Probe, outcome: Outcome, accepted: bool) -> Node:
    return Node(probe.described.operator.since_version, probe.described.features, accepted, outcome.error)


def _opset_range(operator: OperatorId) -> tuple[int, int]:
    """Return the first and the last opset of an operator version."""
    return operator.since_version, last_opset(definition_of(operator))


def _accepted_boxes(measured: Measured) -> list[Box]:
    """Return the types with which a version loads: a product of types, or the measured combinations."""
    loaded = [probe.described.types for probe, outcome in measured if outcome.loads]
    if not loaded:
        return []
    names = max(map(sorted, loaded), key=lambda variables: len(variables))
    if not combinations_differ([each for each in measured if each[0].varies_types or each[1].loads]):
        return [{name: frozenset(types[name] for types in loaded if name in types) for name in names}]
    rows = {tuple(types[name] for name in names) for types in loaded if types.keys() >= set(names)}
    return [dict(zip(names, box, strict=True)) for box in merge(rows)]


def combinations_differ(measured: Measured) -> bool:
    """Return whether a node is refused although other nodes load with each of its types."""
    loaded = [probe.described.types for probe, outcome in measured if outcome.loads]
    refused = [probe.described.types for probe, outcome in measured if not outcome.loads]
    accepted = {item for types in loaded for item in types.items()}
    return any(types.items() <= accepted for types in refused if types not in loaded)


def merge(rows: Iterable[tuple[str, ...]]) -> list[tuple[frozenset[str], ...]]:
    """Return the types of the rows as fewer products: rows that differ in one position are merged."""
    boxes = {tuple(frozenset([each]) for each in row) for row in rows}
    while True:
        before = len(boxes)
        for position in range(len(next(iter(boxes), ()))):
            groups: dict[tuple[frozenset[str], ...], set[str]] = defaultdict(set)
            for box in boxes:
                groups[box[:position] + box[position + 1 :]] |= box[position]
            boxes = {(*rest[:position], frozenset(found), *rest[position:]) for rest, found in groups.items()}
        if len(boxes) == before:
            return sorted(boxes, key=lambda box: [sorted(each) for each in box])


def _box_accepts(box: Box, types: Mapping[str, str]) -> bool:
    return all(name not in types or types[name] in accepted for name, accepted in box.items())


def wrong_results(measured: Measured) -> dict[int, list[dict[str, Any]]]:
    """Return wrong results by version: of all nodes, or of the nodes for which a condition holds."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    run = [each for each in measured if each[1].outcome in ("equal", "differs")]
    run = [each for each in run if definition_of(each[0].described.operator).determinism == "deterministic"]
    nodes = [_measured_node(probe, outcome, outcome.outcome == "equal") for probe, outcome in run]
    for version in {each.version for each in nodes}:
        outcomes = [each.accepted for each in nodes if each.version == version]
        if not any(outcomes) and len(outcomes) > 1:
            found[version].append({"reason": "the results are wrong"})
    rest = [each for each in nodes if each.version not in found]
    for condition in find_conditions(rest, max_features=1):
        row = restriction(condition, sorted(condition.versions))
        row["reason"] = f"the results are wrong if {row['reason']}"
        for version in {each.version for each in rest if condition.holds(each)}:
            found[version].append(row)
    return dict(sorted(found.items()))
