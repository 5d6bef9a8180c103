"""Steps between operator versions, and whether a case exercises one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import networkx as nx

from opshift.adapters.core.adapter_table import adapter_table
from opshift.converter.convert import plan_version
from opshift.rewriting.version_graph import build_version_graph
from opshift.rewriting.version_steps import VersionStep
from support.domains import onnx_operators, wire
from support.published import Case


@cache
def all_steps() -> Mapping[str, VersionStep]:
    """Return all steps of ONNX's operators in both directions by id.

    Steps to opset 0 are only used by conversions without an operator, which other tests run.
    """
    graph = build_version_graph(onnx_operators(), adapter_table())
    return {step_id(step): step for step in nx.get_edge_attributes(graph, "step").values() if step.opset}


def step_id(step: VersionStep) -> str:
    """Return the id of a step: its source version and target opset."""
    return f"{str(step.source.id).removeprefix('ai.onnx.')} -> {step.opset}"


def is_up(step: VersionStep) -> bool:
    """Return whether a step leads to a higher opset."""
    return step.opset > step.source.since_version


def opset_before(step: VersionStep) -> int:
    """Return the last opset before a step."""
    return step.opset - 1 if is_up(step) else step.source.since_version


def target_after(step: VersionStep) -> dict[str, int]:
    """Return the first opset after a step as a conversion target."""
    return {wire(step.source.domain): opset_before(step) + (1 if is_up(step) else -1)}


def exercises_step(step: VersionStep, case: Case) -> bool | None:
    """Return whether a conversion across a step applies it to a node; `None` if the conversion is refused."""
    plan = plan_version(case.model, target_after(step), allow="approximate")
    changed = (change.result.steps for container in plan.containers() for change in container.changes)
    return None if plan.refusals else any(step_id(step) in map(step_id, applied) for applied in changed)
