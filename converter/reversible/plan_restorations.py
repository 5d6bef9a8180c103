"""Plan which original nodes to restore in one graph or function."""

from collections import Counter
from collections.abc import Iterable, Set
from itertools import chain

from opshift.converter.functions.attribute_references import restore_references
from opshift.converter.plan.changes import ContainerPlan, Restoration, Restorations
from opshift.converter.reversible.intact_groups import Group
from opshift.converter.reversible.value_index import ValueIndex, names_read_by
from opshift.inference.function_scope import CallScope
from opshift.inference.scope import Scope
from opshift.model.errors import CannotConvert
from opshift.model.graphs import graphs_of, nested_nodes
from opshift.model.messages import NodeProto
from opshift.model.node import Node
from opshift.model.operator_ids import called_function, canonical_domain
from opshift.registry.errors import ResolveError
from opshift.rewriting.result import ComputedRewrite
from opshift.rewriting.rewrite_node import rewrite_node
from opshift.rewriting.routes import Router
from opshift.rewriting.validation import validate_node
from opshift.rewriting.workspace import Workspace


def plan_restorations(
    groups: Iterable[Group],
    reversal: Restorations,
    value_index: ValueIndex,
    workspace: Workspace,
    router: Router,
) -> None:
    """Decide for each group whether its original is restored, and add the decision to `reversal`."""
    for group in groups:
        restoration = _restoration(group, value_index, workspace, router)
        if restoration is None:
            reversal.kept_groups.append(group)
            continue
        reversal.restored_positions.update(group.positions)
        reversal.restored[group.place] = restoration
        reversal.removed.update(set(group.positions) - {group.place})
        reversal.dropped |= group.inner


def _restoration(
    group: Group, value_index: ValueIndex, workspace: Workspace, router: Router
) -> Restoration | None:
    """Return the restoration of a group.

    Return `None` if the original is not nearer to the target, cannot be converted to it, or has subgraphs
    with nodes that the result may not contain.
    """
    scope, allowances = workspace.scope, workspace.allowances
    if not _is_toward_target(group, scope, router):
        return None
    if not _are_subgraphs_valid(group, value_index, scope, router):
        return None
    used_before = len(allowances.used)
    try:
        result = _rewrite_original(group, workspace, router)
    except (CannotConvert, ResolveError):
        # remove the allowances that the failed attempt recorded
        del allowances.used[used_before:]
        return None
    operators = tuple(_operator_label(value_index.nodes[each], scope) for each in group.positions)
    return Restoration(group, operators, result)


def _rewrite_original(group: Group, workspace: Workspace, router: Router) -> ComputedRewrite:
    """Return the rewrite of the original node for the target; it may contain the unchanged node."""
    scope = workspace.scope
    viewed = scope.node(group.original)
    rewrite = rewrite_node(viewed, group.opset, scope, workspace, router)
    validate_node(viewed, rewrite.operator)
    result = restore_references(rewrite, group.original, scope)
    assert isinstance(result, ComputedRewrite)
    if len(rewrite.nodes) == 1 and rewrite.nodes[0].node is viewed:
        node = Node.from_proto(group.original)
        return rewrite._replace(original=node, nodes=(rewrite.nodes[0]._replace(node=node),))
    return result


def _is_toward_target(group: Group, scope: Scope, router: Router) -> bool:
    """Return whether restoring the original changes the opset of the node toward the target.

    A node with subgraphs is restored at its exact opsets only, because nodes in restored subgraphs are not
    converted.
    """
    domain = canonical_domain(group.original.domain)
    current, target = scope.opsets[domain], router.final_opset(domain)
    if any(graphs_of(group.original)):
        return all(router.final_opset(each.domain) == each.version for each in group.entry.opsets)
    return (target - current) * (group.opset - current) > 0


def _are_subgraphs_valid(group: Group, value_index: ValueIndex, scope: Scope, router: Router) -> bool:
    """Return whether the model may contain the nodes in the subgraphs of the original, which do not change.

    Each node must call a function of the model, or belong to a defined operator that `without` does not name.
    An undefined operator, for example of a private runtime, is valid if the group contains it, too.
    Otherwise, it is probably a function that was inlined, renamed or removed.
    """
    functions = scope.functions if isinstance(scope, CallScope) else None
    current = [value_index.nodes[position] for position in group.positions]
    nested = nested_nodes(*chain.from_iterable(map(graphs_of, current)))
    called = {called_function(node) for node in (*current, *nested)}
    for node in nested_nodes(*graphs_of(group.original)):
        if functions is not None and functions.find(node) is not None:
            continue
        domain = canonical_domain(node.domain)
        opset = group.entry.opset(domain)
        if opset is None:
            return False
        try:
            if router.route(node.domain, node.op_type, opset).steps and router.without:
                return False
        except ResolveError:
            names = (domain, f"{domain}.{node.op_type}")
            if called_function(node) not in called or not router.without.isdisjoint(names):
                return False
    return True


def _operator_label(node: NodeProto, scope: Scope) -> str:
    operator = scope.operator(node.op_type, node.domain)
    return str(operator.id) if operator else f"{canonical_domain(node.domain)}.{node.op_type}"


def drop_unused_constants(plan: ContainerPlan, value_index: ValueIndex, read: Set[str]) -> None:
    """Plan to remove added constants that only removed nodes read, and withdraw the changes of removed nodes.

    `value_index` is for the graph before the conversion. `read` are the names that other graphs read, or
    original nodes that may be restored later.
    """
    reversal = plan.reversal
    new_reads = {each.position: set(names_read_by(each.result.nodes)) for each in plan.changes}
    read_counts = Counter(chain.from_iterable(new_reads.values()))
    replaced = {place for place, each in reversal.restored.items() if not each.group.is_original}
    removed = reversal.removed | replaced
    for name in reversal.constants:
        if name in read or read_counts[name] or not value_index.has_constant(name):
            continue
        if value_index.consumers.get(name, frozenset()) <= removed:
            reversal.dropped.add(name)
            if name in value_index.producers:
                position = value_index.producers[name]
                reversal.removed.add(position)
                # `reversal.constants` lists a Cast before its constant, so a later iteration can remove the
                # constant.
                removed.add(position)
                read_counts.subtract(new_reads.get(position, ()))
    plan.changes = [
        each
        for each in plan.changes
        if each.position in reversal.restored or each.position not in reversal.removed
    ]
