"""Report of a conversion: plain data about the changes, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from opshift.converter.errors import Refusal
from opshift.converter.plan.changes import ContainerPlan, NodeChange, OpsetChange, Plan
from opshift.model.frozen_record import FrozenRecord

RESTORED_PREFIX = "restored to its state before an earlier conversion: "
"""Prefix of the first step of a node that is restored."""


class ChangedNode(FrozenRecord):
    """Node that is replaced.

    Attributes:
        place: label of the node, with its graph or function.
        operator: its operator version, such as `ai.onnx.Clip:6`.
        becomes: operator versions of the nodes that replace it, in order.
        steps: descriptions of the applied steps, a sentence each.
    """

    place: str
    operator: str
    becomes: tuple[str, ...]
    steps: tuple[str, ...]


class SpecialisedFunction(FrozenRecord):
    """Function that could not be converted once for all calls, with the names of its copies.

    Some of the calls use the copies, which are in the same domain.
    """

    function: str
    copies: tuple[str, ...]


class Report(FrozenRecord):
    """Report of a plan or conversion.

    Attributes:
        opsets: domains with a changed opset.
        ir_version: IR version before and after.
        kept: number of unchanged nodes.
        changed: replaced nodes.
        constants: number of added constants.
        added_nodes: number of nodes after the conversion, minus those before it.
        added_bytes: size of the added constants.
        model_version: new version of the model, such as `1.3.0`; `None` if it does not change.
        refusals: nodes and features that cannot be converted; empty after a conversion.
        concessions: allowed inexact conversions, each kind with its reason.
        ir_steps: rewrites for the IR version, a sentence each.
        specialised: functions with a copy for some of their calls.
        repairs: sorted graphs, removed dead nodes and replaced types, a sentence each.
        unreleased: targets that are not released yet, a sentence each.
    """

    opsets: tuple[OpsetChange, ...]
    ir_version: tuple[int, int]
    kept: int
    changed: tuple[ChangedNode, ...]
    constants: int
    refusals: tuple[Refusal, ...]
    concessions: tuple[tuple[str, str], ...] = ()
    ir_steps: tuple[str, ...] = ()
    specialised: tuple[SpecialisedFunction, ...] = ()
    repairs: tuple[str, ...] = ()
    added_nodes: int = 0
    added_bytes: int = 0
    model_version: str | None = None
    unreleased: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> Report:
        """Return the report of a plan."""
        containers = list(plan.containers())
        changed = tuple(changed_node(change, each) for each in containers for change in each.changes)
        nodes = sum(container.node_count - len(container.reversal.removed) for container in containers)
        return cls(
            plan.opsets,
            (plan.ir.before, plan.ir.after),
            nodes - len(changed) - len(plan.refusals) + len(plan.ir.refusals),
            changed,
            sum(len(container.constants) for container in containers),
            plan.refusals,
            plan.concessions,
            plan.ir.steps(),
            tuple(_specialised_functions(plan)),
            plan.repairs,
            sum(change.result.node_count - 1 for each in containers for change in each.changes),
            sum(container.constant_bytes for container in containers),
            plan.model_version,
            plan.unreleased,
        )

    def operators(self) -> Counter[tuple[str, tuple[str, ...]]]:
        """Count the changed nodes by operator version and replacement."""
        return Counter((each.operator, each.becomes) for each in self.changed)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def _specialised_functions(plan: Plan) -> Iterator[SpecialisedFunction]:
    for function in dict.fromkeys(each.function for each in plan.copies):
        names = tuple(each.name for each in plan.copies if each.function == function)
        yield SpecialisedFunction(function, names)


def changed_node(change: NodeChange, container: ContainerPlan) -> ChangedNode:
    """Return the report of a change in a graph or function."""
    restored = container.reversal.restored.get(change.position)
    steps = tuple(
        f"{edge.source.id} -> {edge.opset}: {edge.change}".rstrip(": ") for edge in change.result.steps
    )
    return ChangedNode(
        change.place,
        ", ".join(restored.operators) if restored else str(change.operator),
        tuple(str(each.id) for each in change.result.operators),
        (f"{RESTORED_PREFIX}{change.operator}", *steps) if restored else steps,
    )
