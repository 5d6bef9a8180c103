"""If nodes with a constant condition: the nodes of the branch that runs replace them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from opshift.converter.functions.inlined_call import InlinedCall, InlinedNodes
from opshift.converter.functions.inlining import SORT_KEY_STRIDE, replace_call
from opshift.inference.scope import Scope
from opshift.model.attributes import TENSOR
from opshift.model.errors import CannotConvert
from opshift.model.graphs import ContainerProto, graphs_of, nested_nodes, root_graphs, sort_by_keys
from opshift.model.messages import GraphProto, ModelProto, NodeProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.rewriting.constant_nodes import ANY_CONSTANT_SINCE
from opshift.rewriting.node_names import NodeNames
from opshift.rewriting.rewrite_node import INVALID_NODE_ERRORS
from opshift.rewriting.workspace import FreshNames


class ConstantBranch(NamedTuple):
    """Branch of an If that runs every time."""

    container: ContainerProto
    position: int
    graph: GraphProto


def has_branches(model: ModelProto) -> bool:
    """Return whether a model contains an If."""
    return any(node.op_type == "If" for node in nested_nodes(*root_graphs(model), *model.functions))


def constant_branches(scope: Scope) -> Iterator[ConstantBranch]:
    """Yield the branches that always run, except branches inside of other ones."""
    container = scope.container
    for position, record in enumerate(scope.node_records):
        node = container.node[position]
        branch = _constant_branch(node, scope) if record[2] == "If" and not scope.is_call(record) else None
        if branch is not None:
            yield ConstantBranch(container, position, branch)
        else:
            for graph in graphs_of(node):
                yield from constant_branches(scope.child(graph))


def _constant_branch(node: NodeProto, scope: Scope) -> GraphProto | None:
    if canonical_domain(node.domain) != DEFAULT_DOMAIN or len(node.input) != 1:
        return None
    try:
        condition = scope.constant(node.input[0])
    except (CannotConvert, *INVALID_NODE_ERRORS):  # the node is invalid: the plan reports it
        return None
    if condition is None or condition.element_type != "bool" or len(condition.values) != 1:
        return None
    name = "then_branch" if condition.values[0] else "else_branch"
    found = [each.g for each in node.attribute if each.name == name and each.HasField("g")]
    return found[0] if len(found) == 1 and _can_inline(found[0], node, scope) else None


def _can_inline(branch: GraphProto, node: NodeProto, scope: Scope) -> bool:
    """Return whether the nodes of a branch produce all its outputs, and can hold its initializers."""
    if branch.input or branch.sparse_initializer or branch.quantization_annotation:
        return False
    if branch.initializer and scope.opset_of("") < ANY_CONSTANT_SINCE:
        return False
    produced = {name for each in branch.node for name in each.output}
    produced.update(each.name for each in branch.initializer)
    return len(branch.output) == len(node.output) and all(each.name in produced for each in branch.output)


def inline_branches(branches: Iterable[ConstantBranch], model: ModelProto) -> None:
    """Replace Ifs by the nodes of their branches."""
    names = FreshNames()
    names.avoid(*root_graphs(model), *model.functions)
    by_container: dict[int, list[ConstantBranch]] = {}
    for each in branches:
        by_container.setdefault(id(each.container), []).append(each)
    for found in by_container.values():
        container = found[0].container
        node_names = NodeNames(container.node)
        keys = [position * SORT_KEY_STRIDE for position in range(len(container.node))]
        for _, position, graph in found:
            node = container.node[position]
            call = type(node)(name=node.name, doc_string=node.doc_string, output=node.output)
            nodes = InlinedCall(call, _nodes_of(graph, type(node)), names.fresh).nodes
            keys += replace_call(container, position, nodes, node_names)
        sort_by_keys(container.node, keys)


def _nodes_of(branch: GraphProto, node_class: type[NodeProto]) -> InlinedNodes:
    constants = []
    for tensor in branch.initializer:
        constant = node_class(op_type="Constant", output=[tensor.name])
        constant.attribute.add(name="value", type=TENSOR).t.CopyFrom(tensor)
        constants.append(constant)
    return InlinedNodes((), [each.name for each in branch.output], [*constants, *branch.node])
