"""Graphs, subgraphs and function bodies that run on their own and return any of their values."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from opshift.analysis.verification.inputs import Feeds
from opshift.analysis.verification.interface_casts import InterfaceCasts
from opshift.analysis.verification.numpy_types import array_element_type
from opshift.analysis.verification.runtimes import CannotRun, Opener, Runner, RuntimeModel
from opshift.model.graphs import captured_names, graphs_of
from opshift.model.messages import GraphProto, ModelProto, NodeProto, ValueInfoProto
from opshift.model.operator_ids import model_domain, opset_imports
from opshift.model.types import fill_type
from opshift.registry.registry import Registry


class ModelRuntime(NamedTuple):
    """Model, and the runtime that executes parts of it."""

    source: RuntimeModel
    open: Opener
    registry: Registry

    def main_graph(self) -> ExecutableGraph:
        """Return the main graph, with the declared types of its inputs."""
        model = self.source.model
        opsets = opset_imports(model.opset_import, model.ir_version)
        outputs = [each.name for each in model.graph.output]
        graph = ExecutableGraph(self, opsets, model.graph.node, outputs, (model.graph,))
        graph.declared = {each.name: each for each in model.graph.input}
        return graph


class ExecutableGraph:
    """Nodes of a graph, subgraph or function body, and the graphs whose initializers they read.

    Attributes:
        runtime: the model and its runtime.
        opsets: opset imports by domain.
        nodes, outputs: nodes in the order of the file, and the names of the outputs.
        scopes: the enclosing graphs, outermost first, and the graph itself; empty for a function.
        declared: inputs with a declared type, by name; other inputs get the types of their values.
    """

    def __init__(
        self,
        runtime: ModelRuntime,
        opsets: Mapping[str, int],
        nodes: Iterable[NodeProto],
        outputs: Iterable[str],
        scopes: Sequence[GraphProto] = (),
    ) -> None:
        self.runtime, self.opsets, self.scopes = runtime, opsets, scopes
        self.nodes, self.outputs = list(nodes), list(outputs)
        self.declared: Mapping[str, ValueInfoProto] = {}
        self._loaded_key: tuple[tuple[str, ...], Set[str]] | None = None
        self._loaded: tuple[Runner, list[str]] | None = None

    def subgraph(self, graph: GraphProto) -> ExecutableGraph:
        """Return a subgraph that is an attribute of one of the nodes."""
        outputs = [each.name for each in graph.output]
        return ExecutableGraph(self.runtime, self.opsets, graph.node, outputs, (*self.scopes, graph))

    @cached_property
    def initializers(self) -> Set[str]:
        """Names of the initializers of all scopes."""
        dense = {each.name for graph in self.scopes for each in graph.initializer}
        return dense | {each.values.name for graph in self.scopes for each in graph.sparse_initializer}

    @cached_property
    def producers(self) -> Mapping[str, int]:
        """Position of the node that produces each value, by value name."""
        return {name: at for at, node in enumerate(self.nodes) for name in node.output if name}

    @cached_property
    def reads(self) -> Sequence[Sequence[str]]:
        """Names of the values that each node and its subgraphs read."""
        captured = (
            [name for graph in graphs_of(node) for name in captured_names(graph)] for node in self.nodes
        )
        return [[*filter(None, node.input), *names] for node, names in zip(self.nodes, captured, strict=True)]

    def ancestors(self, names: Iterable[str], known: Container[str] = ()) -> list[int]:
        """Return the positions of the nodes that values depend on, in topological order.

        The search stops at values in `known`. Independent nodes keep the order of the file.
        """
        waiting, found = self._producing_positions(names, known), set[int]()
        readers: dict[int, list[int]] = {}
        missing: dict[int, int] = {}
        while waiting:
            position = waiting.pop()
            if position in found:
                continue
            found.add(position)
            read = {*self._producing_positions(self.reads[position], known)}
            missing[position] = len(read)
            for each in read:
                readers.setdefault(each, []).append(position)
            waiting += read
        ready = [position for position, count in missing.items() if not count]
        heapify(ready)
        order = []
        while ready:
            order.append(heappop(ready))
            for reader in readers.get(order[-1], ()):
                missing[reader] -= 1
                if not missing[reader]:
                    heappush(ready, reader)
        return order

    def _producing_positions(self, names: Iterable[str], known: Container[str]) -> list[int]:
        return [self.producers[each] for each in names if each in self.producers and each not in known]

    def execute(self, feeds: Feeds) -> list[object]:
        """Return the outputs; raise CannotRun if the runtime cannot compute or return them."""
        values = self.values(self.outputs, feeds)
        return [values[name] for name in self.outputs]

    def values(self, names: Iterable[str], feeds: Feeds) -> dict[str, object]:
        """Return values by name; raise CannotRun if the runtime cannot compute or return them.

        Repeated calls that compute the same names reuse the loaded model: their feeds must have equal types.
        """
        listed = tuple(dict.fromkeys(names))
        values = {name: feeds[name] for name in listed if name in feeds}
        computed = tuple(name for name in listed if name not in feeds)
        if not computed:
            return values
        key = computed, feeds.keys()
        if key != self._loaded_key:
            # free the last model before the next one is loaded
            self._loaded_key, self._loaded = key, None
        if self._loaded is None:
            model, inputs = self._model_of(computed, feeds)
            # without casts: the feeds have the types of this model
            source = self.runtime.source._replace(model=model, casts=InterfaceCasts())
            runner = self.runtime.open(source, self.runtime.registry)
            self._loaded = runner, inputs
        runner, inputs = self._loaded
        return values | dict(zip(computed, runner.run({name: feeds[name] for name in inputs}), strict=True))

    def _model_of(self, names: Sequence[str], feeds: Feeds) -> tuple[ModelProto, list[str]]:
        """Return a model that computes the values `names` from `feeds`, and the names of its inputs."""
        source = self.runtime.source.model
        # since IR version 4, initializers need not be graph inputs
        model = type(source)(ir_version=max(source.ir_version, 4), functions=source.functions)
        for domain, opset in self.opsets.items():
            model.opset_import.add(domain=model_domain(domain), version=opset)
        graph, read = model.graph, set(names)
        graph.name = "values"
        for position in self.ancestors(names, feeds):
            graph.node.add().CopyFrom(self.nodes[position])
            read.update(self.reads[position])
        inputs = sorted(read & feeds.keys())
        for name in inputs:
            if name in self.declared:
                graph.input.add().CopyFrom(self.declared[name])
            else:
                _declare_input(graph.input.add(name=name), feeds[name])
        read -= feeds.keys()
        for scope in self.scopes:
            graph.initializer.extend(each for each in scope.initializer if each.name in read)
            sparse = (each for each in scope.sparse_initializer if each.values.name in read)
            graph.sparse_initializer.extend(sparse)
        for name in names:
            graph.output.add(name=name)
        return model, inputs


def _declare_input(declaration: ValueInfoProto, value: object) -> None:
    """Declare an input with the type and rank of a value; raise CannotRun if its type is unknown."""
    element = value[0] if isinstance(value, list) and value else value
    if not isinstance(element, np.ndarray | np.generic):
        raise CannotRun(f"the type of {declaration.name!r} is unknown")
    text = f"tensor({array_element_type(np.asarray(element))})"
    fill_type(
        declaration.type, f"seq({text})" if isinstance(value, list) else text, (None,) * np.ndim(element)
    )
