"""Steps between operator versions, and whether a case exercises one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from opshift import default_registry
from opshift.adapters.core.adapter_table import adapter_table
from opshift.converter.convert import plan_version
from opshift.converter.rewrite.version_graph import Step, build_version_graph
from support.domains import wire
from support.published import Case


@cache
def all_steps() -> Mapping[str, Step]:
    """Return all steps of all operators in both directions by id."""
    graphs = (build_version_graph(operator, adapter_table()) for operator in default_registry().operators())
    edges = (graph.edges[pair]["step"] for graph in graphs for pair in graph.edges)
    return {step_id(edge): edge for edge in edges}


def step_id(step: Step) -> str:
    """Return the id of a step: its source version and target opset."""
    return f"{str(step.source.id).removeprefix('ai.onnx.')} -> {step.opset}"


def is_up(step: Step) -> bool:
    """Return whether a step leads to a higher opset."""
    return step.opset > step.source.since_version


def opset_before(step: Step) -> int:
    """Return the last opset before a step."""
    return step.opset - 1 if is_up(step) else step.source.since_version


def target_after(step: Step) -> dict[str, int]:
    """Return the first opset after a step as a conversion target."""
    return {wire(step.source.domain): opset_before(step) + (1 if is_up(step) else -1)}


def exercises_step(step: Step, case: Case) -> bool | None:
    """Return whether a conversion across a step applies it to a node; `None` if the conversion is refused."""
    plan = plan_version(case.model, target_after(step), allow="approximate")
    changed = (change.result.steps for container in plan.containers() for change in container.changes)
    return None if plan.refusals else any(step_id(step) in map(step_id, applied) for applied in changed)
