"""The nodes of a function as they stand in place of one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Fresh = Callable[[str], str]
"""Makes a name that no value of the model has, from a hint."""


class Instance:
    """A function with the inputs, outputs and attributes of one call (IR specification, "Functions").

    Every other value gets a fresh name, in graphs within too: what a graph of the function calls like a
    value of the caller must not hide that value.

    Attributes:
        nodes: new NodeProtos, in order. The one that makes the first output has the name of the call; it
            also has its doc string, metadata and device configurations where the function says nothing.
        value_info: new ValueInfoProtos of the values within.
        has_identity: whether an output is an input too, or returned twice.
    """

    def __init__(self, call: Any, function: Any, fresh: Fresh) -> None:
        self._call = call
        self._fresh = fresh
        defaults = {each.name: each for each in getattr(function, "attribute_proto", ())}
        self._attributes = {**defaults, **{each.name: each for each in call.attribute}}
        actual = dict(zip(function.input, call.input, strict=False))
        names = {name: actual.get(name, "") for name in function.input}
        returned = _returned(call, function)
        names |= {name: given for name, given in returned if name not in names}
        made = dict.fromkeys(name for node in function.node for name in node.output if name)
        names |= {name: fresh(name) for name in made if name not in names}
        self.nodes = [self._node(node, names) for node in function.node]
        passed = [(names[name], given) for name, given in returned if names[name] != given]
        self.nodes += [_identity(type(call)(), name, given) for name, given in passed]
        self.has_identity = bool(passed)
        self.value_info = list(self._values(function, names, {*actual.values(), *call.output}))
        self._hand_over()

    def _values(self, function: Any, names: Mapping[str, str], known: set[str]) -> Iterator[Any]:
        for value in getattr(function, "value_info", ()):
            name = names.get(value.name, "")
            if name and name not in known:
                copy = type(value)()
                copy.CopyFrom(value)
                copy.name = name
                yield copy

    def _hand_over(self) -> None:
        """Give the call's name and notes to the node that takes its place."""
        call = self._call
        for node in self.nodes:
            if call.name and node.name:
                node.name = f"{call.name}/{node.name}"
        first = next(filter(None, call.output), "")
        successor = next((node for node in self.nodes if first in node.output), None)
        if successor is None:
            return
        if call.name:
            successor.name = call.name
        if call.doc_string and not successor.doc_string:
            successor.doc_string = call.doc_string
        there = {each.key for each in getattr(successor, "metadata_props", ())}
        for each in getattr(call, "metadata_props", ()):
            if each.key not in there:
                successor.metadata_props.add().CopyFrom(each)
        if not getattr(successor, "device_configurations", True):
            successor.device_configurations.extend(call.device_configurations)

    def _node(self, node: Any, names: Mapping[str, str]) -> Any:
        copy = type(node)()
        copy.CopyFrom(node)
        self._rename(copy, names)
        return copy

    def _rename(self, node: Any, names: Mapping[str, str]) -> None:
        for field in (node.input, node.output):
            for position, name in enumerate(field):
                field[position] = names.get(name, name)
        for position in reversed(range(len(node.attribute))):
            attribute = node.attribute[position]
            if attribute.ref_attr_name:
                self._resolve(node.attribute, position)
                continue
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                self._rename_graph(graph, names)

    def _resolve(self, attributes: Any, position: int) -> None:
        """Put the value in place of a reference; without one the attribute goes."""
        name = attributes[position].name
        value = self._attributes.get(attributes[position].ref_attr_name)
        if value is None:
            del attributes[position]
            return
        attributes[position].CopyFrom(value)
        attributes[position].name = name

    def _rename_graph(self, graph: Any, outer: Mapping[str, str]) -> None:
        values = (*graph.input, *graph.initializer, *(each.values for each in graph.sparse_initializer))
        made = (name for node in graph.node for name in node.output if name)
        names = {**outer}
        for name in dict.fromkeys((*(each.name for each in values), *made)):
            names[name] = self._fresh(name) if name else name
        for each in (*values, *graph.output, *graph.value_info):
            each.name = names.get(each.name, each.name)
        for node in graph.node:
            self._rename(node, names)
        for annotation in graph.quantization_annotation:
            annotation.tensor_name = names.get(annotation.tensor_name, annotation.tensor_name)
            for each in annotation.quant_parameter_tensor_names:
                each.value = names.get(each.value, each.value)


def _returned(call: Any, function: Any) -> list[tuple[str, str]]:
    """The outputs of a function that a call takes, and what it calls them."""
    return [(name, given) for name, given in zip(function.output, call.output, strict=False) if given]


def _identity(node: Any, name: str, output: str) -> Any:
    """A node for an output that is an input too, or that is returned twice."""
    node.op_type = "Identity"
    node.input.append(name)
    node.output.append(output)
    return node
