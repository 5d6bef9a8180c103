"""Put the nodes of functions in place of their calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from typing import Any

from opshift.converter.container import graphs_of
from opshift.converter.functions import identity
from opshift.converter.instance import Instance
from opshift.converter.names import Names
from opshift.registry.catalogue import LocalFunction, Registry
from opshift.registry.names import canonical_domain

MOST_NODES = 1_000_000
"""More nodes than any model has; functions that call each other twice grow beyond it quickly."""
STRIDE = 1 << 32
"""The distance of two neighbouring nodes' sort keys; the nodes of a call lie within."""


def inline_functions(model: Any) -> None:
    """Replace every call of a local function, in any graph, by the nodes of the function; then remove them.

    Nothing but the calls changes. `inlining_obstacles` tells beforehand whether the result means the same.
    """
    inliner = _Inliner(model)
    for graph in _tops(model):
        inliner.inline(graph)
    imports = model.opset_import
    for function in model.functions:
        for each in function.opset_import:
            _import(imports, each.domain, each.version)
    if inliner.needs_identity:
        _import(imports, "", 1)
    del model.functions[:]


def inlining_obstacles(
    model: Any, opsets: Mapping[str, int], targets: Mapping[str, int], registry: Registry
) -> Iterator[tuple[Any, str]]:
    """The functions whose nodes cannot stand in the graphs that call them, and why.

    Args:
        model: the model, whose functions do not call themselves.
        opsets: the opset imports of its graphs.
        targets: the opsets to which domains are converted before.
        registry: the definitions to go by.
    """
    known = {**opsets, **targets}
    for function in model.functions:
        own = {canonical_domain(each.domain): each.version for each in function.opset_import}
        for domain, opset in own.items():
            opset = targets.get(domain, opset)
            other = known.setdefault(domain, opset)
            if other != opset and not _mean_the_same(function, domain, opset, other, registry):
                yield function, f"it is written for opset {opset} of {domain}, the graph for {other}"
    total = _size(model)
    if total > MOST_NODES:
        yield model.functions[0], f"the calls would become {total:,} nodes"


def _tops(model: Any) -> Iterator[Any]:
    yield model.graph
    for info in model.training_info:
        yield from (info.initialization, info.algorithm)


def _import(imports: Any, domain: str, version: int) -> None:
    if all(canonical_domain(each.domain) != canonical_domain(domain) for each in imports):
        imports.add(domain=domain, version=version)


def _mean_the_same(function: Any, domain: str, opset: int, other: int, registry: Registry) -> bool:
    """Whether the operators of a domain that a function uses are the same at two opsets."""
    used = {node.op_type for node in _all_nodes(function.node) if canonical_domain(node.domain) == domain}
    found = [(registry.at(name, opset, domain), registry.at(name, other, domain)) for name in used]
    return all(one is another and one is not None for one, another in found)


def _all_nodes(nodes: Any) -> Iterator[Any]:
    waiting = [nodes]
    while waiting:
        for node in waiting.pop():
            yield node
            waiting += [graph.node for graph in graphs_of(node)]


def _called(node: Any) -> LocalFunction:
    return LocalFunction(canonical_domain(node.domain), node.op_type, getattr(node, "overload", ""))


class _Inliner:
    """The functions and the names of one model."""

    def __init__(self, model: Any) -> None:
        self._functions = {identity(each): each for each in model.functions}
        self._names = Names()
        self._names.sets.append(set(_value_names(model)))
        self.needs_identity = False

    def inline(self, top: Any) -> None:
        """Replace the calls in a graph, and in those within."""
        waiting = [top]
        while waiting:
            graph = waiting.pop()
            nodes = graph.node
            count = len(nodes)
            keys = [position * STRIDE for position in range(count)]
            for position in range(count):
                if _called(nodes[position]) in self._functions:
                    keys += self._replace(graph, position)
            if len(keys) > count:
                order = iter(keys)
                nodes.sort(key=lambda _, order=order: next(order))
            waiting += [inner for node in nodes for inner in graphs_of(node)]

    def _replace(self, graph: Any, position: int) -> list[int]:
        """Put one node of a call in its place and the others at the end; their sort keys."""
        call = graph.node[position]
        made = self._expand(call, graph)
        first = next(filter(None, call.output), None)
        main = next((index for index, node in enumerate(made) if first in node.output), 0)
        for index, node in enumerate(made):
            if index != main:
                graph.node.append(node)
        if made:
            call.CopyFrom(made[main])
        else:
            call.Clear()
        return [position * STRIDE + index - main for index in range(len(made)) if index != main]

    def _expand(self, call: Any, graph: Any) -> list[Any]:
        """The nodes of a call, and of the calls among them."""
        waiting, done = [call], []
        while waiting:
            node = waiting.pop()
            function = self._functions.get(_called(node))
            if function is None:
                done.append(node)
                continue
            instance = Instance(node, function, self._names.fresh)
            self.needs_identity = self.needs_identity or instance.has_identity
            graph.value_info.extend(instance.value_info)
            waiting += reversed(instance.nodes)
        return done


def _value_names(model: Any) -> Iterator[str]:
    waiting = list(_tops(model))
    while waiting:
        graph = waiting.pop()
        sparse = (one.values for one in graph.sparse_initializer)
        for each in (*graph.input, *graph.initializer, *graph.value_info, *sparse):
            yield each.name
        for node in graph.node:
            yield from node.output
            waiting += graphs_of(node)


def _size(model: Any) -> int:
    """How many nodes the graphs of a model have when all calls are replaced."""
    functions = {identity(each): each for each in model.functions}
    sizes: dict[LocalFunction, int] = {}
    graph = {name: {_called(node) for node in _all_nodes(each.node)} for name, each in functions.items()}
    for name in TopologicalSorter(graph).static_order():
        nodes = _all_nodes(functions[name].node) if name in functions else ()
        sizes[name] = sum(sizes[_called(node)] for node in nodes) if name in functions else 1
    return sum(sizes.get(_called(node), 1) for top in _tops(model) for node in _all_nodes(top.node))
