"""Write parts of a model in the form that every runtime reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opshift.inference.facts import InferenceScope
from opshift.inference.root_scopes import graph_scopes
from opshift.model.attributes import TENSOR
from opshift.model.graphs import ContainerProto, graphs_of, root_graphs
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.node import Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.repeated_fields import sort_by_keys
from opshift.model.tensors import write_tensor
from opshift.model.types import element_type_of, fill_type
from opshift.registry.registry import Registry
from opshift.rewriting.workspace import FreshNames

CONSTANT_VALUE: Final = 2
"""Position of the input `constant_value` of Pad."""


def write_strict_forms(model: ModelProto, registry: Registry) -> None:
    """Change a model for runtimes that accept only what the definitions state; its results stay equal.

    `constant_value` of Pad becomes a scalar, inputs of subgraphs get element types, and ConstantOfShape gets
    the default of `value`, which a runtime may take for a double.
    """
    names = FreshNames()
    names.avoid(*root_graphs(model))
    pads: list[tuple[ContainerProto, list[int]]] = []
    for scope, _ in graph_scopes(model, registry):
        pads.append((scope.container, []))
        for position, node in enumerate(scope.container.node):
            if _pads_with_a_vector(node, scope):
                pads[-1][1].append(position)
            if _is(node, "ConstantOfShape") and not node.attribute:
                write_tensor(node.attribute.add(name="value", type=TENSOR).t, Tensor("float", (1,), (0.0,)))
            _declare_types(node, scope)
    # Nodes are added last, because scopes find nodes by their positions.
    for container, positions in pads:
        _add_scalars(container, positions, names)


def _add_scalars(graph: ContainerProto, positions: Sequence[int], names: FreshNames) -> None:
    """Add a Squeeze before each of some nodes, which reads its result in place of `constant_value`."""
    keys = list(range(0, 2 * len(graph.node), 2))
    for position in positions:
        inputs = graph.node[position].input
        source, inputs[CONSTANT_VALUE] = inputs[CONSTANT_VALUE], names.fresh(inputs[CONSTANT_VALUE])
        graph.node.add(op_type="Squeeze", input=[source], output=[inputs[CONSTANT_VALUE]])
        keys.append(2 * position - 1)
    sort_by_keys(graph.node, keys)


def _is(node: NodeProto, op_type: str) -> bool:
    return node.op_type == op_type and canonical_domain(node.domain) == DEFAULT_DOMAIN


def _pads_with_a_vector(node: NodeProto, scope: InferenceScope) -> bool:
    """Return whether a node is a Pad with a value that is not a scalar, although it has one element."""
    is_given = _is(node, "Pad") and len(node.input) > CONSTANT_VALUE and bool(node.input[CONSTANT_VALUE])
    return is_given and scope.rank(node.input[CONSTANT_VALUE]) not in (None, 0)


def _declare_types(node: NodeProto, scope: InferenceScope) -> None:
    """Declare the inferred element types of the inputs of subgraphs."""
    for graph in graphs_of(node):
        for value in graph.input:
            element_type = scope.child(graph).element_type(value.name)
            if element_type is not None and element_type_of(value.type) is None:
                value.type.Clear()
                fill_type(value.type, element_type, None)
