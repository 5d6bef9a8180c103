"""Copy of the nodes of a function for one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from opshift.model.attributes import graphs_in
from opshift.model.declarations import declarations_in, rename_dimensions
from opshift.model.graphs import graphs_of, nested_nodes
from opshift.model.indirect_reads import remove_foreign_shardings, rename_in_attributes, rename_shardings
from opshift.model.messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
)

if TYPE_CHECKING:
    from opshift.model.messages import Repeated


class InlinedNodes(NamedTuple):
    """Nodes of a subgraph that is inlined like a function, with the names of its inputs and outputs.

    `value_info` declares values of the nodes. Attribute references in the nodes remain, because they refer to
    the function that contains the call.
    """

    input: Sequence[str]
    output: Sequence[str]
    node: Iterable[NodeProto]
    value_info: Sequence[ValueInfoProto] = ()


class InlinedCall:
    """Nodes of a function with the inputs, outputs and attributes of a call (IR specification, "Functions").

    All other values get fresh names, in subgraphs too: a name in a subgraph of the function must not hide a
    value of the caller. Named dimensions of a function also get fresh names, because their sizes may differ
    between calls. The producer of the first output gets the name, doc string and metadata of the call, and
    all nodes, also in subgraphs, get its device configurations; doc strings, metadata and devices of the
    function take precedence. `identities` are the last nodes, which were added for `repeated_outputs`.
    """

    def __init__(
        self, call: NodeProto, function: FunctionProto | InlinedNodes, fresh: Callable[[str], str]
    ) -> None:
        self._call = call
        self._fresh = fresh
        self._dimensions: dict[str, str] = {}
        """Fresh names of the named dimensions of the function."""
        self._is_function = not isinstance(function, InlinedNodes)
        defaults = {each.name: each for each in getattr(function, "attribute_proto", ())}
        self._attributes = {**defaults, **{each.name: each for each in call.attribute}}
        arguments = dict(zip(function.input, call.input, strict=False))
        names = {name: arguments.get(name, "") for name in function.input}
        outputs = _used_outputs(call, function)
        names |= {name: output for name, output in outputs if name not in names}
        produced = dict.fromkeys(name for node in function.node for name in node.output if name)
        names |= {name: fresh(name) for name in produced if name not in names}
        self.nodes = [self._instantiate_node(node, names) for node in function.node]
        passed = [(names[name], output) for name, output in outputs if names[name] != output]
        node_class = type(call)
        self.identities = [node_class(op_type="Identity", input=[one], output=[two]) for one, two in passed]
        self.nodes += self.identities
        self.value_info = list(self._declared_values(function, names, {*arguments.values(), *call.output}))
        self._copy_call_properties()

    def _declared_values(
        self, function: FunctionProto | InlinedNodes, names: Mapping[str, str], known: set[str]
    ) -> Iterator[ValueInfoProto]:
        for value in getattr(function, "value_info", ()):
            name = names.get(value.name, "")
            if name and name not in known:
                renamed = deepcopy(value)
                renamed.name = name
                self._rename_dimensions([renamed])
                yield renamed

    def _copy_call_properties(self) -> None:
        call = self._call
        # The message classes of an older `onnx` have no device configurations.
        devices = getattr(call, "device_configurations", ())
        for node in self.nodes:
            if call.name and node.name:
                node.name = f"{call.name}/{node.name}"
            for each in (node, *nested_nodes(*graphs_of(node))) if devices else ():
                if not each.device_configurations:
                    each.device_configurations.extend(devices)
                    remove_foreign_shardings(each)
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

    def _instantiate_node(self, node: NodeProto, names: Mapping[str, str]) -> NodeProto:
        instance = deepcopy(node)
        self._rename_node(instance, names)
        return instance

    def _rename_node(self, node: NodeProto, names: Mapping[str, str]) -> None:
        rename_parameters(node, names)
        # Backwards, because references without a value are deleted during the iteration.
        for position in reversed(range(len(node.attribute))):
            attribute = node.attribute[position]
            if attribute.ref_attr_name and self._is_function:
                self._resolve_reference(node.attribute, position)
                continue
            for graph in graphs_in(attribute):
                self._rename_graph(graph, names)

    def _resolve_reference(self, attributes: Repeated[AttributeProto], position: int) -> None:
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
        rename_values(graph, names)
        self._rename_dimensions(declarations_in(graph))
        for node in graph.node:
            self._rename_node(node, names)

    def _rename_dimensions(self, values: Iterable[ValueInfoProto]) -> None:
        if self._is_function:
            rename_dimensions(values, self._fresh_dimension)

    def _fresh_dimension(self, name: str) -> str:
        if name not in self._dimensions:
            self._dimensions[name] = self._fresh(name)
        return self._dimensions[name]


def rename_parameters(node: NodeProto, names: Mapping[str, str]) -> None:
    """Rename values in the inputs, outputs, attributes and shardings of a node, but not in its subgraphs."""
    for field in (node.input, node.output):
        for position, name in enumerate(field):
            field[position] = names.get(name, name)
    rename_shardings(node, names)
    rename_in_attributes(node, names)


def rename_values(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename the values of a graph, except in its nodes: declarations, initializers and annotations."""
    for value in declarations_in(graph):
        value.name = names.get(value.name, value.name)
    for tensor in chain(graph.initializer, (each.values for each in graph.sparse_initializer)):
        tensor.name = names.get(tensor.name, tensor.name)
    for annotation in graph.quantization_annotation:
        annotation.tensor_name = names.get(annotation.tensor_name, annotation.tensor_name)
        for entry in annotation.quant_parameter_tensor_names:
            entry.value = names.get(entry.value, entry.value)


def repeated_outputs(call: NodeProto, function: FunctionProto) -> list[str]:
    """Return the outputs of a call that need an Identity: values that are also inputs, or returned twice."""
    outputs = _used_outputs(call, function)
    producible = {name: output for name, output in outputs if name not in function.input}
    return [output for name, output in outputs if producible.get(name) != output]


def _used_outputs(call: NodeProto, function: FunctionProto | InlinedNodes) -> list[tuple[str, str]]:
    """Return the outputs of a function that a call uses, each with its name in the call."""
    return [(name, output) for name, output in zip(function.output, call.output, strict=False) if output]
