"""Repair of models that read values which no earlier node produces."""

from __future__ import annotations

from collections.abc import Iterator, Set
from copy import deepcopy
from typing import TYPE_CHECKING

from opshift.inference.scope import Scope
from opshift.model.attributes import graphs_in
from opshift.model.errors import InvalidModel
from opshift.model.graphs import (
    MAX_SUBGRAPH_DEPTH,
    Container,
    ContainerProto,
    captured_names,
    graphs_of,
    node_label,
    node_place,
    remove_messages,
    sort_by_keys,
    too_deep_error,
    training_graphs,
)
from opshift.model.indirect_reads import bound_names
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    canonical_domain,
    function_label,
    functions_with_opsets,
    opset_imports,
)
from opshift.registry.registry import Registry

if TYPE_CHECKING:
    import networkx as nx

MAX_LABELS = 5
"""Maximum number of nodes of a cycle that a message lists."""


def sort_nodes(model: ModelProto) -> tuple[str, ...]:
    """Sort the nodes of every graph and function in place, and return a sentence per repair.

    Nodes that are already sorted keep their order. Nodes that depend on an undefined value are removed if no
    output depends on them.

    Raises:
        InvalidModel: nodes form a cycle, or graphs are nested too deeply.
    """
    sorter = _Sorter()
    training = list(training_graphs(model))
    needed = bound_names(model)
    main = _Values(model.graph)
    for each in training:
        needed |= sorter.sort(each.graph, each.path, main.names, needed)
    sorter.sort(model.graph, "graph", frozenset(), needed)
    for function in model.functions:
        sorter.sort(function, f"function {function_label(function)}", frozenset(), frozenset())
    return tuple(sorter.repairs)


class _Values:
    """Values that a graph or function defines; `producers` maps outputs of nodes to node positions."""

    def __init__(self, container: ContainerProto) -> None:
        self.outputs = set(Container(container).outputs)
        self.producers: dict[str, int] = {}
        predefined = Container(container).predefined_names()
        for position, node in enumerate(container.node):
            for name in node.output:
                if name and name not in predefined:
                    self.producers.setdefault(name, position)
        self.names = predefined.union(self.producers)


class _Sorter:
    """Topological sorting of the nodes of graphs and functions; `repairs` describes the changes."""

    def __init__(self) -> None:
        self.repairs: list[str] = []

    def sort(
        self, container: ContainerProto, path: str, visible: Set[str], needed: Set[str], depth: int = 0
    ) -> set[str]:
        """Sort a graph or function and its subgraphs, and return the names that they read from outside.

        `visible` are the names in enclosing graphs, and `needed` the names that training graphs or bindings
        of `training_info` read.
        """
        if depth > MAX_SUBGRAPH_DEPTH:
            raise too_deep_error(path)
        values, nodes = _Values(container), list(container.node)
        enclosing = visible | values.names
        reads = [{*node.input} - {""} for node in nodes]
        for names, node in zip(reads, nodes, strict=True):
            for inner_path, graph in _subgraphs_with_paths(node, path):
                names |= self.sort(graph, inner_path, enclosing, frozenset(), depth + 1)
        dependencies = _dependencies(values, reads, visible)
        order = _sorted_positions(dependencies, nodes, path)
        live = {values.producers[name] for name in (values.outputs | needed) & values.producers.keys()}
        for position in reversed(order):  # Visit consumers before producers.
            if position in live:
                live.update(dependencies[position])
        removed = [False] * len(nodes)
        for position in order:
            is_undefined = not reads[position] <= enclosing
            reads_removed = any(removed[each] for each in dependencies[position])
            if position not in live and (is_undefined or reads_removed):
                removed[position] = True
                reason = "removed, because it reads an undefined value and no output depends on it"
                self.repairs.append(f"{node_place(path, nodes[position])}: {reason}")
        kept = [position for position in order if not removed[position]]
        free = {name for position in kept for name in reads[position]} | values.outputs
        if order != sorted(order):
            keys = {position: index for index, position in enumerate(order)}
            sort_by_keys(container.node, [keys[position] for position in range(len(nodes))])
            if kept != sorted(kept):
                self.repairs.append(f"{path}: the nodes were not in topological order, and are sorted")
        remove_messages(container.node, [removed[position] for position in order])
        return free - values.names


def _dependencies(values: _Values, reads: list[set[str]], visible: Set[str]) -> nx.DiGraph[int]:
    """Return a graph with an edge from each node to every producer of a value that it reads."""
    import networkx as nx  # imported here: few models need sorting

    dependencies: nx.DiGraph[int] = nx.DiGraph()
    for position, names in enumerate(reads):
        dependencies.add_node(position)
        for name in names & values.producers.keys():
            producer = values.producers[name]
            # Nodes before the producer may instead read a value with the same name in an enclosing graph.
            if producer < position or name not in visible:
                dependencies.add_edge(position, producer)
    return dependencies


def _sorted_positions(dependencies: nx.DiGraph[int], nodes: list[NodeProto], path: str) -> list[int]:
    """Return node positions in topological order; the smallest of the possible next positions comes first."""
    import networkx as nx

    order: list[int] = []
    try:
        order.extend(nx.lexicographical_topological_sort(dependencies.reverse(copy=False)))
    except nx.NetworkXUnfeasible as error:
        # each remaining node depends on another remaining node: they form a cycle
        dependencies.remove_nodes_from(order)
        labels = [_node_text(nodes[each]) for each in sorted(edge[0] for edge in nx.find_cycle(dependencies))]
        more = f" and {len(labels) - MAX_LABELS} more" if len(labels) > MAX_LABELS else ""
        reason = f"nodes form a cycle: {', '.join(labels[:MAX_LABELS])}{more}"
        raise InvalidModel(reason, place=path, remedy="correct an input of one of these nodes") from error
    return order


def _subgraphs_with_paths(node: NodeProto, path: str) -> Iterator[tuple[str, ContainerProto]]:
    for attribute in node.attribute:
        for graph in graphs_in(attribute):
            yield f"{path} / {node.name or node.op_type}.{attribute.name}", graph


def _node_text(node: NodeProto) -> str:
    return node_label(node.name, node.op_type, node.output)


def repaired_copy(
    model: ModelProto, error: InvalidModel, registry: Registry
) -> tuple[ModelProto, tuple[str, ...]]:
    """Return a repaired copy of a model that reads undefined values, and a sentence per repair.

    Sort the nodes. Remove unused nodes that read undefined values. Replace a branch of an If that reads
    undefined values and never runs by the other branch.

    Args:
        model: the model, which remains unchanged.
        error: the reason why the model is invalid; raised if it is not about order, or nothing was repaired.
        registry: operator definitions.
    """
    if not error.concerns_order:
        raise error
    copy = deepcopy(model)
    repairs = (*sort_nodes(copy), *_replace_branches_that_never_run(copy, registry))
    if not repairs:
        raise error
    return copy, repairs


def _replace_branches_that_never_run(model: ModelProto, registry: Registry) -> Iterator[str]:
    imports = opset_imports(model.opset_import, model.ir_version)
    main = Scope(model.graph, imports, registry, {})
    yield from _replace_in(main, "graph")
    for each in training_graphs(model):
        yield from _replace_in(Scope(each.graph, imports, registry, {}, main), each.path)
    for function, opsets in functions_with_opsets(model):
        yield from _replace_in(Scope(function, opsets, registry, {}), f"function {function_label(function)}")


def _replace_in(scope: Scope, path: str) -> Iterator[str]:
    nodes = scope.container.node
    scope.defined_names.update(name for node in nodes for name in node.output)
    for node in nodes:
        place = node_place(path, node)
        yield from (f"{place}: {repair}" for repair in _replace_branch(node, scope))
        for graph in graphs_of(node):
            yield from _replace_in(scope.child(graph), place)


def _replace_branch(node: NodeProto, scope: Scope) -> Iterator[str]:
    """If a branch of an If never runs, and reads undefined values, replace it by the other branch."""
    is_if = node.op_type == "If" and canonical_domain(node.domain) == DEFAULT_DOMAIN
    condition = scope.constant(node.input[0]) if is_if and node.input else None
    branches = {each.name: each.g for each in node.attribute}
    if condition is None or len(condition.values) != 1 or branches.keys() != {"then_branch", "else_branch"}:
        return
    # Attributes are sorted: "else_branch" is the first one, which never runs if the condition is true.
    unused, used = sorted(branches, reverse=not condition.scalar)
    undefined = [name for name in captured_names(branches[unused]) if not scope.is_visible(name)]
    if undefined:
        branches[unused].CopyFrom(branches[used])
        yield f"{unused} never runs and reads the undefined value {undefined[0]!r}; it is replaced by {used}"
