"""Rewrite of a node: the nodes that replace it, and their NodeProtos."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from opshift.model.attributes import ATTRIBUTE_TYPES, graphs_in, write_attribute
from opshift.model.declarations import declarations_in
from opshift.model.graphs import Container, graphs_of
from opshift.model.messages import AttributeProto, GraphProto, NodeProto, ValueInfoProto
from opshift.model.node import Graph, Node, Tensor, Value
from opshift.model.tensors import write_tensor
from opshift.model.types import fill_type
from opshift.registry.models import OperatorVersion
from opshift.rewriting.version_steps import VersionStep


def with_inputs_renamed(graph: GraphProto, names: Mapping[str, str]) -> GraphProto:
    """Return a copy of a graph with inputs renamed, also in nodes, subgraphs and annotations."""
    copy = type(graph)()
    copy.CopyFrom(graph)
    waiting = [(copy, names)]
    while waiting:
        each, inherited = waiting.pop()
        if each is not copy:
            own = Container(each).predefined_names().union(*(node.output for node in each.node))
            inherited = {name: new for name, new in inherited.items() if name not in own}
        for node in each.node:
            node.input[:] = [inherited.get(name, name) for name in node.input]
            waiting += [(inner, inherited) for inner in graphs_of(node)]
        for value in declarations_in(each):
            value.name = inherited.get(value.name, value.name)
        for annotation in each.quantization_annotation:
            annotation.tensor_name = inherited.get(annotation.tensor_name, annotation.tensor_name)
            for entry in annotation.quant_parameter_tensor_names:
                entry.value = inherited.get(entry.value, entry.value)
    return copy


class ConvertedNode(NamedTuple):
    """Node of the converted model, with its operator version.

    The replacement gets the name, doc string and metadata of the original node.
    """

    node: Node
    operator: OperatorVersion
    is_replacement: bool


class EmittedGraph(NamedTuple):
    """Graph that an adapter emitted, with its nodes converted to the target.

    If the graph embeds a subgraph of the model, `nodes` precede and `after` follow the nodes of the subgraph.
    """

    graph: Graph
    nodes: tuple[ConvertedNode, ...]
    after: tuple[ConvertedNode, ...]


def values_read(converted_nodes: Iterable[ConvertedNode]) -> Iterator[str]:
    """Yield the names of the values that emitted nodes and graphs read, and the outputs of the graphs."""
    for converted in converted_nodes:
        yield from converted.node.inputs
        for value in converted.node.attributes.values():
            if isinstance(value, EmittedGraph):
                yield from values_read((*value.nodes, *value.after))
                yield from (output.name for output in value.graph.outputs)


class ComputedRewrite(NamedTuple):
    """Rewrite that the steps of a node computed; `operator` is the operator version of `original`."""

    operator: OperatorVersion
    original: Node
    nodes: tuple[ConvertedNode, ...]
    steps: tuple[VersionStep, ...]

    @property
    def operators(self) -> tuple[OperatorVersion, ...]:
        """Operator versions of the nodes that replace the original node."""
        return tuple(each.operator for each in self.nodes)

    @property
    def node_count(self) -> int:
        """Number of nodes that replace the original, including nodes in emitted graphs."""
        return count_nodes(self.nodes)

    @property
    def replacement_index(self) -> int:
        """Position of the replacement among the new nodes; the last position if no node is marked."""
        return next((i for i, each in enumerate(self.nodes) if each.is_replacement), len(self.nodes) - 1)

    @property
    def is_unchanged(self) -> bool:
        """Whether the rewrite leaves the node unchanged."""
        if len(self.nodes) != 1:
            return False
        written, node = self.nodes[0].node, self.original
        return written is node or (
            written.op_type == node.op_type
            and written.domain == node.domain
            and written.inputs == node.inputs
            and written.outputs == node.outputs
            and written.attributes == node.attributes
        )

    @property
    def unread_inputs(self) -> Iterable[str]:
        """Inputs of the original node that no new node reads."""
        return set(self.original.inputs).difference(values_read(self.nodes))

    @property
    def has_graphs(self) -> bool:
        """Whether a new node has an emitted graph as an attribute."""
        return any(emitted_graphs(each.node) for each in self.nodes)

    def with_names(self, original: Node, names: Mapping[str, str]) -> ComputedRewrite:
        """Return this rewrite for a node with equal attributes; `names` maps all value names to new names."""
        old = self.original.attributes
        copied = {id(old[name]): value for name, value in original.attributes.items()}
        nodes = tuple(_with_names(each, names, copied) for each in self.nodes)
        return self._replace(original=original, nodes=nodes)

    def write(self, protos: Sequence[NodeProto]) -> None:
        """Write the nodes that replace the original into NodeProtos."""
        main = self.replacement_index
        for written, proto in zip(self.nodes, protos, strict=True):
            if proto is not protos[main]:
                fill_node(proto, written, protos[main])
        # Written last, because the other nodes copy subgraphs from the original NodeProto.
        update_node(protos[main], self.nodes[main], self.original)


def _with_names(written: ConvertedNode, names: Mapping[str, str], copied: Mapping[int, Any]) -> ConvertedNode:
    """Return an emitted node with new names; `copied` maps `id`s of attribute values to new values."""
    node, attributes = written.node, dict[str, object]()
    for name, value in node.attributes.items():
        is_graph = isinstance(value, EmittedGraph)
        attributes[name] = (
            _graph_with_names(value, names, copied) if is_graph else copied.get(id(value), value)
        )
    inputs, outputs = tuple(map(names.__getitem__, node.inputs)), tuple(map(names.__getitem__, node.outputs))
    return written._replace(node=Node(node.op_type, inputs, outputs, attributes, node.domain))


def _graph_with_names(
    written: EmittedGraph, names: Mapping[str, str], copied: Mapping[int, Any]
) -> EmittedGraph:
    graph = written.graph
    inputs, outputs = (
        tuple(each._replace(name=names[each.name]) for each in values)
        for values in (graph.inputs, graph.outputs)
    )
    nodes, after = (
        tuple(_with_names(each, names, copied) for each in converted_nodes)
        for converted_nodes in (written.nodes, written.after)
    )
    return EmittedGraph(Graph(names[graph.name], inputs, outputs, ()), nodes, after)


def names_in(converted_nodes: Iterable[ConvertedNode]) -> Iterator[str]:
    """Yield the names that nodes read or produce, and the names of emitted graphs and of their values."""
    for converted in converted_nodes:
        yield from converted.node.inputs
        yield from converted.node.outputs
        for written in emitted_graphs(converted.node):
            graph = written.graph
            yield from (graph.name, *(each.name for each in (*graph.inputs, *graph.outputs)))
            yield from names_in((*written.nodes, *written.after))


def count_nodes(converted_nodes: Sequence[ConvertedNode]) -> int:
    """Return the number of nodes, including the nodes in emitted graphs."""
    graphs = (each for written in converted_nodes for each in emitted_graphs(written.node))
    return len(converted_nodes) + sum(count_nodes(each.nodes) + count_nodes(each.after) for each in graphs)


def emitted_graphs(node: Node) -> list[EmittedGraph]:
    """Return the emitted graphs of a node."""
    return [each for each in node.attributes.values() if isinstance(each, EmittedGraph)]


def fill_node(proto: NodeProto, written: ConvertedNode, origin: NodeProto) -> None:
    """Fill an empty NodeProto from an emitted node.

    Subgraphs of the model are copied from `origin`, the NodeProto of the rewritten node, in which they are
    already converted.
    """
    node = written.node
    proto.op_type = node.op_type
    if node.domain:
        proto.domain = node.domain
    proto.input.extend(node.inputs)
    proto.output.extend(node.outputs)
    for name, value in node.attributes.items():
        _add_attribute(proto, name, value, written, origin)


def update_node(proto: NodeProto, written: ConvertedNode, original: Node) -> None:
    """Change the NodeProto of `original` to an emitted node; equal fields and attributes are not written."""
    node = written.node
    if proto.op_type != node.op_type:
        proto.op_type = node.op_type
    if original.domain != node.domain:
        proto.domain = node.domain
    if original.inputs != node.inputs:
        proto.input[:] = node.inputs
    if original.outputs != node.outputs:
        proto.output[:] = node.outputs
    kept = {name for name, value in node.attributes.items() if value is original.attributes.get(name)}
    before = len(proto.attribute)
    for name, value in node.attributes.items():
        if name not in kept:
            _add_attribute(proto, name, value, written, proto)
    # Removed last, because new attributes may copy subgraphs from the old attributes.
    for index in reversed(range(before)):
        if proto.attribute[index].name not in kept:
            del proto.attribute[index]


def _add_attribute(
    proto: NodeProto, name: str, value: Any, written: ConvertedNode, origin: NodeProto
) -> None:
    attribute = proto.attribute.add()
    if hasattr(value, "ref_attr_name"):
        attribute.CopyFrom(_converted_attribute(value, origin))
        attribute.name = name
        return
    kind = ATTRIBUTE_TYPES[written.operator.attributes[name].type]
    if kind.is_plain:
        write_attribute(attribute, name, kind, value)
        return
    attribute.name, attribute.type = name, kind.number
    if isinstance(value, Tensor):
        write_tensor(attribute.t, value)
    elif isinstance(value, EmittedGraph):
        _fill_graph(attribute.g, value, origin)
    else:
        getattr(attribute, kind.field).CopyFrom(value)


def _converted_attribute(value: AttributeProto, origin: NodeProto) -> AttributeProto:
    if not any(graphs_in(value)):
        return value
    return next((each for each in origin.attribute if each.name == value.name), value)


def _fill_graph(proto: GraphProto, written: EmittedGraph, origin: NodeProto) -> None:
    """Fill an empty GraphProto from an emitted graph, including an embedded subgraph of the model."""
    inner = None
    if written.graph.embedded is not None:
        inner = _converted_attribute(written.graph.embedded, origin).g
        if written.graph.embedded_names:
            inner = with_inputs_renamed(inner, dict(written.graph.embedded_names))
        proto.CopyFrom(inner)
        for field in (proto.node, proto.input, proto.output):
            del field[:]
        declared = {value.name for value in written.graph.inputs}
        proto.value_info.extend(value for value in inner.input if value.name not in declared)
    proto.name = proto.name or written.graph.name
    for values, field in ((written.graph.inputs, proto.input), (written.graph.outputs, proto.output)):
        for value in values:
            write_value_info(field.add(), value)
    for each in written.nodes:
        fill_node(proto.node.add(), each, origin)
    if inner is not None:
        proto.node.extend(inner.node)
    for each in written.after:
        fill_node(proto.node.add(), each, origin)


def write_value_info(proto: ValueInfoProto, value: Value) -> None:
    """Write name, type, doc string and metadata of a value into an empty ValueInfoProto."""
    proto.name = value.name
    fill_type(proto.type, value.type, value.dims)
    if value.origin is not None and value.origin.doc_string:
        proto.doc_string = value.origin.doc_string
    metadata = getattr(value.origin, "metadata_props", ())
    if metadata:
        proto.metadata_props.extend(metadata)
