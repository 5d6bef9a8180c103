"""Remove initializers, Constant nodes and arguments of calls that no node reads after a conversion."""

from collections.abc import Iterable, Set
from itertools import compress

from opshift.converter.plan.changes import ContainerPlan
from opshift.model.graphs import (
    Container,
    ContainerProto,
    captured_names,
    graphs_of,
    is_graph,
    names_outside_nodes,
    nested_containers,
    nested_nodes,
    remove_messages,
    root_graphs,
)
from opshift.model.indirect_reads import bound_names, names_read_indirectly, values_named_in_attributes
from opshift.model.messages import FunctionProto, ModelProto, TensorProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, LocalFunction, called_function, function_id
from opshift.rewriting.result import values_read

DEFAULT_DOMAINS = ("", DEFAULT_DOMAIN)
"""Names of the default domain in models."""


def remove_unread_constants(
    model: ModelProto, names: Set[str], *, has_subgraphs: bool = True, has_constant_nodes: bool = True
) -> None:
    """Remove initializers and Constant nodes with these names that no node reads.

    Below IR version 4, unread initializers would become graph inputs. Initializers that are graph inputs, or
    that have a doc string or metadata, remain. With `has_subgraphs=False`, no node may contain a graph; with
    `has_constant_nodes=False`, no node may be a Constant.
    """
    is_relevant = has_subgraphs or has_constant_nodes
    if not is_relevant and names.isdisjoint(each.name for each in model.graph.initializer):
        return
    removable = names - bound_names(model) - values_named_in_attributes(model).names
    _remove_from_scope([*root_graphs(model)], removable, has_subgraphs=has_subgraphs)
    if is_relevant:
        # A function cannot read values of graphs, so its names are independent.
        for function in model.functions:
            _remove_from_scope([function], removable, has_subgraphs=has_subgraphs)


def removed_initializers(model: ModelProto, plan: ContainerPlan) -> frozenset[str]:
    """Return initializers of the main graph that certainly have no reader after the plan is applied.

    For example, new nodes may read a constant of another element type instead.
    """
    found = {each.name for each in model.graph.initializer if not _is_described(each)}
    found &= plan.unread_inputs
    if not found or plan.reversal.restored:
        return frozenset()
    found -= names_read_indirectly(model)
    found.difference_update(names_outside_nodes(model.graph))
    results = {change.record[0]: change.result for change in plan.changes}
    for position, node in enumerate(model.graph.node):
        result = results.get(position)
        found.difference_update(node.input if result is None else values_read(result.nodes))
        found.difference_update(name for graph in graphs_of(node) for name in captured_names(graph))
    return frozenset(found)


def _remove_from_scope(
    containers: list[ContainerProto], names: Set[str], *, has_subgraphs: bool = True
) -> None:
    """Remove constants from graphs that may read each other's values, and from their subgraphs.

    With `has_subgraphs=False`, no node contains a graph.
    """
    unread = set(names)
    for container in containers:  # the loop appends subgraphs to this list
        unread.difference_update(names_outside_nodes(container), *[node.input[:] for node in container.node])
        if has_subgraphs and unread:
            containers += [graph for node in container.node for graph in graphs_of(node)]
    for container in containers if unread else ():
        removed = _remove_nodes(container, unread)
        if is_graph(container):
            tensors = container.initializer
            is_removed = [each.name in unread and not _is_described(each) for each in tensors]
            removed.update(each.name for each in compress(tensors, is_removed))
            remove_messages(tensors, is_removed)
        values = getattr(container, "value_info", ())  # message classes of an older `onnx` lack the field
        if removed and values:
            remove_messages(values, [each.name in removed for each in values])


def _remove_nodes(container: ContainerProto, unread: Set[str]) -> set[str]:
    """Remove the Constant nodes of unread values, and return the names of these values."""
    nodes = container.node
    is_removed = [
        node.op_type == "Constant"
        and node.domain in DEFAULT_DOMAINS
        and all(name in unread for name in node.output)
        for node in nodes
    ]
    removed = {name for node in compress(nodes, is_removed) for name in node.output}
    remove_messages(nodes, is_removed)
    return removed


def _is_described(tensor: TensorProto) -> bool:
    return bool(tensor.doc_string or getattr(tensor, "metadata_props", ()))


def omit_unread_arguments(model: ModelProto, candidates: Iterable[Set[str]]) -> set[str]:
    """Omit arguments that the called functions do not read; return the omitted names of values of graphs.

    A converted function may use its own constant in place of a constant argument, whose element type the
    target may lack.

    Args:
        model: the converted model.
        candidates: for each function, names of values that the conversion removed from node inputs.
    """
    unread = {
        function_id(function): _input_positions(function, names)
        for function, removed in zip(model.functions, candidates, strict=True)
        if (passed := removed & {*function.input}) and (names := passed - _read_names(function))
    }
    omitted: set[str] = set()
    while unread:
        for graph in root_graphs(model):
            omitted |= _omit_arguments(graph, unread)
        # If a function passed an input only to omitted arguments, the function does not read this input,
        # either.
        unread = {
            function_id(function): _input_positions(function, names)
            for function in model.functions
            if (names := _omit_arguments(function, unread) & {*function.input} - _read_names(function))
        }
    return omitted


def _read_names(container: ContainerProto) -> set[str]:
    """Return the names that nodes read, and the names of outputs, in a container and its subgraphs."""
    names = {name for node in nested_nodes(container) for name in node.input}
    for each in nested_containers([container]):
        names.update(Container(each).outputs)
    return names


def _input_positions(function: FunctionProto, names: Iterable[str]) -> tuple[int, ...]:
    return tuple(map(list(function.input).index, names))


def _omit_arguments(container: ContainerProto, unread: dict[LocalFunction, tuple[int, ...]]) -> set[str]:
    """Omit the arguments at unread positions in all calls, and return the names of the arguments."""
    omitted = set()
    for node in nested_nodes(container):
        for position in unread.get(called_function(node), ()):
            if position < len(node.input):
                omitted.add(node.input[position])
                # Keep an empty name, even at the end, because ONNX's evaluator expects a name for each input.
                node.input[position] = ""
    return omitted - {""}
