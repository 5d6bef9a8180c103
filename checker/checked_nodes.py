"""Views of nodes, attributes, values and tensors for rules: each message with its place in the model."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from opshift.checker.containers import CheckedContainer, CheckedModel
from opshift.model.attributes import TYPE_BY_FIELD
from opshift.model.element_types import BY_NUMBER
from opshift.model.external_data import read_external_data
from opshift.model.graphs import node_label
from opshift.model.messages import (
    AttributeProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TrainingInfoProto,
    ValueInfoProto,
)
from opshift.model.offloaded_tensors import with_payload
from opshift.model.tensors import DATA_FIELDS, element_count
from opshift.registry.models import Attribute as Declared

MAX_KEY_STRING = 64
"""Maximum length in bytes of a string in a cache key: bounds the memory of the cache."""


class CheckedNode:
    """A NodeProto.

    Attributes:
        operator: its operator version, if the registry has it.
        function: the FunctionProto that it calls.
        error: the reason why its operator does not resolve.
    """

    __slots__ = ("container", "error", "function", "inputs", "operator", "outputs", "proto")

    def __init__(self, proto: NodeProto, container: CheckedContainer) -> None:
        self.proto = proto
        self.container = container
        self.operator, self.function, self.error = container.resolve(proto)
        self.inputs: list[str] = proto.input[:]
        self.outputs: list[str] = proto.output[:]

    @property
    def place(self) -> str:
        """The graph or function, and the node in it."""
        labelled = node_label(self.proto.name, self.proto.op_type, self.outputs)
        return f"{self.container.place}, node {labelled}"


class CheckedCall(NamedTuple):
    """A node without the names of its values: nodes with the same cache key have the same problems."""

    node: CheckedNode

    @property
    def place(self) -> str:
        """The graph or function, and the node in it."""
        return self.node.place

    @property
    def cache_key(self) -> Hashable:
        """Cache key: the properties that its rules read."""
        node = self.node
        proto = node.proto
        return (
            node.container.imports_id,
            (proto.domain, proto.op_type, proto.overload),
            tuple(map(bool, node.inputs)),
            tuple(map(bool, node.outputs)),
            tuple(attribute.name for attribute in proto.attribute),
            node.container.key is None,
        )


class DevicePlacement(NamedTuple):
    """A node with device configurations."""

    node: CheckedNode

    @property
    def place(self) -> str:
        """The graph or function, and the node in it."""
        return self.node.place


class CheckedAttribute:
    """An AttributeProto of a node.

    Attributes:
        fields: the names of the fields with a value.
    """

    __slots__ = ("fields", "node", "proto")

    def __init__(self, proto: AttributeProto, node: CheckedNode) -> None:
        self.proto = proto
        self.node = node
        self.fields = [field.name for field, _ in proto.ListFields() if field.name in TYPE_BY_FIELD]

    @property
    def cache_key(self) -> Hashable:
        """Cache key: the properties that its rules read; `None` if a key would be large or costly."""
        proto, operator = self.proto, self.node.operator
        if not self.is_plain or proto.ref_attr_name or "strings" in self.fields:
            return None
        declared = operator.attributes.get(proto.name) if operator else None
        value = None
        # Rules read values of strings, and of attributes with a restricted set of values.
        if "s" in self.fields or (self.fields and declared is not None and restricts_values(declared)):
            content = getattr(proto, self.fields[0])
            value = content if isinstance(content, int | float | bytes) else tuple(content)
            if isinstance(value, bytes) and len(value) > MAX_KEY_STRING:
                return None
        return (id(operator), proto.name, proto.type, *self.fields, value)

    @property
    def is_plain(self) -> bool:
        """Whether its value consists of numbers or strings, not of messages, or it has no value."""
        return not self.fields or (len(self.fields) == 1 and TYPE_BY_FIELD[self.fields[0]].is_plain)

    @property
    def place(self) -> str:
        """The node, and the attribute in it."""
        return f"{self.node.place}, attribute {self.proto.name!r}"


class CheckedValue(NamedTuple):
    """A ValueInfoProto: an input or output of a graph, or an entry of `value_info`."""

    proto: ValueInfoProto
    container: CheckedContainer
    role: str

    @property
    def place(self) -> str:
        """The graph or function, and the value in it."""
        return f"{self.container.place}, {self.role} {self.proto.name!r}"


class CheckedSparseTensor(NamedTuple):
    """A SparseTensorProto, and the graph or attribute that holds it."""

    proto: SparseTensorProto
    owner: CheckedContainer | CheckedAttribute
    role: str
    model: CheckedModel

    @property
    def place(self) -> str:
        """The place of the owner, and the tensor in it."""
        return f"{self.owner.place}, {self.role}{_quoted(self.proto.values.name)}"


class CheckedTensor(NamedTuple):
    """A TensorProto, and the graph, attribute or sparse tensor that holds it."""

    proto: TensorProto
    owner: CheckedContainer | CheckedAttribute | CheckedSparseTensor
    role: str
    model: CheckedModel

    @property
    def place(self) -> str:
        """The place of the owner, and the tensor in it."""
        return f"{self.owner.place}, {self.role}{_quoted(self.proto.name)}"


class InternalTensor:
    """A tensor with elements in the model.

    Attributes:
        kind: its element type, if it is valid.
        count: the number of elements of its shape; `None` if the shape has a negative dimension.
        filled_fields: the fields that hold elements, each with the number of its entries or bytes.
    """

    __slots__ = ("count", "filled_fields", "kind", "proto", "tensor")

    def __init__(self, tensor: CheckedTensor) -> None:
        proto = with_payload(tensor.proto)
        self.tensor = tensor
        self.proto = proto
        self.kind = BY_NUMBER.get(proto.data_type)
        self.count = element_count(proto)
        sizes = {name: len(getattr(proto, name)) for name in DATA_FIELDS}
        self.filled_fields = {name: size for name, size in sizes.items() if size}
        # Readers prefer raw_data to the typed fields, even if it is empty.
        if self.filled_fields and proto.HasField("raw_data"):
            self.filled_fields["raw_data"] = sizes["raw_data"]

    @property
    def place(self) -> str:
        """The place of the owner, and the tensor in it."""
        return self.tensor.place


class ExternalTensor:
    """A tensor with elements in a separate file.

    Attributes:
        data: its external data entries.
    """

    __slots__ = ("data", "proto", "tensor")

    def __init__(self, tensor: CheckedTensor) -> None:
        self.tensor = tensor
        self.proto = with_payload(tensor.proto)
        self.data = read_external_data(self.proto)

    @property
    def place(self) -> str:
        """The place of the owner, and the tensor in it."""
        return self.tensor.place


class CheckedTraining(NamedTuple):
    """A TrainingInfoProto, and its position in the model."""

    proto: TrainingInfoProto
    position: int
    model: CheckedModel

    @property
    def place(self) -> str:
        """The entry of `training_info`."""
        return f"training_info[{self.position}]"


def restricts_values(declared: Declared) -> bool:
    """Return whether a definition restricts the values of an attribute."""
    return declared.values is not None or declared.minimum is not None or declared.maximum is not None


def _quoted(name: str) -> str:
    return f" {name!r}" if name else ""
