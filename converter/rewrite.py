"""One node on its way: its steps, and those of the nodes that they emit, until all stand at the target."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.converter.lineage import Edge
from opshift.converter.route import Router
from opshift.converter.scope import Scope
from opshift.registry.models import OperatorVersion

MOST_STEPS = 10_000
"""More steps than any node needs; beyond it two steps undo each other."""


class Written(NamedTuple):
    """A node as it will stand in the converted model."""

    node: Node
    operator: OperatorVersion
    successor: bool


class Rewritten(NamedTuple):
    """What takes a node's place, in order, and the steps that led there."""

    nodes: tuple[Written, ...]
    steps: tuple[Edge, ...]


class _Waiting(NamedTuple):
    node: Node
    opset: int
    successor: bool


def rewrite(node: Node, opset: int, scope: Scope, router: Router) -> Rewritten:
    """Take a node, written for `opset` of its domain, to the router's target.

    Raises:
        CannotConvert: a step refuses it.
        ResolveError: a node that a step emitted is not in its set.
    """
    waiting = [_Waiting(node, opset, successor=True)]
    done: list[Written] = []
    steps: list[Edge] = []
    while waiting:
        current = waiting.pop()
        route = router.route(current.node.domain, current.node.op_type, current.opset)
        if route.step is None:
            operator = router.at(route.operator, router.final_opset(current.node.domain))
            done.append(Written(current.node, operator, current.successor))
            continue
        if len(steps) >= MOST_STEPS:
            raise AssertionError(f"the steps from {route.operator.id} do not end")
        steps.append(route.step)
        waiting += reversed(_take(route.step, current, scope, router))
    return Rewritten(tuple(done), tuple(steps))


def _take(step: Edge, current: _Waiting, scope: Scope, router: Router) -> list[_Waiting]:
    out = Rewriter(scope, step.source, step.target, step.opset, router.final_opset(""))
    assert step.function is not None
    step.function(current.node, out)
    emitted = out.emitted
    if not any(each.successor for each in emitted):
        emitted[-1] = emitted[-1]._replace(successor=True)
    for each in emitted:
        scope.add_emitted(each.node, each.opset)
    return [_Waiting(each.node, each.opset, each.successor and current.successor) for each in emitted]
