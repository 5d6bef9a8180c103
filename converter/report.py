"""What a conversion does, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from opshift.converter.changes import ContainerPlan, NodeChange, OpsetChange, Plan
from opshift.converter.errors import Refusal

RESTORED = "put back as it was before an earlier conversion: "


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
class SpecialisedFunction:
    """A function that could not be converted once for all calls.

    Attributes:
        function: what it is called.
        copies: the names of the copies that some of the calls got, in the same domain.
    """

    function: str
    copies: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The whole of a plan or conversion.

    Attributes:
        opsets: the domains whose opset changes.
        ir_version: before and after.
        ir_steps: what is rewritten for the IR version, a sentence each.
        specialised: the functions that some calls get a copy of.
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
    ir_steps: tuple[str, ...] = ()
    specialised: tuple[SpecialisedFunction, ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> Report:
        """The report of a plan."""
        containers = list(plan.containers())
        changed = tuple(_changed(change, each) for each in containers for change in each.changes)
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
            tuple(_specialised(plan)),
        )

    def operators(self) -> Counter[tuple[str, tuple[str, ...]]]:
        """How often each operator becomes what."""
        return Counter((each.operator, each.becomes) for each in self.changed)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def _specialised(plan: Plan) -> Iterator[SpecialisedFunction]:
    for function in dict.fromkeys(each.function for each in plan.copies):
        names = tuple(each.name for each in plan.copies if each.function == function)
        yield SpecialisedFunction(function, names)


def _changed(change: NodeChange, container: ContainerPlan) -> ChangedNode:
    back = container.reversal.returns.get(change.position)
    steps = tuple(
        f"{edge.source.id} -> {edge.opset}: {edge.change}".rstrip(": ") for edge in change.result.steps
    )
    return ChangedNode(
        change.place,
        ", ".join(back.operators) if back else str(change.operator),
        tuple(str(each.id) for each in change.result.operators),
        (f"{RESTORED}{change.operator}", *steps) if back else steps,
    )
