"""Record entries of one graph or function after a conversion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opshift.converter.plan.changes import ContainerPlan, NodeChange
from opshift.converter.reversible.intact_groups import Group
from opshift.converter.reversible.preconditions import givens
from opshift.converter.reversible.record import Entry, Opset
from opshift.converter.reversible.value_index import (
    domains_of,
    first_output,
    names_read,
    names_read_by,
    outputs_of,
)
from opshift.converter.rewrite.rewrite_node import Written
from opshift.converter.rewrite.routes import Router, router_for
from opshift.converter.survey.survey import Surveyed
from opshift.inference.scope import Scope
from opshift.model.graphs import graphs_of
from opshift.model.offloaded_tensors import byte_size, serialized
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.errors import ResolveError

LARGEST_HOLDER = 1 << 16
"""Size limit in bytes for recording a replaced node with subgraphs. The nodes in the subgraphs of a larger
node have their own entries."""


def still_remembered(found: ContainerPlan, surveyed: Surveyed) -> Iterator[Entry]:
    """Yield updated entries for recorded groups whose originals are not restored unchanged."""
    scope = surveyed.scope
    for restoration in found.reversal.returns.values():
        if not restoration.is_whole:
            yield from _group_entries(
                restoration.group.original, restoration.group.entry.opsets, restoration.result.nodes, scope
            )
    changes = {each.position: each.result.nodes for each in found.changes}
    for group in found.reversal.carried:
        yield from _carried_entries(group, changes, scope)


def newly_remembered(found: ContainerPlan, surveyed: Surveyed, router: Router) -> Iterator[Entry]:
    """Yield entries for nodes that change now or would change in the reverse conversion."""
    scope = surveyed.scope
    known = found.reversal.settled.union(*(each.positions for each in found.reversal.carried))
    changes = {each.position: each for each in found.changes}
    reverse = _ReverseConversion(scope, router)
    for index, proto in enumerate(scope.container.node):
        if index not in known and (index in changes or reverse.changes(proto)):
            yield from _new_entries(proto, changes.get(index), scope)


def _new_entries(proto: Any, change: NodeChange | None, scope: Scope) -> Iterator[Entry]:
    has_subgraphs = any(graphs_of(proto))
    if has_subgraphs and (change is None or byte_size(proto) > LARGEST_HOLDER):
        return
    opsets = tuple(
        Opset(domain=domain, version=scope.opset_of(domain)) for domain in sorted(domains_of(proto))
    )
    if change is not None:
        yield from _group_entries(proto, opsets, change.result.nodes, scope)
    elif first_output(proto):
        preconditions = givens(proto, frozenset(proto.input), scope)
        yield Entry(opsets=opsets, group=(first_output(proto),), inputs=preconditions)


def _group_entries(
    original: Any, opsets: tuple[Opset, ...], written: tuple[Written, ...], scope: Scope
) -> Iterator[Entry]:
    group = outputs_of(written)
    if all(group):  # a node without named outputs cannot be found again
        preconditions = givens(original, frozenset(names_read_by(written)), scope)
        yield Entry(opsets=opsets, original=_hex(original), group=group, inputs=preconditions)


def _carried_entries(
    group: Group, changes: Mapping[int, tuple[Written, ...]], scope: Scope
) -> Iterator[Entry]:
    """Yield the entry of a group that remains and may have nodes that this conversion replaces."""
    names: list[str] = []
    read: set[str] = set()
    for position in group.positions:
        proto, written = scope.container.node[position], changes.get(position)
        names += (first_output(proto),) if written is None else outputs_of(written)
        read.update(names_read(proto) if written is None else names_read_by(written))
    is_original = group.is_original and changes.keys().isdisjoint(group.positions)
    text = "" if is_original else group.entry.original or _hex(group.original)
    if all(names):
        preconditions = givens(group.original, read, scope)
        yield Entry(opsets=group.entry.opsets, original=text, group=tuple(names), inputs=preconditions)


class _ReverseConversion:
    """Routes from the target of a router back to the current opsets of a scope."""

    def __init__(self, scope: Scope, router: Router) -> None:
        self._scope = scope
        self._router = router
        start = {DEFAULT_DOMAIN: router.default_opset, **scope.opsets}
        self._reverse_router = router_for(scope.registry, frozenset(start.items()))

    def changes(self, proto: Any) -> bool:
        """Return whether the reverse conversion would change a node that stays unchanged now."""
        domain = canonical_domain(proto.domain)
        if domain not in self._scope.opsets:
            return False
        try:
            route = self._reverse_router.route(proto.domain, proto.op_type, self._router.final_opset(domain))
        except ResolveError:
            return False
        return bool(route.steps) and route.concerns is None


def _hex(proto: Any) -> str:
    return serialized(proto).hex()
