"""Planning of restorations in one graph or function."""

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
    groups: Iterable[Group], reversal: Reversal, value_index: Holding, scope: Scope, router: Router
) -> None:
    """Decide for each group whether its original is restored, and add the decision to `reversal`."""
    for group in groups:
        restoration = _restoration(group, value_index, scope, router)
        if restoration is None:
            reversal.carried.append(group)
            continue
        reversal.settled.update(group.positions)
        reversal.returns[group.place] = restoration
        reversal.removed.update(set(group.positions) - {group.place})
        reversal.dropped |= group.inner


def _restoration(group: Group, value_index: Holding, scope: Scope, router: Router) -> Return | None:
    """Return the restoration of a group.

    `None` if the target is in the other direction, or if the original cannot be converted to it.
    """
    if not _is_toward_target(group, scope, router):
        return None
    used_before = len(scope.concessions.used)
    try:
        node, result = _rewrite_original(group, scope, router)
    except (CannotConvert, ResolveError):
        # withdraw the allowances of the failed attempt
        del scope.concessions.used[used_before:]
        return None
    operators = tuple(_operator_label(value_index.nodes[each], scope) for each in group.positions)
    return Return(group, operators, node, result)


def _rewrite_original(group: Group, scope: Scope, router: Router) -> tuple[Node, Rewritten]:
    """Return the original and its conversion to the target, which is the node itself if nothing changes."""
    viewed = scope.node(group.original)
    found = rewrite(viewed, group.opset, scope, router)
    require_sound(viewed, found.operator)
    node, result = viewed, found
    if isinstance(scope, CallScope):
        node, result = settled(viewed, group.original, found, scope)
    if len(found.nodes) == 1 and found.nodes[0].node is viewed:
        node = Node.of(group.original)
        result = found._replace(nodes=(found.nodes[0]._replace(node=node),))
    return node, result


def _is_toward_target(group: Group, scope: Scope, router: Router) -> bool:
    """Return whether the opset of the original is in the direction of the target.

    A node with subgraphs is restored at its exact opsets only, because nodes in restored subgraphs are not
    converted.
    """
    domain = canonical_domain(group.original.domain)
    current, target = scope.opsets[domain], router.final_opset(domain)
    if any(graphs_of(group.original)):
        return all(router.final_opset(each.domain) == each.version for each in group.entry.opsets)
    return (target - current) * (group.opset - current) > 0


def _operator_label(node: Any, scope: Scope) -> str:
    found = scope.operator(node.op_type, node.domain)
    return str(found.id) if found else f"{canonical_domain(node.domain)}.{node.op_type}"


def drop_constants(reversal: Reversal, value_index: Holding, read: Set[str]) -> None:
    """Plan to remove added constants that only removed nodes read.

    Args:
        reversal: the plan of the restorations.
        value_index: index of the graph or function before the conversion.
        read: names that new and restored nodes, or other graphs, read.
    """
    replaced = {place for place, each in reversal.returns.items() if not each.group.is_original}
    removed = reversal.removed | replaced
    for name in reversal.constants:
        if name in read or not value_index.has_constant(name):
            continue
        if value_index.readers.get(name, frozenset()) <= removed:
            reversal.dropped.add(name)
            if name in value_index.makers:
                reversal.removed.add(value_index.makers[name])
