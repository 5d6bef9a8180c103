"""Constants in place of the nodes that computed them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress

from opshift.converter.folding.dead_nodes import fixed_names
from opshift.converter.folding.decisions import Decisions
from opshift.inference.constants import read_constant_node
from opshift.model.attributes import TENSOR
from opshift.model.graphs import is_graph, remove_messages, sort_by_keys
from opshift.model.messages import GraphProto, NodeProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import write_tensor


def detach_constants(decisions: Decisions) -> None:
    """Replace nodes that become constants by nodes without inputs and value, one for each output.

    Producers of their inputs may thus be dead, and only the nodes that remain get a value.
    """
    container = decisions.container
    keys = [*range(len(container.node))]
    for position in [*keys] if decisions.constants else ():
        node = container.node[position]
        outputs, name = node.output[:], node.name
        if not outputs or outputs[0] not in decisions.constants:
            continue
        node.Clear()
        node.op_type, node.name = "Constant", name
        node.output.append(outputs[0])
        for output in outputs[1:]:
            container.node.add(op_type="Constant", output=[output])
            keys.append(position)
    if len(keys) > len(set(keys)):
        sort_by_keys(container.node, keys)
    for each in decisions.nested:
        detach_constants(each)


def write_constants(decisions: Decisions, *, as_initializers: bool = False) -> int:
    """Write the constants of a graph or function and its subgraphs, and return the number of new ones.

    The values of Constant nodes become initializers, too, if constants are written `as_initializers`.
    Outputs remain outputs of nodes.
    """
    container = decisions.container
    count = 0
    if as_initializers and is_graph(container):
        count = _add_initializers(decisions.constants, container)
    for node in container.node if decisions.constants else ():
        value = decisions.constants.get(node.output[0]) if node.output else None
        if value is not None:
            write_tensor(node.attribute.add(name="value", type=TENSOR).t, value)
            count += 1
    return count + sum(map(write_constants, decisions.nested))


def _add_initializers(constants: Mapping[str, Tensor], graph: GraphProto) -> int:
    """Replace Constant nodes by initializers with the names of their outputs; return how many are new."""
    fixed = fixed_names(graph)
    is_removed = [
        _is_constant(node) and node.output[0] not in fixed and _add_initializer(node, constants, graph)
        for node in graph.node
    ]
    removed = {node.output[0] for node in compress(graph.node, is_removed)}
    remove_messages(graph.node, is_removed)
    remove_messages(graph.value_info, [each.name in removed for each in graph.value_info])
    return len(removed.intersection(constants))


def _is_constant(node: NodeProto) -> bool:
    return (
        node.op_type == "Constant"
        and canonical_domain(node.domain) == DEFAULT_DOMAIN
        and len(node.output) == 1
        and not any(each.ref_attr_name for each in node.attribute)
    )


def _add_initializer(node: NodeProto, constants: Mapping[str, Tensor], graph: GraphProto) -> bool:
    """Add the value of a Constant as an initializer, and return whether it is a dense tensor."""
    name = node.output[0]
    stored = next((each.t for each in node.attribute if each.name == "value"), None)
    if stored is not None:  # possibly large: it is not decoded
        initializer = graph.initializer.add()
        initializer.CopyFrom(stored)
        initializer.name = name
        return True
    is_sparse = any(each.name == "sparse_value" for each in node.attribute)
    value = constants.get(name) or (None if is_sparse else read_constant_node(Node.from_proto(node)))
    if value is not None:
        write_tensor(graph.initializer.add(), value, name)
    return value is not None
