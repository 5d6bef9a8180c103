"""Scopes of the graphs and functions of a model, with their copies in another model."""

from collections.abc import Iterator

from opshift.inference.function_scope import CallScope, FunctionTable
from opshift.inference.scope import Scope
from opshift.model.graphs import ContainerProto, graphs_of, node_place, training_graphs
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import function_label, opset_imports
from opshift.registry.registry import Registry


def root_scopes(
    model: ModelProto, copy: ModelProto, registry: Registry
) -> Iterator[tuple[CallScope, ContainerProto, str]]:
    """Yield the scope of each graph, training graph and function, with its copy and its path for messages."""
    opsets = opset_imports(model.opset_import, model.ir_version)
    functions = FunctionTable(model, registry)
    main = functions.scope(model.graph, opsets, registry, {})
    yield main, copy.graph, "graph"
    for old, new in zip(training_graphs(model), training_graphs(copy), strict=True):
        yield functions.scope(old.graph, opsets, registry, {}, main), new.graph, old.path
    for index, function in enumerate(model.functions):
        scope = functions.scope(function, functions.opsets(index), registry, {})
        yield scope, copy.functions[index], f"function {function_label(function)}"


def graph_scopes(model: ModelProto, registry: Registry) -> Iterator[tuple[Scope, str]]:
    """Yield the scopes of the main graph and of its subgraphs, each with its path for messages."""
    pending: list[tuple[Scope, str]] = [(next(root_scopes(model, model, registry))[0], "graph")]
    for scope, path in pending:  # a list that grows by the subgraphs
        nodes = scope.container.node
        scope.defined_names.update(name for node in nodes for name in node.output)
        for node in nodes:
            for graph in graphs_of(node):
                child = scope.child(graph)
                child.owner = node
                pending.append((child, node_place(path, node)))
    yield from pending
