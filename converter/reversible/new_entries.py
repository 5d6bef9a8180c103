"""Record entries of one graph or function after a conversion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opshift.converter.plan.changes import ContainerPlan, NodeChange
from opshift.converter.reversible.intact_groups import Group
from opshift.converter.reversible.preconditions import preconditions_of
from opshift.converter.reversible.record import Opset, RecordEntry
from opshift.converter.reversible.value_index import (
    domains_of,
    first_output,
    first_outputs_of,
    names_read,
    names_read_by_emissions,
)
from opshift.converter.rewrite.result import Emission
from opshift.converter.rewrite.routes import Router, router_for
from opshift.converter.survey.survey import ContainerSurvey
from opshift.inference.scope import Scope
from opshift.model.graphs import graphs_of
from opshift.model.messages import NodeProto
from opshift.model.offloaded_tensors import serialize, serialized_size
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.errors import ResolveError

MAX_RECORDED_NODE_SIZE = 1 << 16
"""Size limit in bytes for recording a replaced node with subgraphs. The nodes in the subgraphs of a larger
node have their own entries."""


def retained_entries(plan: ContainerPlan, surveyed: ContainerSurvey) -> Iterator[RecordEntry]:
    """Yield updated entries for recorded groups whose originals are not restored unchanged."""
    scope = surveyed.scope
    for restoration in plan.reversal.restored.values():
        if not restoration.is_whole:
            yield from _group_entries(
                restoration.group.original, restoration.group.entry.opsets, restoration.result.nodes, scope
            )
    changes = {each.position: each.result.nodes for each in plan.changes}
    for group in plan.reversal.kept_groups:
        yield from _carried_entries(group, changes, scope)


def added_entries(plan: ContainerPlan, surveyed: ContainerSurvey, router: Router) -> Iterator[RecordEntry]:
    """Yield entries for nodes that change now or would change in the reverse conversion."""
    scope = surveyed.scope
    known = plan.reversal.restored_positions.union(*(each.positions for each in plan.reversal.kept_groups))
    changes = {each.position: each for each in plan.changes}
    reverse = _ReverseConversion(scope, router)
    for index, proto in enumerate(scope.container.node):
        if index not in known and (index in changes or reverse.changes(proto)):
            yield from _new_entries(proto, changes.get(index), scope)


def _new_entries(proto: NodeProto, change: NodeChange | None, scope: Scope) -> Iterator[RecordEntry]:
    has_subgraphs = any(graphs_of(proto))
    if has_subgraphs and (change is None or serialized_size(proto) > MAX_RECORDED_NODE_SIZE):
        return
    opsets = tuple(
        Opset(domain=domain, version=scope.opset_of(domain)) for domain in sorted(domains_of(proto))
    )
    if change is not None:
        yield from _group_entries(proto, opsets, change.result.nodes, scope)
    elif first_output(proto):
        preconditions = preconditions_of(proto, frozenset(proto.input), scope)
        yield RecordEntry(opsets=opsets, group=(first_output(proto),), inputs=preconditions)


def _group_entries(
    original: NodeProto, opsets: tuple[Opset, ...], emissions: tuple[Emission, ...], scope: Scope
) -> Iterator[RecordEntry]:
    group = first_outputs_of(emissions)
    if all(group):  # a node without named outputs cannot be found again
        preconditions = preconditions_of(original, frozenset(names_read_by_emissions(emissions)), scope)
        yield RecordEntry(opsets=opsets, original=_hex(original), group=group, inputs=preconditions)


def _carried_entries(
    group: Group, changes: Mapping[int, tuple[Emission, ...]], scope: Scope
) -> Iterator[RecordEntry]:
    names: list[str] = []
    read: set[str] = set()
    for position in group.positions:
        proto, emissions = scope.container.node[position], changes.get(position)
        names += (first_output(proto),) if emissions is None else first_outputs_of(emissions)
        read.update(names_read(proto) if emissions is None else names_read_by_emissions(emissions))
    is_original = group.is_original and changes.keys().isdisjoint(group.positions)
    text = "" if is_original else group.entry.original or _hex(group.original)
    if all(names):
        preconditions = preconditions_of(group.original, read, scope)
        yield RecordEntry(opsets=group.entry.opsets, original=text, group=tuple(names), inputs=preconditions)


class _ReverseConversion:
    """Routes from the target of a router back to the current opsets of a scope."""

    def __init__(self, scope: Scope, router: Router) -> None:
        self._scope = scope
        self._router = router
        start = {DEFAULT_DOMAIN: router.default_opset, **scope.opsets}
        self._reverse_router = router_for(scope.registry, frozenset(start.items()))

    def changes(self, proto: NodeProto) -> bool:
        """Return whether the reverse conversion would change a node that stays unchanged now."""
        domain = canonical_domain(proto.domain)
        if domain not in self._scope.opsets:
            return False
        try:
            route = self._reverse_router.route(proto.domain, proto.op_type, self._router.final_opset(domain))
        except ResolveError:
            return False
        return bool(route.steps) and route.affected_element_types is None


def _hex(proto: NodeProto) -> str:
    return serialize(proto).hex()
