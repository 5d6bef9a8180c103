"""Put recorded nodes back: plan it for one graph or function, and carry it out."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.converter.call_scope import CallScope
from opshift.converter.container import graphs_of
from opshift.converter.reversible.groups import Group
from opshift.converter.reversible.holding import Holding
from opshift.converter.reversible.reversal import Return, Reversal
from opshift.converter.rewrite import Rewritten, rewrite
from opshift.converter.route import Router
from opshift.converter.scope import Scope
from opshift.converter.settled import settled
from opshift.converter.soundness import require_sound
from opshift.registry.errors import ResolveError
from opshift.registry.names import canonical_domain


def settle(
    groups: Iterable[Group], reversal: Reversal, holding: Holding, scope: Scope, router: Router
) -> None:
    """Decide for each group whether its original comes back, and note in the plan what that takes."""
    for group in groups:
        found = _returned(group, holding, scope, router)
        if found is None:
            reversal.carried.append(group)
            continue
        reversal.settled.update(group.positions)
        reversal.returns[group.place] = found
        reversal.removed.update(set(group.positions) - {group.place})
        reversal.dropped |= group.inner


def _returned(group: Group, holding: Holding, scope: Scope, router: Router) -> Return | None:
    """What comes back; `None` if the target leads away from the original, or it has no form there."""
    if not _is_on_the_way(group, scope, router):
        return None
    conceded = len(scope.concessions.used)
    try:
        node, result = _rewritten(group, scope, router)
    except (CannotConvert, ResolveError):
        del scope.concessions.used[conceded:]
        return None
    operators = tuple(_operator(holding.nodes[each], scope) for each in group.positions)
    return Return(group, operators, node, result)


def _rewritten(group: Group, scope: Scope, router: Router) -> tuple[Node, Rewritten]:
    """The original, and what it is at the target: itself where nothing changes on the way there."""
    seen = scope.node(group.original)
    found = rewrite(seen, group.opset, scope, router)
    require_sound(seen, found.operator)
    node, result = seen, found
    if isinstance(scope, CallScope):
        node, result = settled(seen, group.original, found, scope)
    if len(found.nodes) == 1 and found.nodes[0].node is seen:
        node = Node.of(group.original)
        result = found._replace(nodes=(found.nodes[0]._replace(node=node),))
    return node, result


def _is_on_the_way(group: Group, scope: Scope, router: Router) -> bool:
    """Whether the target is that of the original, or nearer to it, or beyond; with graphs, only the first."""
    domain = canonical_domain(group.original.domain)
    here, goal = scope.opsets[domain], router.final_opset(domain)
    if any(graphs_of(group.original)):
        return all(router.final_opset(each.domain) == each.version for each in group.entry.opsets)
    return (goal - here) * (group.opset - here) > 0


def _operator(node: Any, scope: Scope) -> str:
    found = scope.operator(node.op_type, node.domain)
    return str(found.id) if found else f"{canonical_domain(node.domain)}.{node.op_type}"


def drop_constants(reversal: Reversal, holding: Holding, read: Set[str]) -> None:
    """Plan to take out the added constants that only nodes read which go; `read` is what comes to be read."""
    replaced = {place for place, each in reversal.returns.items() if not each.group.is_original}
    gone = reversal.removed | replaced
    for name in reversal.constants:
        if name in read or not holding.has_constant(name):
            continue
        if holding.readers.get(name, frozenset()) <= gone:
            reversal.dropped.add(name)
            if name in holding.makers:
                reversal.removed.add(holding.makers[name])
