"""Use the record of earlier conversions in a plan: restore original nodes, and add new entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import chain

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS, STANDALONE, since
from opshift.converter.ir_version.lower import LOWERINGS, plan_lowering, required_ir_version
from opshift.converter.options import Options
from opshift.converter.plan.changes import ContainerPlan, IrChange, NodeChange, Restorations
from opshift.converter.reversible.intact_groups import Group, intact_groups, preconditions_of, read_original
from opshift.converter.reversible.plan_restorations import drop_unused_constants, plan_restorations
from opshift.converter.reversible.record import (
    ConversionRecord,
    GraphPath,
    Opset,
    RecordEntry,
    RecordPart,
    read_record,
    recorded_inputs,
    top_level_graphs,
)
from opshift.converter.reversible.value_index import (
    ValueIndex,
    first_name,
    names_defined,
    names_read,
    names_read_by,
    names_read_in_graph,
)
from opshift.inference.scope import Scope
from opshift.inference.survey import ContainerSurvey
from opshift.model.graphs import (
    ContainerProto,
    graphs_of,
    nested_nodes,
    node_place,
    read_node_record,
    remove_messages,
    training_graphs,
)
from opshift.model.indirect_reads import bound_names, values_named_in_attributes
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.node_key import require_utf8_names
from opshift.model.offloaded_tensors import serialize, serialized_size
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, function_id
from opshift.registry.errors import ResolveError
from opshift.registry.ir_versions import ir_versions
from opshift.registry.steps import Allow
from opshift.rewriting.result import ConvertedNode
from opshift.rewriting.router_for import router_for
from opshift.rewriting.routes import Router
from opshift.rewriting.workspace import Allowances, FreshNames, Workspace

MAX_RECORDED_NODE_SIZE = 1 << 16
"""Size limit in bytes for recording a node with subgraphs. The nodes in the subgraphs of a larger
node have their own entries."""


def retained_entries(plan: ContainerPlan, surveyed: ContainerSurvey) -> Iterator[RecordEntry]:
    """Yield updated entries for groups whose original node is not restored, or is restored with changes."""
    scope = surveyed.scope
    for restoration in plan.reversal.restored.values():
        if not restoration.is_whole:
            group, _, result = restoration
            yield from _group_entries(group.original, group.entry.opsets, result.nodes, scope)
    changes = {each.position: each for each in plan.changes}
    for group in plan.reversal.kept_groups:
        yield from _carried_entries(group, changes, scope)


def added_entries(plan: ContainerPlan, surveyed: ContainerSurvey, router: Router) -> Iterator[RecordEntry]:
    """Yield entries for nodes that this conversion changes, or that the reverse conversion would change.

    The places of nodes that are too large are added to `unrecorded` instead.
    """
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
    """Return whether the reverse conversion would change a kept node, whatever its element types are."""
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
        # Store a node with subgraphs: nodes in these may change, even if the node itself does not.
        text = serialize(proto).hex() if any(graphs_of(proto)) else ""
        group = (first_name(proto.output),)
        yield from _entries_of_group(proto, text, opsets, group, frozenset(names_read(proto)), scope)


def _group_entries(
    original: NodeProto, opsets: tuple[Opset, ...], converted_nodes: tuple[ConvertedNode, ...], scope: Scope
) -> Iterator[RecordEntry]:
    group = tuple(first_name(each.node.outputs) for each in converted_nodes)
    read = frozenset(names_read_by(converted_nodes))
    yield from _entries_of_group(original, serialize(original).hex(), opsets, group, read, scope)


def _carried_entries(group: Group, changes: Mapping[int, NodeChange], scope: Scope) -> Iterator[RecordEntry]:
    """Yield the record entry of a group that is not restored, updated for its nodes that change."""
    names: list[str] = []
    read: set[str] = set()
    for position in group.positions:
        if position in changes:
            converted_nodes = changes[position].result.nodes
            names += (first_name(each.node.outputs) for each in converted_nodes)
            read.update(names_read_by(converted_nodes))
        else:
            proto = scope.container.node[position]
            names.append(first_name(proto.output))
            read.update(names_read(proto))
    is_original = group.is_original and changes.keys().isdisjoint(group.positions)
    text = "" if is_original else group.entry.original or serialize(group.original).hex()
    yield from _entries_of_group(group.original, text, group.entry.opsets, tuple(names), read, scope)


def _entries_of_group(
    original: NodeProto,
    text: str,
    opsets: tuple[Opset, ...],
    group: tuple[str, ...],
    read: Set[str],
    scope: Scope,
) -> Iterator[RecordEntry]:
    if all(group):  # a node without named outputs cannot be identified later
        require_utf8_names(group)
        inputs = tuple(preconditions_of(original, read, scope))
        yield RecordEntry(opsets=opsets, original=text, group=group, inputs=inputs)


class History:
    """Record of the earlier conversions of one model.

    InvalidModel is raised if the record is damaged, or if a name to be recorded is not UTF-8 text.

    `is_continued` states whether this conversion is recorded too.
    """

    def __init__(self, model: ModelProto, is_continued: bool) -> None:
        self.is_continued = is_continued
        self._model = model
        self._record = read_record(model)
        # Refuse names that are not UTF-8 here: JSON requires UTF-8, and is written after the conversion.
        for imports in (model.opset_import, *(function.opset_import for function in model.functions)):
            require_utf8_names(each.domain for each in imports)
        for function in model.functions:
            require_utf8_names(function_id(function))
        self._value_indexes: dict[int, ValueIndex] = {}
        self._restored: list[NodeProto] = []

    def reserve_names(self, names: FreshNames) -> None:
        """Reserve the names that restored nodes may define: new values get other names."""
        originals = chain.from_iterable(self._original_nodes.values())
        reserved = {name for each in originals for name in names_defined(each)}
        names.sources.append(lambda: [reserved])

    def restore(
        self, plan: ContainerPlan, surveyed: ContainerSurvey, workspace: Workspace, router: Router
    ) -> None:
        """Plan to restore the original nodes of unchanged groups (nodes that replaced one original node).

        A group is restored only if the opset of its original and the target are both newer or both older than
        the current opset; an original with subgraphs, only if its opsets equal the target. A restored
        original is converted to the target.
        """
        part = self._parts_by_id.get(id(surveyed.scope.container))
        if part is None:
            return
        scope, reversal = surveyed.scope, plan.reversal
        value_index = self._value_index(scope.container)
        reversal.constants = [each for each in part.constants if value_index.has_constant(each)]
        groups = intact_groups(part, surveyed, value_index, self._used_outside(scope.container))
        configurations = {each.name for each in getattr(self._model, "configuration", ())}
        for group in groups:
            if not group.is_original:
                drop_unknown_devices(group.original, configurations)
        plan_restorations(groups, reversal, value_index, workspace, router)
        for position, each in reversal.restored.items():
            original = each.group.original
            if not each.group.is_original:
                self._restored.append(original)
            if not (each.is_whole and each.group.is_original):
                record = read_node_record(position, original)
                plan.changes.append(NodeChange(record, surveyed.path, original.name, each.result))

    def add_entries(self, plan: ContainerPlan, surveyed: ContainerSurvey, router: Router) -> None:
        """Add the record entries of a graph or function to its plan, and drop unused constants."""
        reversal = plan.reversal
        if reversal.restored:
            container = surveyed.scope.container
            read = {*self._used_outside(container), *self._names_needed_later(reversal, surveyed)}
            drop_unused_constants(plan, self._value_index(container), read)
        reversal.entries += retained_entries(plan, surveyed)
        if self.is_continued:
            reversal.entries += added_entries(plan, surveyed, router)
        # Rejected restorations and withdrawn changes may have added unused constants.
        if reversal.kept_groups or reversal.removed:
            changes = (each.result.nodes for each in plan.changes)
            used = {name for nodes in changes for name in names_read_by(nodes)}
            plan.constants = {name: each for name, each in plan.constants.items() if name in used}
        # Restorations precede conversions in the list: sort all changes by position.
        plan.changes.sort(key=lambda each: each.position)
        reversal.constants += [*plan.constants, *plan.cast_sources.values()]
        reversal.holders = _subgraph_holders(plan, surveyed)
        require_utf8_names((*reversal.holders.values(), *(attribute for _, attribute in reversal.holders)))

    def plan_ir_change(self, change: IrChange, imports: Mapping[str, int], options: Options) -> IrChange:
        """Return the change of the IR version, adapted to the record.

        A conversion back to the recorded opsets restores the recorded IR version, if the target allows it. If
        this conversion writes a record and the target names no IR version, the result keeps an IR version
        with all features of the model, except those that the caller allows to drop. Features of restored
        nodes that the IR version lacks are rewritten.
        """
        change = self._recorded_ir_change(change, imports, options)
        return lower_restored(self._restored, change, options) if self._restored else change

    def _recorded_ir_change(self, change: IrChange, imports: Mapping[str, int], options: Options) -> IrChange:
        target = options.target
        if target.requested_ir_version is not None:
            return change
        finals = {**imports, **target.opsets}
        if self._record and all(finals.get(each.domain) == each.version for each in self._record.opsets):
            return self._restored_ir_version(change, self._record, options)
        if self.is_continued and target.ir_version is None:
            least = min(change.before, FIRST_IR_WITH_STANDALONE_INITIALIZERS)
            dropped = tuple(each for each in change.lowerings if each.feature in change.dropped)
            kept = [since(each.feature) for each in change.lowerings if each not in dropped]
            if change.inlines_functions:
                # The newer IR version keeps the functions, so the features in them count, too.
                needed = required_ir_version(self._model, options.registry, change.dropped)
                kept.append(min(needed, change.before))
            return replace(change, after=max([least, change.after, *kept]), lowerings=dropped)
        return change

    def updated_record(self, imports: Mapping[str, int], ir: IrChange) -> ConversionRecord:
        """Return the record without new parts: only the IR version and the removed inputs are updated."""
        opsets = tuple(Opset(domain=domain, version=opset) for domain, opset in imports.items())
        known = self._record or ConversionRecord(format=1, ir_version=(ir.before, ir.after), opsets=opsets)
        inputs = recorded_inputs(self._model.graph, ir.freed_initializers) or known.initializer_inputs
        return known.model_copy(
            update={"ir_version": (known.ir_version[0], ir.after), "initializer_inputs": inputs}
        )

    def _restored_ir_version(self, change: IrChange, record: ConversionRecord, options: Options) -> IrChange:
        newest = options.target.ir_version
        before, after = record.ir_version
        if change.before != after:  # the IR version was edited since the recorded conversion: do not lower it
            before = max(before, change.before)
        if before < change.before:  # features that were added since may need a newer IR version
            # Do not count standalone initializers: they become inputs again.
            before = max(before, required_ir_version(self._model, options.registry, {STANDALONE}))
        if newest is not None and before > newest:
            return change
        return IrChange(change.before, before)

    @cached_property
    def _original_nodes(self) -> dict[int, list[NodeProto]]:
        """Original nodes of the recorded groups, by the `id` of the graph or function."""
        sample = NodeProto()
        return {
            key: [read_original(each, sample) for each in part.entries if each.original]
            for key, part in self._parts_by_id.items()
        }

    def _names_needed_later(self, reversal: Restorations, surveyed: ContainerSurvey) -> Iterator[str]:
        """Yield the names that original nodes read if a later conversion may restore these nodes."""
        for group in reversal.kept_groups:
            yield from names_read(group.original)
        positions = reversal.restored_positions
        waiting = [inner for position, _, _, inner in surveyed.subgraphs if position not in positions]
        for current in chain.from_iterable(each.walk() for each in waiting):
            for original in self._original_nodes.get(id(current.scope.container), ()):
                yield from names_read(original)

    @cached_property
    def _parts_by_id(self) -> dict[int, RecordPart]:
        """Record of each graph and function that still exists, by the `id` of its message."""
        parts: dict[int, RecordPart] = {}
        top_level = dict(top_level_graphs(self._model))
        for part in self._record.parts if self._record else ():
            container = self._container_at(part.place, top_level)
            if container is not None:
                self._value_index(container)  # holding the message keeps its id valid
                parts[id(container)] = part
        return parts

    def _container_at(
        self, path: GraphPath, top_level: dict[GraphPath, ContainerProto]
    ) -> ContainerProto | None:
        # The paths of the main graph, of training graphs and of functions have 1, 3 and 4 elements.
        top = next((path[:size] for size in (1, 3, 4) if path[:size] in top_level), None)
        # Each nesting level adds three elements: an output of the node with the subgraph, the attribute, and
        # the position in it.
        if top is None or (len(path) - len(top)) % 3:
            return None
        container: ContainerProto | None = top_level[top]
        for index in range(len(top), len(path), 3):
            if container is not None:
                container = self._value_index(container).subgraph(*path[index : index + 3])
        return container

    def _value_index(self, container: ContainerProto) -> ValueIndex:
        key = id(container)
        if key not in self._value_indexes:
            self._value_indexes[key] = ValueIndex(container)
        return self._value_indexes[key]

    def _used_outside(self, container: ContainerProto) -> frozenset[str]:
        """Return names in training bindings and attributes; for the main graph, also those training reads."""
        return self._bound_names | (self._training_reads if container is self._model.graph else frozenset())

    @cached_property
    def _training_reads(self) -> frozenset[str]:
        """Names that training graphs read, including values of the main graph."""
        training = training_graphs(self._model)
        return frozenset(name for each in training for name in names_read_in_graph(each.graph))

    @cached_property
    def _bound_names(self) -> frozenset[str]:
        """Names in training bindings, and names of values in attributes of nodes."""
        return values_named_in_attributes(self._model).names.union(bound_names(self._model))


def _subgraph_holders(plan: ContainerPlan, surveyed: ContainerSurvey) -> dict[tuple[int, str], str]:
    """Return, for each subgraph, the first output of the node that contains it afterwards; empty if none.

    A key is the position of the node that contains the subgraph before the conversion, and the attribute.
    """
    nodes = surveyed.scope.container.node
    changes = {each.position: each for each in plan.changes}
    holders: dict[tuple[int, str], str] = {}
    for index, attribute, _, _ in surveyed.subgraphs:
        if index in changes:
            replacements = (each.node for each in changes[index].result.nodes)
            emitted = (each for each in replacements if attribute in each.attributes)
            holder = next(emitted, None)
            holders[index, attribute] = first_name(holder.outputs) if holder else ""
        else:
            holders[index, attribute] = first_name(nodes[index].output)
    return holders


DROPPED: tuple[Allow, ...] = ("drop-metadata", "drop-devices")
"""Losses that restored nodes may have: an earlier conversion to an older IR version has moved these features
to the metadata of the model, or dropped them."""


def lower_restored(originals: Sequence[NodeProto], change: IrChange, options: Options) -> IrChange:
    """Return the change of the IR version, with the rewrites that restored nodes need.

    `change` is planned for the model before the restoration. If a feature cannot be rewritten, the change has
    a refusal, or a newer IR version if the target allows it.
    """
    # Plan for a model with only these nodes, because `change` does not cover them.
    model = ModelProto(ir_version=ir_versions().newest)
    for each in originals:
        model.graph.node.add().MergeFromString(serialize(each))
    target, operators = options.target, {(each.domain, each.op_type) for each in originals}
    is_strict = target.requested_ir_version is not None or target.ir_version is not None
    allowances = Allowances(DROPPED)
    found = plan_lowering(model, change.after, options, allowances, operators, is_strict=is_strict)
    # The rewrites in `change` also apply to the restored nodes: add only rewrites of other features.
    features = found.rewritten_features - change.rewritten_features if found.lowerings else ()
    added = tuple(each for each in LOWERINGS if each.feature in features)
    return replace(
        change,
        after=found.after,
        lowerings=(*change.lowerings, *added),
        dropped=change.dropped | found.dropped.intersection(each.feature for each in added),
        refusals=(*change.refusals, *found.refusals),
    )


def drop_unknown_devices(original: NodeProto, known: Set[str]) -> None:
    """Remove the references to device configurations that the model does not have."""
    for node in (original, *nested_nodes(*graphs_of(original))):
        found = getattr(node, "device_configurations", None)
        if found:
            remove_messages(found, [each.configuration_id not in known for each in found])
