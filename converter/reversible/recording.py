"""What a converted model is to remember of one graph or function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opshift.adapters.elsewhere import byte_size, serialized
from opshift.converter.changes import ContainerPlan, NodeChange
from opshift.converter.container import graphs_of
from opshift.converter.reversible.given import givens
from opshift.converter.reversible.groups import Group
from opshift.converter.reversible.holding import domains_of, first_output, names_read
from opshift.converter.reversible.record import Entry, Opset
from opshift.converter.reversible.written import names_read_by, outputs_of
from opshift.converter.rewrite import Written
from opshift.converter.route import Router, router_for
from opshift.converter.scope import Scope
from opshift.converter.survey import Surveyed
from opshift.registry.errors import ResolveError
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

LARGEST_HOLDER = 1 << 16
"""Bytes of a node with graphs that is recorded with them; a larger one is not, but what they hold is."""


def still_remembered(found: ContainerPlan, surveyed: Surveyed) -> Iterator[Entry]:
    """The groups of earlier conversions that stand for something else, as they come to be."""
    scope = surveyed.scope
    for back in found.reversal.returns.values():
        if not back.is_whole:
            yield from _entry(back.group.original, back.group.entry.opsets, back.result.nodes, scope)
    changes = {each.position: each.result.nodes for each in found.changes}
    for group in found.reversal.carried:
        yield from _carried(group, changes, scope)


def newly_remembered(found: ContainerPlan, surveyed: Surveyed, router: Router) -> Iterator[Entry]:
    """The nodes that change, and those that stay but would change on the way back."""
    scope = surveyed.scope
    known = found.reversal.settled.union(*(each.positions for each in found.reversal.carried))
    changes = {each.position: each for each in found.changes}
    returns = _Returns(scope, router)
    for index, proto in enumerate(scope.container.node):
        if index not in known and (index in changes or returns.change(proto)):
            yield from _new(proto, changes.get(index), scope)


def _new(proto: Any, change: NodeChange | None, scope: Scope) -> Iterator[Entry]:
    is_holder = any(graphs_of(proto))
    if is_holder and (change is None or byte_size(proto) > LARGEST_HOLDER):
        return
    opsets = tuple(
        Opset(domain=domain, version=scope.opset_of(domain)) for domain in sorted(domains_of(proto))
    )
    if change is not None:
        yield from _entry(proto, opsets, change.result.nodes, scope)
    elif first_output(proto):
        given = givens(proto, frozenset(proto.input), scope)
        yield Entry(opsets=opsets, group=(first_output(proto),), inputs=given)


def _entry(
    original: Any, opsets: tuple[Opset, ...], written: tuple[Written, ...], scope: Scope
) -> Iterator[Entry]:
    group = outputs_of(written)
    if all(group):
        given = givens(original, frozenset(names_read_by(written)), scope)
        yield Entry(opsets=opsets, original=_hex(original), group=group, inputs=given)


def _carried(group: Group, changes: Mapping[int, tuple[Written, ...]], scope: Scope) -> Iterator[Entry]:
    """A group some of whose nodes may be replaced."""
    names: list[str] = []
    read: set[str] = set()
    for position in group.positions:
        proto, written = scope.container.node[position], changes.get(position)
        names += (first_output(proto),) if written is None else outputs_of(written)
        read.update(names_read(proto) if written is None else names_read_by(written))
    is_original = group.is_original and changes.keys().isdisjoint(group.positions)
    text = "" if is_original else group.entry.original or _hex(group.original)
    if all(names):
        given = givens(group.original, read, scope)
        yield Entry(opsets=group.entry.opsets, original=text, group=tuple(names), inputs=given)


class _Returns:
    """The way back from a router's target to where a scope is."""

    def __init__(self, scope: Scope, router: Router) -> None:
        self._scope = scope
        self._router = router
        start = {DEFAULT_DOMAIN: router.default_opset, **scope.opsets}
        self._back = router_for(scope.registry, frozenset(start.items()))

    def change(self, proto: Any) -> bool:
        """Whether a node that stays as it is would change on that way."""
        domain = canonical_domain(proto.domain)
        if domain not in self._scope.opsets:
            return False
        try:
            route = self._back.route(proto.domain, proto.op_type, self._router.final_opset(domain))
        except ResolveError:
            return False
        return bool(route.steps) and route.concerns is None


def _hex(proto: Any) -> str:
    return serialized(proto).hex()
