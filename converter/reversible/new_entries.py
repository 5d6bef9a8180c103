"""Record entries of one graph or function after a conversion."""

from collections.abc import Iterator, Mapping, Set

from opshift.converter.plan.changes import ContainerPlan, NodeChange
from opshift.converter.reversible.intact_groups import Group
from opshift.converter.reversible.preconditions import preconditions_of
from opshift.converter.reversible.record import Opset, RecordEntry
from opshift.converter.reversible.value_index import first_name, names_read, names_read_by_emissions
from opshift.inference.scope import Scope
from opshift.inference.survey import ContainerSurvey
from opshift.model.graphs import graphs_of, nested_nodes, node_place
from opshift.model.messages import NodeProto
from opshift.model.node_key import require_utf8_names
from opshift.model.offloaded_tensors import serialize, serialized_size
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.errors import ResolveError
from opshift.rewriting.result import Emission
from opshift.rewriting.router_for import router_for
from opshift.rewriting.routes import Router

MAX_RECORDED_NODE_SIZE = 1 << 16
"""Size limit in bytes for recording a node with subgraphs. The nodes in the subgraphs of a larger
node have their own entries."""


def retained_entries(plan: ContainerPlan, surveyed: ContainerSurvey) -> Iterator[RecordEntry]:
    """Yield updated entries for recorded groups whose originals are not restored unchanged."""
    scope = surveyed.scope
    for restoration in plan.reversal.restored.values():
        if not restoration.is_whole:
            group, _, result = restoration
            yield from _group_entries(group.original, group.entry.opsets, result.nodes, scope)
    changes = {each.position: each.result.nodes for each in plan.changes}
    for group in plan.reversal.kept_groups:
        yield from _carried_entries(group, changes, scope)


def added_entries(plan: ContainerPlan, surveyed: ContainerSurvey, router: Router) -> Iterator[RecordEntry]:
    """Yield entries for nodes that change now or would change in the reverse conversion."""
    scope = surveyed.scope
    known = plan.reversal.restored_positions.union(*(each.positions for each in plan.reversal.kept_groups))
    changes = {each.position: each for each in plan.changes}
    reverse_targets = {DEFAULT_DOMAIN: router.default_opset, **scope.opsets}
    reverse_router = router_for(scope.registry, frozenset(reverse_targets.items()), frozenset())
    for index, proto in enumerate(scope.container.node):
        if index in known or (
            index not in changes and not _would_change(proto, scope, router, reverse_router)
        ):
            continue
        if any(graphs_of(proto)) and serialized_size(proto) > MAX_RECORDED_NODE_SIZE:
            plan.reversal.unrecorded.append(node_place(surveyed.path, proto))
        else:
            yield from _new_entries(proto, changes.get(index), scope)


def _would_change(proto: NodeProto, scope: Scope, router: Router, reverse_router: Router) -> bool:
    """Return whether the reverse conversion would change a node that stays unchanged now."""
    domain = canonical_domain(proto.domain)
    if domain not in scope.opsets:
        return False
    try:
        route = reverse_router.route(proto.domain, proto.op_type, router.final_opset(domain))
    except ResolveError:
        return False
    return bool(route.steps) and route.affected_element_types is None


def _new_entries(proto: NodeProto, change: NodeChange | None, scope: Scope) -> Iterator[RecordEntry]:
    nodes = (proto, *nested_nodes(*graphs_of(proto)))
    domains = sorted({canonical_domain(each.domain) for each in nodes})
    require_utf8_names(domains)
    opsets = tuple(Opset(domain=domain, version=scope.opset_of(domain)) for domain in domains)
    if change is not None:
        yield from _group_entries(proto, opsets, change.result.nodes, scope)
    else:
        # nodes in the subgraphs may change, although the node itself does not
        text = serialize(proto).hex() if any(graphs_of(proto)) else ""
        group = (first_name(proto.output),)
        yield from _entries(proto, text, opsets, group, frozenset(names_read(proto)), scope)


def _group_entries(
    original: NodeProto, opsets: tuple[Opset, ...], emissions: tuple[Emission, ...], scope: Scope
) -> Iterator[RecordEntry]:
    group = tuple(first_name(each.node.outputs) for each in emissions)
    read = frozenset(names_read_by_emissions(emissions))
    yield from _entries(original, serialize(original).hex(), opsets, group, read, scope)


def _carried_entries(
    group: Group, changes: Mapping[int, tuple[Emission, ...]], scope: Scope
) -> Iterator[RecordEntry]:
    """Yield the entry of a group that remains and may have nodes that this conversion replaces."""
    names: list[str] = []
    read: set[str] = set()
    for position in group.positions:
        if position in changes:
            names += (first_name(each.node.outputs) for each in changes[position])
            read.update(names_read_by_emissions(changes[position]))
        else:
            proto = scope.container.node[position]
            names.append(first_name(proto.output))
            read.update(names_read(proto))
    is_original = group.is_original and changes.keys().isdisjoint(group.positions)
    text = "" if is_original else group.entry.original or serialize(group.original).hex()
    yield from _entries(group.original, text, group.entry.opsets, tuple(names), read, scope)


def _entries(
    original: NodeProto,
    text: str,
    opsets: tuple[Opset, ...],
    group: tuple[str, ...],
    read: Set[str],
    scope: Scope,
) -> Iterator[RecordEntry]:
    if all(group):  # a node without named outputs cannot be found again
        require_utf8_names(group)
        inputs = tuple(preconditions_of(original, read, scope))
        yield RecordEntry(opsets=opsets, original=text, group=group, inputs=inputs)
