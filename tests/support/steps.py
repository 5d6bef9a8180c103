"""The steps between operator versions, and whether a model shows what one does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from opshift import default_registry
from opshift.adapters.table import adapter_table
from opshift.converter.convert import plan_version
from opshift.converter.lineage import Edge, lineage
from support.domains import wire
from support.published import Case


@cache
def steps() -> Mapping[str, Edge]:
    """Every step of every operator, up and down, by what it is called."""
    graphs = (lineage(operator, adapter_table()) for operator in default_registry().operators())
    edges = (graph.edges[pair]["step"] for graph in graphs for pair in graph.edges)
    return {spelled(edge): edge for edge in edges}


def spelled(step: Edge) -> str:
    """The version that a step leaves, and the opset at which it arrives."""
    return f"{str(step.source.id).removeprefix('ai.onnx.')} -> {step.opset}"


def is_up(step: Edge) -> bool:
    """Whether a step leads to a higher opset."""
    return step.opset > step.source.since_version


def near_side(step: Edge) -> int:
    """The last opset before a step."""
    return step.opset - 1 if is_up(step) else step.source.since_version


def far_side(step: Edge) -> dict[str, int]:
    """The first opset beyond a step, as a target."""
    return {wire(step.source.domain): near_side(step) + (1 if is_up(step) else -1)}


def changes(step: Edge, case: Case) -> bool | None:
    """Whether a step changes a node of the model on its way over it; `None` if something is refused."""
    plan = plan_version(case.model, far_side(step), allow="approximate")
    changed = (change.result.steps for container in plan.containers() for change in container.changes)
    return None if plan.refusals else any(spelled(step) in map(spelled, taken) for taken in changed)
