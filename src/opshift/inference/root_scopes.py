"""Scopes of the graphs and functions of a model, with their paths for messages and with call facts."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter

from opshift.inference.call_facts import CallFacts, CallSite
from opshift.inference.function_scope import CallScope, FunctionTable
from opshift.inference.scope import Scope
from opshift.model.attributes import graphs_in
from opshift.model.graphs import ContainerProto, graphs_of, node_place, training_graphs
from opshift.model.indirect_reads import bound_names, names_in_training
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import function_label, opset_imports
from opshift.registry.registry import Registry


def root_scopes(
    model: ModelProto, copy: ModelProto, registry: Registry
) -> Iterator[tuple[CallScope, ContainerProto, str]]:
    """Yield for each graph (main or training) and function: scope, message in `copy`, path for messages.

    In scopes of graphs, initializers that training updates are not constant, see `Container.variables`.
    """
    opsets = opset_imports(model.opset_import, model.ir_version)
    functions = FunctionTable(model, registry)
    variables = functions.evaluation.named_values.sources.union(bound_names(model))
    main = functions.scope(model.graph, opsets, registry, {})
    main.variables = variables
    main.read_in_training = names_in_training(model)
    yield main, copy.graph, "graph"
    for old, new in zip(training_graphs(model), training_graphs(copy), strict=True):
        scope = functions.scope(old.graph, opsets, registry, {}, main)
        scope.variables = variables
        yield scope, new.graph, old.path
    for index, function in enumerate(model.functions):
        scope = functions.scope(function, functions.opsets(index), registry, {})
        yield scope, copy.functions[index], f"function {function_label(function)}"


def add_call_facts(scopes: Sequence[CallScope]) -> Mapping[int, Sequence[CallSite]]:
    """Set `call_facts` of all called functions in `scopes`: the facts on which all calls agree.

    `scopes` are the result of `root_scopes`, without recursive functions. Return the calls by the position
    of the called function.
    """
    calls: defaultdict[int, list[CallSite]] = defaultdict(list)
    functions = [scope for scope in scopes if scope.is_function]
    callers: TopologicalSorter[Scope] = TopologicalSorter()
    for root in scopes:
        pending: list[Scope] = [root]
        for scope in pending:  # the loop appends the scopes of subgraphs to this list
            for record in scope.node_records:
                proto = scope.proto_of(record)
                index = root.functions.find(proto)
                if index is not None:
                    calls[index].append(CallSite(scope.node_of(record), proto, scope))
                    callers.add(functions[index], root)
                pending += map(scope.child, graphs_of(proto))
    positions: dict[Scope, int] = {scope: index for index, scope in enumerate(functions)}
    # Callers first: the facts of a call depend on the facts of the function that contains the call.
    for scope in callers.static_order():
        if scope in positions:
            index = positions[scope]
            functions[index].call_facts = CallFacts(scopes[0].functions, index, calls[index])
    return calls


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
