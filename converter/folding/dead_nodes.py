"""Removal of unread nodes, initializers and declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from itertools import compress
from operator import not_
from typing import NamedTuple

from opshift.model.graphs import (
    Container,
    ContainerProto,
    graphs_of,
    initializer_inputs,
    is_graph,
    remove_messages,
)
from opshift.model.messages import GraphProto, NodeProto


class RemovalRules(NamedTuple):
    """Rules for the removal of dead nodes.

    Attributes:
        is_pure: function that returns whether a node can be removed if nothing reads its outputs.
        removable_inputs: names of initializers that are removed if unread, although they are graph inputs.
        named: names of values that must stay in every graph, such as those that attributes of nodes name.
    """

    is_pure: Callable[[NodeProto], bool]
    removable_inputs: Set[str] = frozenset()
    named: Set[str] = frozenset()


def remove_dead_nodes(container: ContainerProto, removal: RemovalRules, kept: Iterable[str] = ()) -> set[str]:
    """Remove unread nodes, initializers and declarations from a graph or function and its subgraphs.

    Args:
        container: the graph or function.
        removal: rules of the removal.
        kept: names of values that must stay, such as values that training reads.

    Returns:
        The names that the remaining nodes and the outputs need from enclosing graphs.
    """
    nodes = _NodeLists([], [], [], [])
    for node in container.node:
        nodes.captured.append(_captured_names(node, removal))
        nodes.inputs.append(node.input[:])
        nodes.outputs.append(node.output[:])
        nodes.is_pure.append(removal.is_pure(node))
    defined = Container(container).predefined_names().union(*nodes.outputs)
    # Only names of this graph: a copy of all names that must stay, for each graph, would take quadratic time.
    stays = defined.intersection(kept) | defined.intersection(removal.named)
    is_live, needed = _live_nodes(nodes, fixed_names(container) | stays)
    removed = set().union(*compress(nodes.outputs, map(not_, is_live)))
    unread = (
        _unread_initializers(container, needed, removal.removable_inputs) if is_graph(container) else set()
    )
    remove_unread(container, [not each for each in is_live], removed, unread)
    return needed - defined


def remove_unread(
    container: ContainerProto, is_unread: Iterable[bool], values: Set[str], initializers: Set[str]
) -> None:
    """Remove unread nodes and initializers, with their declarations.

    Args:
        container: the graph or function.
        is_unread: for each node, whether it is removed.
        values: names of the outputs of the removed nodes.
        initializers: names of the removed initializers.
    """
    remove_messages(container.node, is_unread)
    if initializers and is_graph(container):
        remove_messages(container.initializer, [each.name in initializers for each in container.initializer])
        sparse = container.sparse_initializer
        remove_messages(sparse, [each.values.name in initializers for each in sparse])
        remove_messages(container.input, [each.name in initializers for each in container.input])
    removed = values | initializers
    declarations = getattr(container, "value_info", ())
    if removed and declarations:
        remove_messages(declarations, [each.name in removed for each in declarations])


def fixed_names(container: ContainerProto) -> set[str]:
    """Return the names of outputs, and the names in quantization annotations."""
    names = set(Container(container).outputs)
    for annotation in getattr(container, "quantization_annotation", ()):
        names.add(annotation.tensor_name)
        names.update(each.value for each in annotation.quant_parameter_tensor_names)
    return names


def _captured_names(node: NodeProto, removal: RemovalRules) -> set[str]:
    return {name for graph in graphs_of(node) for name in remove_dead_nodes(graph, removal)}


class _NodeLists(NamedTuple):
    """Inputs, outputs, captured values and purity of the nodes of a graph or function, in order."""

    inputs: list[Sequence[str]]
    outputs: list[Sequence[str]]
    captured: list[set[str]]
    is_pure: list[bool]


def _live_nodes(nodes: _NodeLists, needed: set[str]) -> tuple[list[bool], set[str]]:
    """Return for each node whether it remains, and the names in `needed` or read by remaining nodes."""
    producers = {name: position for position, names in enumerate(nodes.outputs) for name in names if name}
    is_live = [*map(not_, nodes.is_pure)]
    pending = [producers[name] for name in needed if name in producers]
    pending += [position for position, is_kept in enumerate(is_live) if is_kept]
    seen = set(pending)
    while pending:
        position = pending.pop()
        is_live[position] = True
        read = {*nodes.inputs[position], *nodes.captured[position]}
        needed |= read
        new = {producers[name] for name in read if name in producers} - seen
        seen |= new
        pending += new
    return is_live, needed - {""}


def _unread_initializers(graph: GraphProto, needed: Set[str], removable_inputs: Set[str]) -> set[str]:
    """Return the names of unread initializers; graph inputs stay unless they are removable."""
    unread = {each.name for each in graph.initializer}
    unread.update(each.values.name for each in graph.sparse_initializer)
    return unread - (needed | (initializer_inputs(graph) - removable_inputs))
