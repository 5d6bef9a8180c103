"""Inlining: replace the calls of local functions by the nodes of the functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from graphlib import TopologicalSorter
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from opshift.converter.repeated_fields import remove_messages, sort_by_keys
from opshift.converter.rewrite.workspace import FreshNames
from opshift.model.attributes import graphs_in
from opshift.model.graphs import ContainerProto, graphs_of, nested_nodes, root_graphs
from opshift.model.messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    ValueInfoProto,
)
from opshift.model.operator_ids import LocalFunction, called_function, canonical_domain, function_id
from opshift.registry.registry import Registry

if TYPE_CHECKING:
    from opshift.model.messages import Repeated

MAX_NODES, MAX_GROWTH = 50_000, 4
"""Maximum number of nodes after inlining, or of nodes for each node of the file if that is more.

Functions that call each other twice grow exponentially.
"""

SORT_KEY_STRIDE = 1 << 32
"""Distance between the sort keys of two neighbouring nodes; the nodes of an inlined call use the gap."""


def inline_functions(model: ModelProto, names: Collection[LocalFunction] | None = None) -> None:
    """Replace every call of some local functions, by default all, by their nodes, and remove the functions.

    Only the calls change. `inlining_obstacles` checks beforehand whether the result is equivalent.
    """
    is_inlined = [names is None or function_id(each) in names for each in model.functions]
    inliner = _Inliner(model, compress(model.functions, is_inlined))
    for graph in root_graphs(model):
        inliner.inline(graph)
    inliner.add_imports(model.opset_import, compress(model.functions, is_inlined))
    for function, is_removed in zip(model.functions, is_inlined, strict=True):
        called = [] if is_removed else called_functions(function, model.functions, names or ())
        if called:
            inliner.inline(function)
            inliner.add_imports(function.opset_import, called)
    remove_messages(model.functions, is_inlined)


def called_functions(
    caller: ContainerProto, functions: Sequence[FunctionProto], names: Collection[LocalFunction]
) -> list[FunctionProto]:
    """Return the functions with some names that a graph or function calls, directly or in one of them."""
    by_name = {function_id(each): each for each in functions if function_id(each) in names}
    found: dict[LocalFunction, FunctionProto] = {}
    waiting: list[ContainerProto] = [caller]
    while waiting:
        for called in map(called_function, nested_nodes(waiting.pop())):
            if called in by_name and called not in found:
                found[called] = by_name[called]
                waiting.append(by_name[called])
    return list(found.values())


def inlining_obstacles(
    model: ModelProto,
    opsets: Mapping[str, int],
    targets: Mapping[str, int],
    registry: Registry,
    functions: Sequence[FunctionProto] | None = None,
) -> Iterator[tuple[FunctionProto, str]]:
    """Yield each function that cannot be inlined, with the reason.

    The functions, by default all, must not be recursive. `opsets` are the opset imports of the graphs;
    domains are converted to `targets` before inlining.
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
    total = _inlined_size(model)
    limit = max(MAX_NODES, MAX_GROWTH * sum(1 for _ in nested_nodes(*root_graphs(model), *model.functions)))
    if total > limit:
        yield model.functions[0], f"inlining would produce {total:,} nodes, more than {limit:,}"


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
    def __init__(self, model: ModelProto, functions: Iterable[FunctionProto]) -> None:
        self._functions = {function_id(each): each for each in functions}
        self._names = FreshNames()
        self._names.avoid(*root_graphs(model), *model.functions)
        self._needs_identity = False

    def add_imports(self, imports: Repeated[OperatorSetIdProto], functions: Iterable[FunctionProto]) -> None:
        """Add the opset imports that the nodes of inlined functions need."""
        for function in functions:
            for each in function.opset_import:
                _add_import(imports, each.domain, each.version)
        if self._needs_identity:
            _add_import(imports, "", 1)

    def inline(self, top: ContainerProto) -> None:
        waiting: list[ContainerProto] = [top]
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

    def _replace(self, graph: ContainerProto, position: int) -> list[int]:
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

    def _expand(self, call: NodeProto, graph: ContainerProto) -> list[NodeProto]:
        """Return the nodes of a call, with nested calls expanded."""
        waiting, done = [call], []
        while waiting:
            node = waiting.pop()
            function = self._functions.get(called_function(node))
            if function is None:
                done.append(node)
                continue
            instance = InlinedCall(node, function, self._names.fresh)
            self._needs_identity |= instance.has_identity
            graph.value_info.extend(instance.value_info)
            waiting += reversed(instance.nodes)
        return done


def _inlined_size(model: ModelProto) -> int:
    """Return the number of nodes that the graphs of a model have after inlining."""
    functions = {function_id(each): each for each in model.functions}
    sizes: dict[LocalFunction, int] = {}
    graph = {name: {called_function(node) for node in nested_nodes(each)} for name, each in functions.items()}
    for name in TopologicalSorter(graph).static_order():
        nodes = nested_nodes(functions[name]) if name in functions else ()
        sizes[name] = sum(sizes[called_function(node)] for node in nodes) if name in functions else 1
    return sum(sizes.get(called_function(node), 1) for node in nested_nodes(*root_graphs(model)))


class InlinedNodes(NamedTuple):
    """Nodes to be inlined like a function, with the names of their inputs and outputs.

    Their attribute references remain: those refer to the function that contains the call.
    """

    input: Sequence[str]
    output: Sequence[str]
    node: Iterable[NodeProto]


class InlinedCall:
    """Function with the inputs, outputs and attributes of one call (IR specification, "Functions").

    All other values get fresh names, in subgraphs too: a name in a subgraph of the function must not hide a
    value of the caller. The producer of the first output gets the name of the call, and its doc string,
    metadata and device configurations unless the function provides them. `has_identity` states whether
    Identity nodes were added, for outputs that are also inputs or returned twice.
    """

    def __init__(
        self, call: NodeProto, function: FunctionProto | InlinedNodes, fresh: Callable[[str], str]
    ) -> None:
        self._call = call
        self._fresh = fresh
        self._has_attributes = not isinstance(function, InlinedNodes)
        defaults = {each.name: each for each in getattr(function, "attribute_proto", ())}
        self._attributes = {**defaults, **{each.name: each for each in call.attribute}}
        arguments = dict(zip(function.input, call.input, strict=False))
        names = {name: arguments.get(name, "") for name in function.input}
        outputs = _used_outputs(call, function)
        names |= {name: output for name, output in outputs if name not in names}
        produced = dict.fromkeys(name for node in function.node for name in node.output if name)
        names |= {name: fresh(name) for name in produced if name not in names}
        self.nodes = [self._instantiate(node, names) for node in function.node]
        identities = [(names[name], output) for name, output in outputs if names[name] != output]
        node_class = type(call)
        # for an output that is also an input, or that is returned twice
        self.nodes += [node_class(op_type="Identity", input=[one], output=[two]) for one, two in identities]
        self.has_identity = bool(identities)
        self.value_info = list(self._values(function, names, {*arguments.values(), *call.output}))
        self._copy_call_properties()

    def _values(
        self, function: FunctionProto | InlinedNodes, names: Mapping[str, str], known: set[str]
    ) -> Iterator[ValueInfoProto]:
        for value in getattr(function, "value_info", ()):
            name = names.get(value.name, "")
            if name and name not in known:
                renamed = deepcopy(value)
                renamed.name = name
                yield renamed

    def _copy_call_properties(self) -> None:
        call = self._call
        for node in self.nodes:
            if call.name and node.name:
                node.name = f"{call.name}/{node.name}"
        first = next(filter(None, call.output), "")
        replacement = next((node for node in self.nodes if first in node.output), None)
        if replacement is None:
            return
        if call.name:
            replacement.name = call.name
        if call.doc_string and not replacement.doc_string:
            replacement.doc_string = call.doc_string
        existing_keys = {each.key for each in getattr(replacement, "metadata_props", ())}
        for each in getattr(call, "metadata_props", ()):
            if each.key not in existing_keys:
                replacement.metadata_props.add().CopyFrom(each)
        if not getattr(replacement, "device_configurations", True):
            replacement.device_configurations.extend(call.device_configurations)

    def _instantiate(self, node: NodeProto, names: Mapping[str, str]) -> NodeProto:
        instance = deepcopy(node)
        self._rename(instance, names)
        return instance

    def _rename(self, node: NodeProto, names: Mapping[str, str]) -> None:
        for field in (node.input, node.output):
            for position, name in enumerate(field):
                field[position] = names.get(name, name)
        # Backwards, because references without a value are deleted.
        for position in reversed(range(len(node.attribute))):
            attribute = node.attribute[position]
            if attribute.ref_attr_name and self._has_attributes:
                self._resolve(node.attribute, position)
                continue
            for graph in graphs_in(attribute):
                self._rename_graph(graph, names)

    def _resolve(self, attributes: Repeated[AttributeProto], position: int) -> None:
        """Replace an attribute reference by its value, or remove the attribute if its value is absent."""
        name = attributes[position].name
        value = self._attributes.get(attributes[position].ref_attr_name)
        if value is None:
            del attributes[position]
            return
        attributes[position].CopyFrom(value)
        attributes[position].name = name

    def _rename_graph(self, graph: GraphProto, outer: Mapping[str, str]) -> None:
        sparse = (tensor.values for tensor in graph.sparse_initializer)
        values: list[ValueInfoProto | TensorProto] = [*graph.input, *graph.initializer, *sparse]
        produced = (name for node in graph.node for name in node.output if name)
        names = {**outer}
        for name in dict.fromkeys((*(value.name for value in values), *produced)):
            names[name] = self._fresh(name) if name else name
        for value in [*values, *graph.output, *graph.value_info]:
            value.name = names.get(value.name, value.name)
        for node in graph.node:
            self._rename(node, names)
        for annotation in graph.quantization_annotation:
            annotation.tensor_name = names.get(annotation.tensor_name, annotation.tensor_name)
            for entry in annotation.quant_parameter_tensor_names:
                entry.value = names.get(entry.value, entry.value)


def _used_outputs(call: NodeProto, function: FunctionProto | InlinedNodes) -> list[tuple[str, str]]:
    """Return the outputs of a function that a call uses, each with its name in the call."""
    return [(name, output) for name, output in zip(function.output, call.output, strict=False) if output]
