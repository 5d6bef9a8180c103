"""Constants in place of the nodes that computed them."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.constant_nodes import add_constant_node
from opshift.converter.folding.dead_nodes import fixed_names
from opshift.converter.folding.decisions import Decisions
from opshift.converter.repeated_fields import remove_messages, sort_by_keys
from opshift.inference.constants import read_constant_node
from opshift.model.attributes import TENSOR
from opshift.model.graphs import ContainerProto, is_graph
from opshift.model.messages import NodeProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import write_tensor


def write_constants(decisions: Decisions, *, as_initializers: bool = False) -> int:
    """Write the constants of a graph or function and its subgraphs, and return the number of new ones.

    The values of Constant nodes become initializers, too, if constants are written `as_initializers`.
    Outputs remain outputs of nodes.
    """
    container = decisions.container
    count = 0
    if as_initializers:
        count = _add_initializers(decisions, container, fixed_names(container))
    if decisions.constants:
        count += _add_constant_nodes(decisions, container)
    return count + sum(map(write_constants, decisions.nested))


def _add_initializers(decisions: Decisions, container: ContainerProto, fixed: set[str]) -> int:
    """Replace nodes by initializers with the names of their outputs; return how many are not Constants."""
    assert is_graph(container)
    is_removed: list[bool] = []
    count = 0
    for node in container.node:
        outputs = node.output[:]
        is_removed.append(False)
        if not fixed.isdisjoint(outputs):
            continue
        values = decisions.constants.get(outputs[0]) if outputs else None
        if values is not None:
            for name, value in zip(outputs, values, strict=True):
                write_tensor(container.initializer.add(), value, name)
            count += len(values)
            is_removed[-1] = True
        elif _is_constant(node):
            is_removed[-1] = _move_constant(node, container)
    removed = {
        name for node, gone in zip(container.node, is_removed, strict=True) if gone for name in node.output
    }
    remove_messages(container.node, is_removed)
    remove_messages(container.value_info, [each.name in removed for each in container.value_info])
    return count


def _is_constant(node: NodeProto) -> bool:
    return (
        node.op_type == "Constant"
        and canonical_domain(node.domain) == DEFAULT_DOMAIN
        and len(node.output) == 1
        and not any(each.ref_attr_name for each in node.attribute)
    )


def _move_constant(node: NodeProto, container: ContainerProto) -> bool:
    """Add the value of a Constant as an initializer, and return whether it is a dense tensor."""
    assert is_graph(container)
    tensor = next((each.t for each in node.attribute if each.name == "value"), None)
    if tensor is not None:
        initializer = container.initializer.add()
        initializer.CopyFrom(tensor)
        initializer.name = node.output[0]
        return True
    is_sparse = any(each.name == "sparse_value" for each in node.attribute)
    value = None if is_sparse else read_constant_node(Node.from_proto(node))
    if value is None:
        return False
    write_tensor(container.initializer.add(), value, node.output[0])
    return True


def _add_constant_nodes(decisions: Decisions, container: ContainerProto) -> int:
    """Replace nodes by Constant nodes, one for each output."""
    found = list(_folded_nodes(decisions, container))
    keys = [*range(len(container.node))]
    count = 0
    for position, node, values in found:
        named = list(zip(node.output[:], values, strict=True))
        name = node.name
        node.Clear()
        node.op_type, node.name = "Constant", name
        _write_value(node, *named[0])
        for output, value in named[1:]:
            add_constant_node(container, output, value)
            keys.append(position)
        count += len(named)
    sort_by_keys(container.node, keys)
    return count


def _folded_nodes(
    decisions: Decisions, container: ContainerProto
) -> Iterator[tuple[int, NodeProto, list[Tensor]]]:
    for position, node in enumerate(container.node):
        outputs = node.output[:]
        values = decisions.constants.get(outputs[0]) if outputs else None
        if values is not None:
            yield position, node, values


def _write_value(node: NodeProto, name: str, value: Tensor) -> None:
    node.output.append(name)
    attribute = node.attribute.add(name="value", type=TENSOR)
    write_tensor(attribute.t, value)
