"""Scopes of the graphs and functions of a model, with their copies in another model."""

from collections.abc import Iterator

from opshift.inference.function_scope import CallScope, FunctionTable
from opshift.model.graphs import ContainerProto, training_graphs
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
