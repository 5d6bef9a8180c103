"""One node on its way: its steps, and those of the nodes that they emit, until all stand at the target."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Emitted, Rewriter
from opshift.converter.lineage import Edge
from opshift.converter.route import Route, Router
from opshift.converter.scope import Scope
from opshift.converter.soundness import MAYBE_UNSOUND, require_sound, require_writable
from opshift.registry.models import OperatorVersion

MOST_STEPS = 10_000
"""More steps than any node needs; beyond it two steps undo each other."""
BROKEN_RULES = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    StopIteration,
    RuntimeError,
)
"""What a step raises that reads something which is not there, or not as every sound node has it."""


class Written(NamedTuple):
    """A node as it will stand in the converted model."""

    node: Node
    operator: OperatorVersion
    successor: bool


class Rewritten(NamedTuple):
    """What a node was, what takes its place, in order, and the steps that led there."""

    operator: OperatorVersion
    nodes: tuple[Written, ...]
    steps: tuple[Edge, ...]


def rewrite(node: Node, source: int, scope: Scope, router: Router) -> Rewritten:
    """Take a node, written for the opset `source` of its domain, to the router's target.

    Raises:
        CannotConvert: it is not as its definition says, or a step refuses it.
        ResolveError: a node that a step emitted is not in its set.
    """
    first = router.route(node.domain, node.op_type, source)
    try:
        result = _follow(node, source, first, scope, router)
    except CannotConvert:
        require_sound(node, first.operator)
        raise
    if len(result.nodes) != 1 or result.nodes[0].node is not node:
        require_sound(node, first.operator)
    return result


def _follow(node: Node, source: int, first: Route, scope: Scope, router: Router) -> Rewritten:
    waiting = [Emitted(node, source, True)]
    done: list[Written] = []
    taken: list[Edge] = []
    while waiting:
        current, opset, successor = waiting.pop()
        route = first if current is node else router.route(current.domain, current.op_type, opset)
        for step in route.steps:
            taken.append(step)
            emitted = _take(step, current, scope, router)
            if len(emitted) > 1 or not _goes_on(emitted[0], current, step):
                waiting += emitted if successor else [each._replace(successor=False) for each in emitted]
                break
            current = emitted[0].node
        else:
            if current is not node:
                require_writable(current, route.final)
            done.append(Written(current, route.final, successor))
        if len(taken) > MOST_STEPS:
            raise AssertionError(f"the steps from {route.operator.id} do not end")
    return Rewritten(first.operator, tuple(done), tuple(taken))


def _goes_on(emitted: Emitted, node: Node, step: Edge) -> bool:
    """Whether the step's result is the same operator, so that the next step of its route follows."""
    return emitted.node is node or (
        emitted.opset == step.opset
        and emitted.node.op_type == node.op_type
        and emitted.node.domain == node.domain
    )


def _take(step: Edge, node: Node, scope: Scope, router: Router) -> list[Emitted]:
    """What a step emits for a node, last first; one of it is the successor."""
    out = Rewriter(scope, step.source, step.target, step.opset, router.default_opset)
    assert step.function is not None
    try:
        step.function(node, out)
    except BROKEN_RULES as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        reason = f"it breaks a rule that the step relies on ({type(error).__name__}: {error})"
        raise CannotConvert(reason, remedy=MAYBE_UNSOUND) from error
    emitted = out.emitted
    if len(emitted) == 1:
        return emitted if emitted[0].successor else [emitted[0]._replace(successor=True)]
    if not any(each.successor for each in emitted):
        emitted[-1] = emitted[-1]._replace(successor=True)
    for each in emitted:
        scope.add_emitted(each.node, each.opset)
    emitted.reverse()
    return emitted
