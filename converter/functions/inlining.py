"""Inlining: replace the calls of local functions by the nodes of the functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from opshift.converter.functions.inlined_call import InlinedCall
from opshift.converter.repeated_fields import sort_by_keys
from opshift.converter.rewrite.workspace import FreshNames
from opshift.model.graphs import graphs_of, nested_containers, nested_nodes, root_graphs
from opshift.model.messages import FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto
from opshift.model.operator_ids import LocalFunction, called_function, canonical_domain, function_id
from opshift.registry.registry import Registry

if TYPE_CHECKING:
    from opshift.model.messages import Repeated

MAX_NODES = 1_000_000
"""Maximum number of nodes after inlining.

More than any real model has; functions that call each other twice grow exponentially.
"""

SORT_KEY_STRIDE = 1 << 32
"""Distance between the sort keys of two neighbouring nodes; the nodes of an inlined call use the gap."""


def inline_functions(model: ModelProto) -> None:
    """Replace every call of a local function by the nodes of the function, then remove the functions.

    Only the calls change. `inlining_obstacles` checks beforehand whether the result is equivalent.
    """
    inliner = _Inliner(model)
    for graph in root_graphs(model):
        inliner.inline(graph)
    imports = model.opset_import
    for function in model.functions:
        for each in function.opset_import:
            _add_import(imports, each.domain, each.version)
    if inliner.needs_identity:
        _add_import(imports, "", 1)
    del model.functions[:]


def inlining_obstacles(
    model: ModelProto, opsets: Mapping[str, int], targets: Mapping[str, int], registry: Registry
) -> Iterator[tuple[FunctionProto, str]]:
    """Yield each function that cannot be inlined, with the reason.

    The functions must not be recursive. `opsets` are the opset imports of the graphs; domains are converted
    to `targets` before inlining.
    """
    imported = {**opsets, **targets}
    for function in model.functions:
        own = {canonical_domain(each.domain): each.version for each in function.opset_import}
        for domain, opset in own.items():
            opset = targets.get(domain, opset)
            graph_opset = imported.setdefault(domain, opset)
            if graph_opset != opset and not _are_equivalent(function, domain, opset, graph_opset, registry):
                yield (
                    function,
                    f"it is written for opset {opset} of {domain}, the graph for opset {graph_opset}",
                )
    total = _inlined_size(model)
    if total > MAX_NODES:
        yield model.functions[0], f"inlining would produce {total:,} nodes, more than {MAX_NODES:,}"


def _add_import(imports: Repeated[OperatorSetIdProto], domain: str, version: int) -> None:
    if all(canonical_domain(each.domain) != canonical_domain(domain) for each in imports):
        imports.add(domain=domain, version=version)


def _are_equivalent(
    function: FunctionProto, domain: str, opset: int, graph_opset: int, registry: Registry
) -> bool:
    """Whether the operators of a domain that a function uses have the same versions at two opsets."""
    used = {node.op_type for node in nested_nodes(function) if canonical_domain(node.domain) == domain}
    found = [(registry.at(name, opset, domain), registry.at(name, graph_opset, domain)) for name in used]
    return all(one is another and one is not None for one, another in found)


class _Inliner:
    def __init__(self, model: ModelProto) -> None:
        self._functions = {function_id(each): each for each in model.functions}
        self._names = FreshNames()
        self._names.name_sets.append(set(_value_names(model)))
        self.needs_identity = False

    def inline(self, top: GraphProto) -> None:
        waiting = [top]
        while waiting:
            graph = waiting.pop()
            nodes = graph.node
            count = len(nodes)
            keys = [position * SORT_KEY_STRIDE for position in range(count)]
            for position in range(count):
                if called_function(nodes[position]) in self._functions:
                    keys += self._replace(graph, position)
            if len(keys) > count:
                sort_by_keys(nodes, keys)
            waiting += [inner for node in nodes for inner in graphs_of(node)]

    def _replace(self, graph: GraphProto, position: int) -> list[int]:
        """Replace a call: write one node over it, append the others, and return their sort keys."""
        call = graph.node[position]
        new_nodes = self._expand(call, graph)
        first = next(filter(None, call.output), None)
        main = next((index for index, node in enumerate(new_nodes) if first in node.output), 0)
        for index, node in enumerate(new_nodes):
            if index != main:
                graph.node.append(node)
        if new_nodes:
            call.CopyFrom(new_nodes[main])
        else:
            call.Clear()
        return [position * SORT_KEY_STRIDE + index - main for index in range(len(new_nodes)) if index != main]

    def _expand(self, call: NodeProto, graph: GraphProto) -> list[NodeProto]:
        """Return the nodes of a call, with nested calls expanded."""
        waiting, done = [call], []
        while waiting:
            node = waiting.pop()
            function = self._functions.get(called_function(node))
            if function is None:
                done.append(node)
                continue
            instance = InlinedCall(node, function, self._names.fresh)
            self.needs_identity = self.needs_identity or instance.has_identity
            graph.value_info.extend(instance.value_info)
            waiting += reversed(instance.nodes)
        return done


def _value_names(model: ModelProto) -> Iterator[str]:
    for graph in nested_containers(root_graphs(model)):
        yield from (value.name for value in (*graph.input, *graph.value_info))
        yield from (tensor.name for tensor in graph.initializer)
        yield from (tensor.values.name for tensor in graph.sparse_initializer)
        for node in graph.node:
            yield from node.output


def _inlined_size(model: ModelProto) -> int:
    """Return the number of nodes that the graphs of a model have after inlining."""
    functions = {function_id(each): each for each in model.functions}
    sizes: dict[LocalFunction, int] = {}
    graph = {name: {called_function(node) for node in nested_nodes(each)} for name, each in functions.items()}
    for name in TopologicalSorter(graph).static_order():
        nodes = nested_nodes(functions[name]) if name in functions else ()
        sizes[name] = sum(sizes[called_function(node)] for node in nodes) if name in functions else 1
    return sum(sizes.get(called_function(node), 1) for node in nested_nodes(*root_graphs(model)))
