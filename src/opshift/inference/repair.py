"""Repair of models that read values which no earlier node produces."""

from collections.abc import Iterator
from copy import deepcopy

from opshift.inference.scope import Scope
from opshift.inference.sort_nodes import sort_nodes
from opshift.model.errors import InvalidModel
from opshift.model.graphs import captured_names, graphs_of, node_place, training_graphs
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, function_label, opset_imports
from opshift.registry.registry import Registry


def repaired_copy(
    model: ModelProto, error: InvalidModel, registry: Registry
) -> tuple[ModelProto, tuple[str, ...]]:
    """Return a copy of a model without undefined values, and a sentence per repair.

    Nodes are sorted, and dead nodes removed; a branch that never runs is replaced.

    Args:
        model: the model, which remains unchanged.
        error: the reason why the model is invalid, raised if no repair helps.
        registry: operator definitions.
    """
    if not error.concerns_order:
        raise error
    copy = deepcopy(model)
    repairs = (*sort_nodes(copy), *_replace_branches_that_never_run(copy, registry))
    if not repairs:
        raise error
    return copy, repairs


def _replace_branches_that_never_run(model: ModelProto, registry: Registry) -> Iterator[str]:
    imports = opset_imports(model.opset_import, model.ir_version)
    main = Scope(model.graph, imports, registry, {})
    yield from _replace_in(main, "graph")
    for each in training_graphs(model):
        yield from _replace_in(Scope(each.graph, imports, registry, {}, main), each.path)
    for function in model.functions:
        opsets = opset_imports(function.opset_import) if function.opset_import else imports
        yield from _replace_in(Scope(function, opsets, registry, {}), f"function {function_label(function)}")


def _replace_in(scope: Scope, path: str) -> Iterator[str]:
    nodes = scope.container.node
    scope.defined_names.update(name for node in nodes for name in node.output)
    for node in nodes:
        place = node_place(path, node)
        yield from (f"{place}: {repair}" for repair in _replace_branch(node, scope))
        for graph in graphs_of(node):
            yield from _replace_in(scope.child(graph), place)


def _replace_branch(node: NodeProto, scope: Scope) -> Iterator[str]:
    """Replace a branch that reads undefined values and never runs by a copy of the other branch."""
    is_if = node.op_type == "If" and canonical_domain(node.domain) == DEFAULT_DOMAIN
    condition = scope.constant(node.input[0]) if is_if and node.input else None
    branches = {each.name: each.g for each in node.attribute}
    if condition is None or len(condition.values) != 1 or branches.keys() != {"then_branch", "else_branch"}:
        return
    # "else_branch" sorts first, and never runs if the condition is true.
    unused, used = sorted(branches, reverse=not condition.scalar)
    undefined = [name for name in captured_names(branches[unused]) if not scope.is_visible(name)]
    if undefined:
        branches[unused].CopyFrom(branches[used])
        yield f"{unused} never runs and reads the undefined value {undefined[0]!r}; it is replaced by {used}"
