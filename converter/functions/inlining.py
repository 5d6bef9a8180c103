"""Inlining: replace the calls of local functions by the nodes of the functions, or find what prevents it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from graphlib import TopologicalSorter
from itertools import compress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from opshift.converter.functions.expanded_calls import CallExpander
from opshift.converter.functions.inlined_call import repeated_outputs
from opshift.inference.call_facts import CallSite
from opshift.model.declarations import declarations_in, named_dims
from opshift.model.element_types import type_string
from opshift.model.errors import InvalidModel
from opshift.model.graphs import (
    ContainerProto,
    graphs_of,
    max_node_count,
    nested_containers,
    nested_nodes,
    remove_messages,
    root_graphs,
    sort_by_keys,
)
from opshift.model.messages import FunctionProto, ModelProto, NodeProto, OperatorSetIdProto
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    LocalFunction,
    called_function,
    canonical_domain,
    function_id,
    imported_default_opset,
)
from opshift.registry.registry import Registry
from opshift.rewriting.workspace import FreshNames, NodeNames

if TYPE_CHECKING:
    from opshift.model.messages import Repeated

SORT_KEY_STRIDE = 1 << 32
"""Distance between the sort keys of two neighbouring nodes; the nodes of an inlined call use the gap."""

MAX_BYTES, MAX_BYTE_GROWTH = 8 << 20, 64
"""Maximum size of a model after inlining, in bytes and as a multiple of the old size; the larger applies.

A node with metadata may need 50 times as many bytes in memory as in the file.
"""

IDENTITY = LocalFunction(DEFAULT_DOMAIN, "Identity")


class IdentityObstacle(NamedTuple):
    """Function that cannot be inlined: it needs an Identity, and the result cannot have one.

    `code` is the code of the refusal.
    """

    function: FunctionProto
    reason: str
    remedy: str
    code: str


def identity_obstacles(
    model: ModelProto, functions: Sequence[FunctionProto], targets: Mapping[str, int], registry: Registry
) -> Iterator[IdentityObstacle]:
    """Yield each function that cannot be inlined: it needs an Identity, and the result cannot have one.

    `functions` are the functions to inline. `targets` are the opsets of the result. Values of unknown type
    are assumed to be tensors that Identity accepts.
    """
    repeating = {function_id(each) for each in functions if _repeats_values(each)}
    if not repeating:
        return
    # imported here: few models have functions that return an input
    from opshift.inference.root_scopes import add_call_facts, root_scopes

    kept = {function_id(each) for each in model.functions} - {function_id(each) for each in functions}
    opset = identity_opset(model, targets)
    calls = add_call_facts([scope for scope, _, _ in root_scopes(model, model, registry)])
    for index, function in enumerate(model.functions):
        for call in calls.get(index, ()) if function_id(function) in repeating else ():
            outputs = repeated_outputs(call.proto, function)
            unsupported = _unsupported_type(call, outputs, opset, registry)
            if outputs and IDENTITY in kept:
                reason = "inlined nodes use the operator Identity, but a function of the model has that name"
                remedy = f"rename the function {IDENTITY}"
                yield IdentityObstacle(function, reason, remedy, "function.shadows-operator")
                break
            if unsupported:
                reason = (
                    "it returns an input, or a value twice, and Identity of opset "
                    f"{opset} does not accept the type {unsupported}"
                )
                remedy = "return each value once, or convert to an opset whose Identity accepts the type"
                yield IdentityObstacle(function, reason, remedy, "type.unsupported")
                break


def identity_opset(model: ModelProto, targets: Mapping[str, int]) -> int:
    """Return the opset of an Identity in a graph or function that does not import the default domain."""
    return targets.get(DEFAULT_DOMAIN) or imported_default_opset(model) or 1


def _repeats_values(function: FunctionProto) -> bool:
    names = (*function.input, *function.output)
    return len({*names}) < len(names)


def _unsupported_type(call: CallSite, outputs: Sequence[str], opset: int, registry: Registry) -> str:
    """Return the type of an output that Identity does not accept at an opset, or `""`."""
    identity = registry.known_at(IDENTITY.name, opset, IDENTITY.domain)
    types = (call.scope.element_type(each) for each in outputs)
    found = (type_string(each) for each in types if each)
    accepted = identity.types_of(identity.outputs[0]) if identity else ()
    return next((each for each in found if each not in accepted), "")


def inline_functions(
    model: ModelProto,
    names: Set[LocalFunction] | None = None,
    targets: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Replace every call of the functions in `names` (default: all) by their nodes; remove the functions.

    Other nodes do not change. Call `inlining_obstacles` first, with the same `targets`, to check whether the
    result is equivalent.
    """
    is_inlined = [names is None or function_id(each) in names for each in model.functions]
    inliner = _Inliner(model, compress(model.functions, is_inlined), targets)
    for graph in root_graphs(model):
        inliner.inline(graph)
    inliner.add_imports(model.opset_import, compress(model.functions, is_inlined))
    inlined = {function_id(each): each for each in compress(model.functions, is_inlined)}
    for function, is_removed in zip(model.functions, is_inlined, strict=True):
        called = [] if is_removed else called_functions(function, inlined)
        if called:
            inliner.inline(function)
            inliner.add_imports(function.opset_import, called)
    remove_messages(model.functions, is_inlined)


def called_functions(
    caller: ContainerProto, functions: Mapping[LocalFunction, FunctionProto]
) -> list[FunctionProto]:
    """Return the functions in `functions` that `caller` calls, directly or through these functions."""
    found: dict[LocalFunction, FunctionProto] = {}
    waiting: list[ContainerProto] = [caller]
    while waiting:
        for called in map(called_function, nested_nodes(waiting.pop())):
            if called in functions and called not in found:
                found[called] = functions[called]
                waiting.append(functions[called])
    return list(found.values())


def inlining_obstacles(
    model: ModelProto,
    opsets: Mapping[str, int],
    targets: Mapping[str, int],
    registry: Registry,
    functions: Sequence[FunctionProto] | None = None,
) -> Iterator[tuple[FunctionProto, str]]:
    """Yield each function that cannot be inlined, with the reason.

    `functions` (default: all) must not be recursive. If all are inlined, a function is also yielded if the
    result would be too large, or would need an Identity that it cannot have. `opsets` are the opset imports
    of the graphs; domains are converted to `targets` before inlining.
    """
    imported = {**opsets, **targets}
    for function in model.functions if functions is None else functions:
        own = {canonical_domain(each.domain): each.version for each in function.opset_import}
        for domain, opset in own.items():
            opset = targets.get(domain, opset)
            graph_opset = imported.setdefault(domain, opset)
            if graph_opset != opset and not _are_equivalent(function, domain, opset, graph_opset, registry):
                yield (
                    function,
                    f"it is written for opset {opset} of {domain}, the graph for opset {graph_opset}",
                )
    if functions is None:
        yield from growth_obstacle(model)
        for each in identity_obstacles(model, model.functions, targets, registry):
            yield each.function, each.reason


def recursion_error(functions: Sequence[str]) -> InvalidModel:
    """Return the error for functions that call each other in a cycle; `functions` are their labels."""
    return InvalidModel(
        f"functions call each other in a cycle: {' -> '.join(functions)}",
        place=f"function {functions[0]}",
        remedy="replace the recursion by a Loop",
    )


def growth_obstacle(
    model: ModelProto, added: Mapping[LocalFunction, int] = MappingProxyType({})
) -> Iterator[tuple[FunctionProto, str]]:
    """Yield the first function, with the reason, if inlining all functions would make the model too large.

    `added` has the number of nodes that a conversion adds to each function before the inlining.
    """
    calls, size = _Calls(model), model.ByteSize()
    total, limit = calls.inlined_nodes(added), max_node_count(model)
    if total > limit:
        yield model.functions[0], f"inlining would produce {total:,} nodes, more than {limit:,}"
        return
    total = size + calls.inlined_bytes()
    limit = max(MAX_BYTES, MAX_BYTE_GROWTH * size)
    if total > limit:
        yield model.functions[0], f"inlining would produce {total:,} bytes, more than {limit:,}"


def _are_equivalent(
    function: FunctionProto, domain: str, opset: int, graph_opset: int, registry: Registry
) -> bool:
    """Return whether the operators of a domain in a function are known, and equal at both opsets."""
    used = {node.op_type for node in nested_nodes(function) if canonical_domain(node.domain) == domain}
    found = [
        (registry.known_at(name, opset, domain), registry.known_at(name, graph_opset, domain))
        for name in used
    ]
    return all(one is another and one is not None for one, another in found)


def replace_call(
    graph: ContainerProto, position: int, new_nodes: Sequence[NodeProto], node_names: NodeNames
) -> list[int]:
    """Overwrite a call with one new node (or clear it), append the others, and return keys to sort these."""
    call = graph.node[position]
    node_names.rename(new_nodes, kept=call.name)
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


class _Inliner:
    def __init__(
        self, model: ModelProto, functions: Iterable[FunctionProto], targets: Mapping[str, int]
    ) -> None:
        self._functions = {function_id(each): each for each in functions}
        names = FreshNames()
        names.avoid(*root_graphs(model), *model.functions)
        # Most functions have no named dimensions; then, the declarations of the model need not be read.
        if any(_dimension_names(self._functions.values())):
            names.sources.append(lambda: [_dimension_names([*root_graphs(model), *model.functions])])
        others = (each for each in model.functions if function_id(each) not in self._functions)
        self._calls = CallExpander(self._functions, [*root_graphs(model), *others], names.fresh)
        self._needs_identity = False
        self._identity_opset = identity_opset(model, targets)

    def add_imports(self, imports: Repeated[OperatorSetIdProto], functions: Iterable[FunctionProto]) -> None:
        """Add the opset imports that the nodes of inlined functions need."""
        known = {canonical_domain(each.domain) for each in imports}
        needed = [(each.domain, each.version) for function in functions for each in function.opset_import]
        for domain, version in (*needed, *[("", self._identity_opset)] * self._needs_identity):
            if canonical_domain(domain) not in known:
                known.add(canonical_domain(domain))
                imports.add(domain=domain, version=version)

    def inline(self, top: ContainerProto) -> None:
        waiting: list[ContainerProto] = [top]
        while waiting:
            graph = waiting.pop()
            nodes = graph.node
            count = len(nodes)
            node_names = NodeNames(nodes)
            keys = [position * SORT_KEY_STRIDE for position in range(count)]
            for position in range(count):
                if called_function(nodes[position]) in self._functions:
                    keys += self._replace_call(graph, position, node_names)
            if len(keys) > count:
                sort_by_keys(nodes, keys)
            waiting += [inner for node in nodes for inner in graphs_of(node)]

    def _replace_call(self, graph: ContainerProto, position: int, node_names: NodeNames) -> list[int]:
        found = self._calls.expand(graph.node[position])
        self._needs_identity |= found.has_identity
        graph.value_info.extend(found.value_info)
        return replace_call(graph, position, found.nodes, node_names)


def _dimension_names(roots: Iterable[ContainerProto]) -> Iterator[str]:
    for container in nested_containers(roots):
        for value in declarations_in(container):
            yield from (dim.dim_param for dim in named_dims(value.type))


def inlined_size(model: ModelProto) -> int:
    """Return the number of nodes that the graphs of a model have after all functions are inlined."""
    return _Calls(model).inlined_nodes({})


class _Calls:
    """Calls of the functions of a model in its graphs, functions and subgraphs."""

    def __init__(self, model: ModelProto) -> None:
        self.functions = {function_id(each): each for each in model.functions}
        nodes = {name: [*nested_nodes(each)] for name, each in self.functions.items()}
        in_graphs = [*nested_nodes(*root_graphs(model))]
        self._calls = {name: self._called_functions(each) for name, each in nodes.items()}
        self._in_graphs = self._called_functions(in_graphs)
        called = {name: [each for each, _ in calls] for name, calls in self._calls.items()}
        self._order = [*TopologicalSorter(called).static_order()]
        self._node_counts = {name: len(each) for name, each in nodes.items()}
        self._operators_in_graphs = len(in_graphs) - len(self._in_graphs)

    def _called_functions(self, nodes: Iterable[NodeProto]) -> list[tuple[LocalFunction, NodeProto]]:
        found = ((called_function(node), node) for node in nodes)
        return [(name, node) for name, node in found if name in self.functions]

    def inlined_nodes(self, added: Mapping[LocalFunction, int]) -> int:
        """Return the number of nodes of the graphs after all functions, with `added` nodes, are inlined."""
        counts = self._node_counts.items()
        own = {name: count - len(self._calls[name]) + added.get(name, 0) for name, count in counts}
        return self._operators_in_graphs + self._over_calls(own)

    def inlined_bytes(self) -> int:
        """Return about how many bytes the inlining of all functions copies.

        All nodes that replace a call get its device configurations; one node of each nested function gets its
        metadata.
        """
        node_counts: dict[LocalFunction, int] = {}
        depths: dict[LocalFunction, int] = {}
        for name in self._order:
            called = [each for each, _ in self._calls[name]]
            node_counts[name] = self._node_counts[name] + sum(node_counts[each] for each in called)
            depths[name] = 1 + max((depths[each] for each in called), default=0)

        def inherited(calls: Iterable[tuple[LocalFunction, NodeProto]]) -> int:
            """Return the bytes that inlined nodes inherit from their calls."""
            return sum(
                _field_size(node, "device_configurations") * node_counts[name]
                + _field_size(node, "metadata_props") * depths[name]
                for name, node in calls
            )

        sizes = ((name, each.ByteSize()) for name, each in self.functions.items())
        own = {name: size + inherited(self._calls[name]) for name, size in sizes}
        return inherited(self._in_graphs) + self._over_calls(own)

    def _over_calls(self, own: Mapping[LocalFunction, int]) -> int:
        """Return the sum of the numbers in `own`, by function, over all direct and nested calls in graphs."""
        sums: dict[LocalFunction, int] = {}
        for name in self._order:
            sums[name] = own[name] + sum(sums[each] for each, _ in self._calls[name])
        return sum(sums[name] for name, _ in self._in_graphs)


def _field_size(node: NodeProto, name: str) -> int:
    """Return the number of bytes of a field, which the message classes of an older `onnx` may lack."""
    return sum(each.ByteSize() for each in getattr(node, name, ()))
