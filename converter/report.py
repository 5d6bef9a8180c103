"""What a conversion does, for people and for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from opshift.converter.errors import Refusal
from opshift.converter.plan import NodeChange, OpsetChange, Plan


@dataclass(frozen=True)
class ChangedNode:
    """One node that is replaced.

    Attributes:
        place: the graph and the node.
        operator: what it was, as `ai.onnx.Clip:6`.
        becomes: the operators that take its place, in order.
        steps: what changed on the way, a sentence each.
    """

    place: str
    operator: str
    becomes: tuple[str, ...]
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The whole of a plan or conversion.

    Attributes:
        opsets: the domains whose opset changes.
        ir_version: before and after.
        kept: how many nodes stay as they are.
        changed: those that do not.
        constants: how many constants are added.
        refusals: what cannot be converted; empty after a conversion.
        concessions: what is not exact and was allowed, with the reason of each.
    """

    opsets: tuple[OpsetChange, ...]
    ir_version: tuple[int, int]
    kept: int
    changed: tuple[ChangedNode, ...]
    constants: int
    refusals: tuple[Refusal, ...]
    concessions: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> Report:
        """The report of a plan."""
        containers = list(plan.containers())
        changed = tuple(_changed(change) for container in containers for change in container.changes)
        nodes = sum(container.node_count for container in containers)
        return cls(
            plan.opsets,
            plan.ir_version,
            nodes - len(changed) - len(plan.refusals),
            changed,
            sum(len(container.constants) for container in containers),
            plan.refusals,
            plan.concessions,
        )

    def operators(self) -> Counter[tuple[str, tuple[str, ...]]]:
        """How often each operator becomes what."""
        return Counter((each.operator, each.becomes) for each in self.changed)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def _changed(change: NodeChange) -> ChangedNode:
    return ChangedNode(
        change.place,
        str(change.operator),
        tuple(str(each.operator.id) for each in change.result.nodes),
        tuple(
            f"{edge.source.id} -> {edge.opset}: {edge.change}".rstrip(": ") for edge in change.result.steps
        ),
    )
