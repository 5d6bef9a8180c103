"""Parts of a model that IR versions changed, collected in one pass over nodes, values and tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from opshift.model.attributes import ATTRIBUTE_TYPES, INT, graphs_in, tensors_in
from opshift.model.graphs import node_label, training_graphs
from opshift.model.messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
)
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, function_label
from opshift.registry.ir_versions import ir_versions
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry

MESSAGE_TYPES = frozenset({0, *(kind.number for kind in ATTRIBUTE_TYPES.values() if not kind.is_plain)})
"""Numbers of attribute types with messages; 0 is an undeclared type, which IR version 1 allows."""

BASE_ELEMENT_TYPES = frozenset(range(1, 16))
"""Numbers of the element types that every IR version has."""

ANY_ATTRIBUTE = frozenset({"*"})
"""Placeholder for operators without a definition: only their attributes with messages are examined."""


MessageT = TypeVar("MessageT")


class Located(NamedTuple, Generic[MessageT]):
    """A message, and the path of the graph or function that contains it; or a graph or function itself."""

    path: str
    proto: MessageT


class LocatedNode(NamedTuple):
    """A node, and the path of the graph or function that contains it."""

    path: str
    proto: NodeProto

    @property
    def place(self) -> str:
        """The place in messages."""
        return f"{self.path}, node {node_label(self.proto.name, self.proto.op_type, self.proto.output)}"


class LocatedAttribute(NamedTuple):
    """An attribute, its node, and the path of the graph or function that contains the node.

    For the default of a function attribute, `node` is `None`.
    """

    path: str
    node: NodeProto | None
    attribute: AttributeProto

    @property
    def place(self) -> str:
        """The place in messages."""
        owner = self.path if self.node is None else LocatedNode(self.path, self.node).place
        return f"{owner}, attribute {self.attribute.name!r}"


class LocatedInitializer(NamedTuple):
    """The tensor with the name of a dense or sparse initializer, and the path of its graph."""

    path: str
    tensor: TensorProto

    @property
    def place(self) -> str:
        """The place in messages."""
        return f"{self.path}, initializer {self.tensor.name!r}"


TensorOwner = LocatedAttribute | LocatedInitializer
"""Owner of a tensor."""


@dataclass
class Contents:
    """Everything in a model that an older IR version may lack.

    Attributes:
        oldest, newest: the range of IR versions; additions after `oldest`, up to `newest`, are collected.
        targets: the opsets to which domains are converted before the IR version is changed.
        graphs: the main graph, training graphs and all nested graphs, also those in functions.
        functions: the functions of the model.
        with_metadata, with_overload, with_devices: nodes with metadata, an overload, device configurations.
        calls: the nodes that call a function of the model.
        attributes: the attributes that hold tensors, graphs or types, or name an element type.
        tensors: tensors with metadata, external data or a newer element type, and their owners; the values
            and indices of sparse tensors are included.
        values: the ValueInfoProtos with metadata, a newer element type, or a type other than dense tensor.
    """

    model: ModelProto
    registry: Registry
    oldest: int
    newest: int
    targets: Mapping[str, int]
    graphs: list[Located[GraphProto]] = field(default_factory=list)
    functions: list[Located[FunctionProto]] = field(default_factory=list)
    with_metadata: list[LocatedNode] = field(default_factory=list)
    with_overload: list[LocatedNode] = field(default_factory=list)
    with_devices: list[LocatedNode] = field(default_factory=list)
    calls: list[LocatedNode] = field(default_factory=list)
    attributes: list[LocatedAttribute] = field(default_factory=list)
    tensors: list[tuple[TensorOwner, TensorProto]] = field(default_factory=list)
    values: list[Located[ValueInfoProto]] = field(default_factory=list)


def contents_of(
    model: ModelProto,
    registry: Registry,
    newest: int,
    *,
    targets: Mapping[str, int] = MappingProxyType({}),
    oldest: int = 0,
    operators: Collection[tuple[str, str]] | None = None,
) -> Contents:
    """Collect the parts of a model that IR versions after `oldest`, up to `newest`, added.

    Args:
        model: a ModelProto.
        registry: the operator definitions.
        newest: the newest IR version with additions to collect.
        targets: the opsets to which domains are converted before the IR version is changed.
        oldest: the newest IR version with additions that are ignored.
        operators: domain and op_type of every node, if known; nodes are skipped if no operator of these can
            hold anything to collect.
    """
    return _Collector(Contents(model, registry, oldest, newest, targets), operators).contents


class _Collector:
    """One pass over a model.

    The ModelProto of an older `onnx` package lacks the fields of newer IR versions.
    """

    def __init__(self, contents: Contents, operators: Collection[tuple[str, str]] | None) -> None:
        self.contents = contents
        model, features = contents.model, ir_versions().features
        self._functions = {(canonical_domain(function.domain), function.name) for function in model.functions}
        self._attribute_names: dict[str, frozenset[str]] = {}
        """Cache of the attribute names to examine, by operator of the default domain."""
        # The flags skip objects that cannot hold additions of these IR versions.
        self._collects_metadata = contents.newest >= features["metadata"]
        self._collects_devices = contents.newest >= features["device_configurations"]
        self._collects_external_data = contents.oldest < features["external_data"]
        types = ir_versions().element_types.values()
        self._collects_types = any(contents.oldest < version <= contents.newest for version in types)
        self._skips_nodes = operators is not None and self._are_irrelevant(operators)
        self._graph("graph", model.graph)
        for each in training_graphs(model):
            self._graph(each.path, each.graph)
        for function in model.functions:
            self._function(function)

    def _are_irrelevant(self, operators: Collection[tuple[str, str]]) -> bool:
        """Return whether no node of these operators can hold anything to collect."""
        if self._collects_metadata or self._functions:
            return False
        return not any(
            self._relevant_attributes(canonical_domain(domain), op_type) for domain, op_type in operators
        )

    def _function(self, function: FunctionProto) -> None:
        path = f"function {function_label(function)}"
        self.contents.functions.append(Located(path, function))
        for attribute in getattr(function, "attribute_proto", ()):
            self._attribute(LocatedAttribute(path, None, attribute))
        self._values(path, getattr(function, "value_info", ()))
        self._nodes(path, function.node)

    def _graph(self, path: str, graph: GraphProto) -> None:
        self.contents.graphs.append(Located(path, graph))
        self.contents.tensors += [
            (LocatedInitializer(path, tensor), tensor) for tensor in self._relevant_tensors(graph.initializer)
        ]
        for sparse in graph.sparse_initializer:
            parts = filter(self._is_relevant, (sparse.values, sparse.indices))
            self.contents.tensors += [(LocatedInitializer(path, sparse.values), part) for part in parts]
        for values in (graph.input, graph.output, graph.value_info):
            self._values(path, values)
        self._nodes(path, graph.node)

    def _values(self, path: str, values: Iterable[ValueInfoProto]) -> None:
        for value in values:
            is_plain = value.type.tensor_type.elem_type in BASE_ELEMENT_TYPES
            if not is_plain or (self._collects_metadata and getattr(value, "metadata_props", None)):
                self.contents.values.append(Located(path, value))

    def _relevant_tensors(self, tensors: Iterable[TensorProto]) -> Iterable[TensorProto]:
        # Like `_is_relevant`, but without a call for each tensor where metadata is not collected.
        if self._collects_metadata:
            return filter(self._is_relevant, tensors)
        if self._collects_external_data:
            return [
                tensor
                for tensor in tensors
                if tensor.data_type not in BASE_ELEMENT_TYPES or tensor.data_location
            ]
        return (
            [tensor for tensor in tensors if tensor.data_type not in BASE_ELEMENT_TYPES]
            if self._collects_types
            else ()
        )

    def _is_relevant(self, tensor: TensorProto) -> bool:
        """Return whether a tensor uses something that the oldest IR version lacks."""
        if tensor.data_type not in BASE_ELEMENT_TYPES or tensor.data_location:
            return True
        return self._collects_metadata and bool(getattr(tensor, "metadata_props", None))

    def _nodes(self, path: str, nodes: Iterable[NodeProto]) -> None:
        if self._skips_nodes:
            return
        cached = self._attribute_names
        if self._collects_metadata:
            self._annotations(path, nodes)
        for node in nodes:
            names = None if node.domain else cached.get(node.op_type)
            if names is None:
                names = self._look_up(path, node)
            if names:
                self._attributes(path, node, names)

    def _annotations(self, path: str, nodes: Iterable[NodeProto]) -> None:
        """Collect nodes with fields that were added with metadata or later."""
        contents = self.contents
        has_functions = bool(self._functions)
        for node in nodes:
            if getattr(node, "metadata_props", None):
                contents.with_metadata.append(LocatedNode(path, node))
            if has_functions and getattr(node, "overload", None):
                contents.with_overload.append(LocatedNode(path, node))
            if self._collects_devices and getattr(node, "device_configurations", None):
                contents.with_devices.append(LocatedNode(path, node))

    def _look_up(self, path: str, node: NodeProto) -> frozenset[str]:
        """Return the names of attributes to examine, and collect the node if it is a call.

        The result is cached for operators of the default domain only; calls must be collected each time.
        """
        domain = canonical_domain(node.domain)
        if (domain, node.op_type) in self._functions:
            self.contents.calls.append(LocatedNode(path, node))
            return ANY_ATTRIBUTE
        names = self._relevant_attributes(domain, node.op_type)
        if not node.domain:
            self._attribute_names[node.op_type] = names
        return names

    def _relevant_attributes(self, domain: str, op_type: str) -> frozenset[str]:
        operator = self.contents.registry.operator(op_type) if domain == DEFAULT_DOMAIN else None
        return ANY_ATTRIBUTE if operator is None else _attributes_of_interest(operator.versions)

    def _attributes(self, path: str, node: NodeProto, names: frozenset[str]) -> None:
        for attribute in node.attribute:
            kind = attribute.type
            if kind in MESSAGE_TYPES or (kind == INT and attribute.name in names):
                self._attribute(LocatedAttribute(path, node, attribute))

    def _attribute(self, held: LocatedAttribute) -> None:
        self.contents.attributes.append(held)
        tensors = filter(self._is_relevant, tensors_in(held.attribute))
        self.contents.tensors += [(held, tensor) for tensor in tensors]
        for graph in graphs_in(held.attribute):
            holder = "" if held.node is None else held.node.name or held.node.op_type
            self._graph(f"{held.path} / {holder}.{held.attribute.name}", graph)


@lru_cache(maxsize=4096)
def _attributes_of_interest(versions: tuple[OperatorVersion, ...]) -> frozenset[str]:
    """Return the attributes of an operator that hold messages or name an element type, in any version."""
    names: set[str] = set()
    for version in versions:
        names.update(output.type_attribute for output in version.outputs if output.type_attribute)
        names.update(
            name
            for name, attribute in version.attributes.items()
            if not ATTRIBUTE_TYPES[attribute.type].is_plain
        )
    return frozenset(names)
