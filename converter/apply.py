"""Apply a plan to a model: rewrite nodes, add constants and functions, and update opset imports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.ir_version.initializer_inputs import (
    remove_initializer_inputs,
    update_initializer_inputs,
)
from opshift.converter.options import Options
from opshift.converter.plan.changes import ContainerPlan, Plan, Restorations, require_import
from opshift.converter.unread_constants import omit_unread_arguments, remove_unread_constants
from opshift.model.attributes import graphs_in
from opshift.model.graphs import ContainerProto, is_graph, remove_messages, sort_by_keys, training_graphs
from opshift.model.messages import GraphProto, ModelProto, NodeProto, OperatorSetIdProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, declared_opsets, model_domain
from opshift.model.tensors import write_tensor
from opshift.rewriting.cached_rewrite import NodeRewrite
from opshift.rewriting.constant_nodes import (
    ANY_CONSTANT_SINCE,
    add_cast_constant,
    add_constant_node,
    add_input_of,
    needs_cast,
)
from opshift.rewriting.result import write_value_info

if TYPE_CHECKING:
    from opshift.model.messages import Repeated

FIRST_IR_WITH_DEVICES = 11
"""First IR version in which nodes can have device configurations."""

FIRST_IR_WITH_OPSET_IMPORTS = 3
"""First IR version with opset imports; models of older versions have opset 1."""


def apply_conversion(plan: Plan, model: ModelProto, options: Options) -> None:
    """Apply a plan in place, remove names in `without`, rewrite IR features, and update the record.

    Names in `without` are functions, which are inlined, and domains, whose opset imports are removed.
    """
    imports = declared_opsets(model.opset_import)
    apply_plan(plan, model)
    if options.without:
        from opshift.converter.functions.removal import remove

        remove(model, options.without, plan.copies, plan.targets)
    require_import(model, imports, plan.targets, options.registry.releases)
    if plan.ir.rewritten_features:
        # imported here: most conversions rewrite no features of the IR
        from opshift.converter.ir_version.lower import rewrite_features

        rewrite_features(plan.ir, model, options.registry, plan.targets)
    if plan.record is not None:
        from opshift.converter.reversible.write_record import update_record

        update_record(plan.record, plan, model, is_continued=options.reversible)


def apply_plan(plan: Plan, model: ModelProto) -> None:
    """Apply a plan to a model in place, or raise ConversionRefused if the plan contains refusals."""
    plan.require_possible()
    if plan.ir.after != model.ir_version:
        model.ir_version = plan.ir.after
    if plan.ir.freed_initializers:
        remove_initializer_inputs(model.graph, plan.ir.freed_initializers)
    graph_takes_initializers = (
        model.ir_version >= FIRST_IR_WITH_STANDALONE_INITIALIZERS or plan.ir.turns_initializers_into_inputs
    )
    has_devices = model.ir_version >= FIRST_IR_WITH_DEVICES
    opset = _final_opset(model.opset_import, plan.targets)
    graphs = _Target(model.graph, graph_takes_initializers, opset, has_devices)
    containers = [container for _, container in plan.function_versions()]
    unread_in_functions = [each.unread_inputs for each in containers]
    unread = plan.graph.unread_inputs.union(
        *(each.unread_inputs for each in plan.training), *unread_in_functions
    )
    _apply_container(plan.graph, model.graph, graphs)
    for training, container in zip(training_graphs(model), plan.training, strict=True):
        _apply_container(container, training.graph, graphs)
    if plan.updates_subgraph_inputs:
        update_initializer_inputs(model)
    for copy in plan.copies:
        function = model.functions.add()
        function.CopyFrom(model.functions[copy.index])
        function.name = copy.name
    if plan.copies:
        # The sort is stable, so each copy follows its original, as in `containers`.
        sort_by_keys(model.functions, [*range(len(plan.functions)), *(each.index for each in plan.copies)])
    for function, container in zip(model.functions, containers, strict=True):
        opset = _final_opset(function.opset_import or model.opset_import, plan.targets)
        _apply_container(container, function, _Target(None, False, opset, has_devices))
        _update_imports(function.opset_import, plan)
        _add_imports(function.opset_import, [container])
    if (
        plan.opsets or plan.ir.before < FIRST_IR_WITH_OPSET_IMPORTS <= plan.ir.after
    ) and not model.opset_import:
        model.opset_import.add().version = 1
    _update_imports(model.opset_import, plan)
    _add_imports(model.opset_import, [plan.graph, *plan.training])
    # Keep constants if there is a record: nodes that the conversion back restores may read them.
    if unread and plan.record is None:
        omitted = omit_unread_arguments(model, unread_in_functions)
        has_subgraphs = bool(omitted) or any(each.has_subgraphs for each in plan.containers())
        remove_unread_constants(
            model,
            unread | omitted,
            has_subgraphs=has_subgraphs,
            has_constant_nodes=any(each.has_constant_nodes for each in plan.containers()),
        )


class _Target(NamedTuple):
    """Properties of the result that decide how constants and nodes are written.

    Attributes:
        main: the main graph of the model; `None` in functions.
        takes_initializers: whether constants may be initializers.
        opset: opset of the default domain.
        has_devices: whether nodes may have device configurations.
    """

    main: GraphProto | None
    takes_initializers: bool
    opset: int
    has_devices: bool

    def add_constants(self, container: ContainerProto, plan: ContainerPlan) -> int:
        """Add the planned constants to a container, and return the number of appended nodes."""
        before = len(container.node)
        initializers = container.initializer if self.takes_initializers and is_graph(container) else None
        for name, tensor in plan.constants.items():
            if initializers is not None:
                write_tensor(initializers.add(), tensor, name, plan.payloads.get(name))
            elif name in plan.cast_sources:
                add_cast_constant(container, name, tensor, plan.cast_sources[name], self.opset)
            elif self.main is not None and needs_cast(tensor, self.opset):
                initializer = self.main.initializer.add()
                write_tensor(initializer, tensor, name)
                add_input_of(self.main, initializer)
            else:
                add_constant_node(container, name, tensor)
        return len(container.node) - before


def _final_opset(imports: Iterable[OperatorSetIdProto], targets: Mapping[str, int]) -> int:
    """Return the default domain's opset after the conversion; without an import, `ANY_CONSTANT_SINCE`."""
    if DEFAULT_DOMAIN in targets:
        return targets[DEFAULT_DOMAIN]
    versions = (each.version for each in imports if canonical_domain(each.domain) == DEFAULT_DOMAIN)
    return next(versions, ANY_CONSTANT_SINCE)


def _update_imports(imports: Repeated[OperatorSetIdProto], plan: Plan) -> None:
    """Set the target opsets in the imports; remove repeated imports and domains in `plan.removed_imports`."""
    seen = set(plan.removed_imports)
    is_removed: list[bool] = []
    for item in imports:
        domain = canonical_domain(item.domain)
        target = plan.targets.get(domain, item.version)
        if target != item.version:
            item.version = target
        is_removed.append(domain in seen)
        seen.add(domain)
    remove_messages(imports, is_removed)


def _add_imports(imports: Repeated[OperatorSetIdProto], plans: list[ContainerPlan]) -> None:
    items = (item for plan in plans for each in plan.walk() for item in each.new_imports.items())
    for domain, opset in dict(items).items():
        imports.add(domain=model_domain(domain), version=opset)


def _apply_container(plan: ContainerPlan, container: ContainerProto, target: _Target) -> None:
    nodes = container.node
    # Subgraphs first, because new nodes copy the subgraphs of the node that they replace.
    for index, attribute, position, inner in plan.subgraphs:
        if not inner.is_empty:
            _apply_container(inner, _subgraph_at(nodes[index], attribute, position), target)
    for index, name in plan.calls:
        nodes[index].op_type = name
    _restore_originals(plan.reversal, nodes)
    order: list[int] = []
    for record, _, _, result in plan.changes:
        if len(result.operators) == 1 and not target.has_devices:  # fast path for most nodes
            result.write((nodes[record[0]],))
        else:
            order += _replace_node(nodes, record[0], result, target)
    if plan.has_constant_nodes:
        _clear_shared_names(
            nodes, [nodes[record[0]] for record, _, _, _ in plan.changes if record[2] == "Constant"]
        )
    if plan.declarations and is_graph(container):
        for value in plan.declarations:
            write_value_info(container.value_info.add(), value)
    order += [-SORT_KEY_STRIDE] * target.add_constants(container, plan)
    if order:
        sort_by_keys(nodes, [*range(0, plan.node_count * SORT_KEY_STRIDE, SORT_KEY_STRIDE), *order])
    _remove_leftovers(plan.reversal, container)


def _subgraph_at(node: NodeProto, attribute: str, position: int) -> GraphProto:
    found = next(item for item in node.attribute if item.name == attribute)
    return list(graphs_in(found))[position]


def _replace_node(
    nodes: Repeated[NodeProto], position: int, result: NodeRewrite, target: _Target
) -> list[int]:
    """Overwrite a node with the main new node, append the other new nodes, and return keys to sort these."""
    original = nodes[position]
    count = len(result.operators)
    main, added = result.replacement_index, [nodes.add() for _ in range(count - 1)]
    result.write([*added[:main], original, *added[main:]])
    if target.has_devices:
        _copy_device_configurations(original, added)
    return [position * SORT_KEY_STRIDE + place - main for place in range(count) if place != main]


def _clear_shared_names(nodes: Sequence[NodeProto], replaced_constants: Sequence[NodeProto]) -> None:
    """Clear the name of a node that replaces a Constant if another node has the same name.

    Runtimes turn Constant nodes into initializers, so Constant nodes may share a name, unlike other nodes.
    """
    renamed = [node for node in replaced_constants if node.name and node.op_type != "Constant"]
    counts = Counter(node.name for node in nodes) if renamed else {}
    for node in renamed:
        if counts[node.name] > 1:
            node.ClearField("name")


SORT_KEY_STRIDE = 1 << 20
"""Distance between the sort keys of two neighbouring nodes; the nodes inserted between them use the gap."""


def _restore_originals(reversal: Restorations, nodes: Sequence[NodeProto]) -> None:
    """Overwrite nodes with the originals that they replaced, and clear the nodes to be removed."""
    for position, each in reversal.restored.items():
        if not each.group.is_original:
            nodes[position].CopyFrom(each.group.original)
    for position in reversal.removed:
        # Nodes are only cleared here, because removing them would change the planned positions.
        nodes[position].Clear()


def _remove_leftovers(reversal: Restorations, container: ContainerProto) -> None:
    if reversal.removed:
        remove_messages(container.node, [not node.ByteSize() for node in container.node])
    fields = ("initializer", "input", "value_info") if is_graph(container) else ("value_info",)
    for name in fields if reversal.dropped else ():
        if hasattr(container, name):
            field = getattr(container, name)
            remove_messages(field, [each.name in reversal.dropped for each in field])


def _copy_device_configurations(replacement: NodeProto, others: Sequence[NodeProto]) -> None:
    """Copy the device configurations of a node to the other nodes that replace it.

    The new nodes run on the same devices. A sharding specification remains only on nodes that read or produce
    its tensor.
    """
    if not getattr(replacement, "device_configurations", ()):
        return
    for node in others:
        node.device_configurations.extend(replacement.device_configurations)
    for node in (replacement, *others):
        tensors = {*node.input, *node.output}
        for each in node.device_configurations:
            specs = each.sharding_spec
            remove_messages(specs, [spec.tensor_name not in tensors for spec in specs])
