"""Trailing omitted inputs of nodes, which some runtimes count as present inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from opshift.inference.root_scopes import graph_scopes
from opshift.model.graphs import nested_nodes, root_graphs
from opshift.model.messages import ModelProto
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.runtimes.model_nodes import ModelNode, ModelNodes


def nodes_with_omitted_inputs(model: ModelNodes) -> Iterator[ModelNode]:
    """Yield the nodes with trailing omitted inputs that their definitions do not require."""
    for each in model.nodes:
        if _needed_length(each.node.inputs, each.operator) < len(each.node.inputs):
            yield each


def remove_omitted_inputs(model: ModelProto, registry: Registry) -> None:
    """Remove trailing omitted inputs from the nodes of the graphs; this keeps the meaning of the nodes."""
    if not any(node.input and not node.input[-1] for node in nested_nodes(*root_graphs(model))):
        return  # creating scopes takes time, and few models have such a node
    for scope, _ in graph_scopes(model, registry):
        for node in scope.container.node:
            del node.input[_needed_length(node.input, scope.operator(node.op_type, node.domain)) :]


def _needed_length(names: Collection[str], operator: OperatorVersion | None) -> int:
    """Return the number of inputs up to the last present one, but at least the required number."""
    given = max((number for number, name in enumerate(names, 1) if name), default=0)
    return len(names) if operator is None else min(len(names), max(given, operator.min_input))
