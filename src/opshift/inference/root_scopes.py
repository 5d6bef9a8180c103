"""Scopes of the graphs and functions of a model, paired with the same messages of a copy."""

from collections.abc import Iterator

from opshift.inference.function_scope import CallScope, FunctionTable
from opshift.inference.scope import Scope
from opshift.model.attributes import graphs_in
from opshift.model.graphs import ContainerProto, bound_names, node_place, training_graphs
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import function_label, opset_imports
from opshift.registry.registry import Registry


def root_scopes(
    model: ModelProto, copy: ModelProto, registry: Registry
) -> Iterator[tuple[CallScope, ContainerProto, str]]:
    """Yield for each graph (main or training) and function: scope, message in `copy`, path for messages.

    Initializers that training updates are no constants in these scopes, see `Container.variables`.
    """
    variables = frozenset(bound_names(model))
    opsets = opset_imports(model.opset_import, model.ir_version)
    functions = FunctionTable(model, registry)
    main = functions.scope(model.graph, opsets, registry, {})
    main.variables = variables
    yield main, copy.graph, "graph"
    for old, new in zip(training_graphs(model), training_graphs(copy), strict=True):
        scope = functions.scope(old.graph, opsets, registry, {}, main)
        scope.variables = variables
        yield scope, new.graph, old.path
    for index, function in enumerate(model.functions):
        scope = functions.scope(function, functions.opsets(index), registry, {})
        yield scope, copy.functions[index], f"function {function_label(function)}"


def graph_scopes(model: ModelProto, registry: Registry) -> Iterator[tuple[Scope, str]]:
    """Yield the scopes of the main graph and of its subgraphs, each with its path for messages."""
    yield from nested_scopes(next(root_scopes(model, model, registry))[0], "graph")


def nested_scopes(root: Scope, path: str, *, names_attributes: bool = False) -> Iterator[tuple[Scope, str]]:
    """Yield a scope and the scopes of its subgraphs, outer ones first, each with its path.

    With `names_attributes`, the path of a subgraph ends in the name of the attribute that contains it.
    """
    pending = [(root, path)]
    for scope, place in pending:  # the loop appends subgraphs to this list
        nodes = scope.container.node
        scope.defined_names.update(name for node in nodes for name in node.output)
        for node in nodes:
            for attribute in node.attribute:
                for graph in graphs_in(attribute):
                    child = scope.child(graph)
                    child.owner = node
                    inner = node_place(place, node)
                    pending.append((child, f"{inner}, {attribute.name}" if names_attributes else inner))
    yield from pending
