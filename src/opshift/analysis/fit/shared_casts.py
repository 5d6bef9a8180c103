"""Share casts that several nodes got for the same value."""

from opshift.model.graphs import (
    ContainerProto,
    defined_values,
    graphs_of,
    names_outside_nodes,
    nested_containers,
    nested_nodes,
    root_graphs,
)
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.repeated_fields import remove_messages


def share_casts(model: ModelProto, original: ModelProto) -> int:
    """Remove casts that `original` lacks, and whose graph casts the same value to the same type before.

    Returns:
        The number of removed nodes.
    """
    own = {*defined_values(*root_graphs(original), *original.functions)}
    roots: list[ContainerProto] = [*root_graphs(model), *model.functions]
    return sum(_share(each, own) for each in nested_containers(roots))


def _share(container: ContainerProto, own: set[str]) -> int:
    required = own.union(*map(names_outside_nodes, nested_containers([container])))
    casts: dict[tuple[str, frozenset[bytes]], str] = {}
    shared: dict[str, str] = {}
    removed: set[int] = set()
    for position, node in enumerate(container.node):
        for reader in (node, *nested_nodes(*graphs_of(node))) if shared else ():
            if not shared.keys().isdisjoint(reader.input):
                reader.input[:] = [shared.get(name, name) for name in reader.input]
        is_cast = node.op_type == "Cast" and canonical_domain(node.domain) == DEFAULT_DOMAIN
        if is_cast and len(node.input) == len(node.output) == 1:  # nodes that stay may be invalid
            attributes = frozenset(each.SerializeToString() for each in node.attribute)
            first = casts.setdefault((node.input[0], attributes), node.output[0])
            if first != node.output[0] and node.output[0] not in required:
                shared[node.output[0]] = first
                removed.add(position)
    remove_messages(container.node, [position in removed for position in range(len(container.node))])
    return len(shared)
