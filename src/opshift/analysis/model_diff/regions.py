"""Group changed nodes that are connected, and add the unchanged nodes next to them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import networkx

from opshift.analysis.model_diff.nodes import diff_node
from opshift.analysis.model_diff.result import DiffNode, NodeChange, Region
from opshift.model.graphs import Container

MAX_CONTEXT = 8
"""Maximum number of unchanged nodes of a region."""

MAX_READERS = 2
"""Maximum number of unchanged readers of one value."""


def regions_of(
    changes: Sequence[NodeChange], kept: Mapping[int, int], old: Container, new: Container
) -> Iterator[Region]:
    """Yield the regions of the changed nodes of a graph.

    `kept` maps the position of each unchanged node in the new graph to that in the old one.
    """
    if not changes:
        return
    readers: dict[str, list[int]] = defaultdict(list)
    for position in kept:
        for name in new.node_records[position][3]:
            readers[name].append(position)
    for component in sorted(networkx.connected_components(_connections(changes)), key=min):
        members = [changes[each] for each in sorted(component)]
        context = [
            NodeChange("kept", diff_node(old, kept[each]), diff_node(new, each))
            for each in _neighbours(members, readers, new)
            if each in kept
        ]
        nodes = (*members, *context[:MAX_CONTEXT])
        yield Region(tuple(sorted(nodes, key=lambda each: each.node.position)))


def _sides(change: NodeChange) -> Iterator[DiffNode]:
    yield from (each for each in (change.before, change.after) if each is not None)


def _connections(changes: Sequence[NodeChange]) -> "networkx.Graph[int]":
    """Connect nodes that produce and read, or both produce, a value of the same name."""
    connections: networkx.Graph[int] = networkx.Graph()
    connections.add_nodes_from(range(len(changes)))
    producers = {
        name: index
        for index, change in enumerate(changes)
        for node in _sides(change)
        for name in filter(None, node.outputs)
    }
    shared: set[str] = set()
    for index, change in enumerate(changes):
        for name in (name for node in _sides(change) for name in (*node.inputs, *node.outputs)):
            producer = producers.get(name, index)
            # Many nodes may read one constant, which does not make them one region.
            if changes[producer].node.inputs or name not in shared:
                connections.add_edge(producer, index)
            if producer != index:
                shared.add(name)
    return connections


def _neighbours(
    members: Sequence[NodeChange], readers: Mapping[str, Sequence[int]], new: Container
) -> dict[int, None]:
    """Return the positions in the new graph of nodes that produce inputs or read outputs."""
    found: dict[int, None] = {}
    for node in (node for change in members for node in _sides(change)):
        producers = (new.producing_records[name] for name in node.inputs if name in new.producing_records)
        found.update(dict.fromkeys(record[0] for record in producers))
        for name in node.outputs:
            found.update(dict.fromkeys(readers.get(name, ())[:MAX_READERS]))
    return found
