"""Nodes between nodes that keep their types: they keep theirs, too, if that saves casts.

Between DequantizeLinear and QuantizeLinear, which keep float, a Conv in float16 would need a cast for each
value, and runtimes would no longer recognize the quantized Conv.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from opshift.converter.element_types.graph_types import GraphTypes
from opshift.model.tensors import element_count

MAX_CONSTANT = 1 << 12
"""Maximum number of elements of a constant of such a node: large weights are converted to save memory."""


@dataclass
class _Region:
    """Connected nodes that would have new types, and the values that would be cast at its boundary."""

    nodes: list[int] = field(default_factory=list)
    cast: set[str] = field(default_factory=set)
    is_closed: bool = True
    """Whether only nodes that keep their types, and small constants, are around it."""


def keep_regions(graph: GraphTypes) -> int:
    """Keep the types of nodes in a graph that need at least as many casts as there are nodes.

    Returns:
        The number of nodes that are kept.
    """
    count = 0
    for region in _regions(graph):
        if region.is_closed and len(region.cast) >= len(region.nodes):
            count += len(region.nodes)
            for position in region.nodes:
                _keep(position, graph)
    return count


def _keep(position: int, graph: GraphTypes) -> None:
    types, node = graph.nodes[position], graph.scope.nodes[position]
    for place in types.inputs:
        value = graph.find(node.input[place])
        assert value is not None, "only values with changeable types are listed"
        types.inputs[place] = value.kept
        value.needed.add(value.kept)
    for place, chosen in types.outputs.items():
        if chosen is not None:
            value = graph.values[node.output[place]]
            types.outputs[place] = value.stored = value.kept


def _regions(graph: GraphTypes) -> Iterator[_Region]:
    nodes = graph.scope.nodes
    candidates = {position for position in graph.nodes if _is_candidate(position, graph)}
    producers = {
        name: position for position in graph.nodes for name in nodes[position].output if name in graph.values
    }
    readers: defaultdict[str, set[int]] = defaultdict(set)
    for position, types in graph.nodes.items():
        for place in types.inputs:
            readers[nodes[position].input[place]].add(position)
    seen: set[int] = set()
    for start in sorted(candidates):
        if start in seen:
            continue
        region, pending = _Region(), [start]
        seen.add(start)
        while pending:
            position = pending.pop()
            region.nodes.append(position)
            for other in _neighbors(position, graph, region, producers, readers):
                if other not in candidates:
                    continue
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
        yield region


def _is_candidate(position: int, graph: GraphTypes) -> bool:
    """Return whether a node computes in new types only."""
    types, node = graph.nodes[position], graph.scope.nodes[position]
    inputs = ((graph.find(node.input[place]), chosen) for place, chosen in types.inputs.items())
    outputs = ((graph.values[node.output[place]], chosen) for place, chosen in types.outputs.items())
    return bool(types.inputs) and all(
        value is not None and chosen in (value.new, None) for value, chosen in (*inputs, *outputs)
    )


def _neighbors(
    position: int,
    graph: GraphTypes,
    region: _Region,
    producers: dict[str, int],
    readers: defaultdict[str, set[int]],
) -> Iterator[int]:
    """Yield the nodes around one, and add what its values mean for the region."""
    node, types = graph.scope.nodes[position], graph.nodes[position]
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
        region.is_closed = False
    for place in types.inputs:
        name = node.input[place]
        value, producer = graph.find(name), producers.get(name)
        if producer is None:
            region.is_closed &= _is_small_constant(name, graph)
        elif value is not None and value.stored not in (value.new, None):
            region.cast.add(name)
        elif value is not None and value.stored is not None:
            yield producer
    for place in types.outputs:
        name = node.output[place]
        value = graph.values[name]
        region.is_closed &= not value.is_result and not graph.scope.is_captured(name)
        if value.stored == value.new and value.needed - {value.new}:
            region.cast.add(name)
        yield from readers[name]


def _is_small_constant(name: str, graph: GraphTypes) -> bool:
    tensor = graph.scope.initializer(name)
    if tensor is None or graph.scope.is_overridable(name):
        return False
    count = element_count(tensor)
    return count is not None and count <= MAX_CONSTANT
