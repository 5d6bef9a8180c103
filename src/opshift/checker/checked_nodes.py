"""Views of nodes, attributes, values and tensors for checker rules, with their places in the model."""

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import NamedTuple

from opshift.checker.checked_model import CheckedModel
from opshift.checker.containers import CheckedContainer, CheckedGraph
from opshift.model.attributes import TYPE_BY_FIELD
from opshift.model.element_types import BY_NUMBER, ElementType
from opshift.model.graphs import node_label
from opshift.model.messages import (
    AttributeProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TrainingInfoProto,
    ValueInfoProto,
)
from opshift.model.offloaded_tensors import ExternalData, raw_size, read_external_data
from opshift.model.tensors import DATA_FIELDS
from opshift.registry.models import Attribute as Declared

MAX_KEY_STRING = 64
"""Maximum length in bytes of a string in a cache key: bounds the memory of the cache."""


class CheckedNode:
    """A NodeProto, with its operator version or function, or the reason why its operator does not resolve."""

    __slots__ = ("container", "error", "function", "inputs", "operator", "outputs", "proto")

    def __init__(self, proto: NodeProto, container: CheckedContainer) -> None:
        self.proto = proto
        self.container = container
        self.operator, self.function, self.error = container.resolve(proto)
        self.inputs: list[str] = proto.input[:]
        self.outputs: list[str] = proto.output[:]

    @property
    def location(self) -> str:
        """The place of the node in the model, for findings."""
        labelled = node_label(self.proto.name, self.proto.op_type, self.outputs)
        return f"{self.container.location}, node {labelled}"


class CheckedCall(CheckedNode):
    """A node for rules that do not read value names: nodes with the same cache key have the same problems."""

    __slots__ = ()

    @property
    def cache_key(self) -> Hashable:
        """Cache key: the properties that rules for this class read."""
        proto = self.proto
        return (
            self.container.imports,
            (proto.domain, proto.op_type, proto.overload),
            tuple(map(bool, self.inputs)),
            tuple(map(bool, self.outputs)),
            tuple(attribute.name for attribute in proto.attribute),
            self.container.key is None,
        )


class DevicePlacement(CheckedNode):
    """A node with device configurations, for the rules about them."""

    __slots__ = ()


class CheckedAttribute:
    """An AttributeProto of a node, and the names of its fields with a value."""

    __slots__ = ("fields", "node", "proto")

    def __init__(self, proto: AttributeProto, node: CheckedNode) -> None:
        self.proto = proto
        self.node = node
        self.fields = [field.name for field, _ in proto.ListFields() if field.name in TYPE_BY_FIELD]

    @property
    def cache_key(self) -> Hashable:
        """Cache key: the properties that rules for this class read; `None` if it would be large or slow."""
        proto, operator = self.proto, self.node.operator
        if not self.is_plain or proto.ref_attr_name or proto.doc_string or "strings" in self.fields:
            return None
        declared = operator.attributes.get(proto.name) if operator else None
        value = None
        # Rules read only strings, element type numbers such as `to` of Cast, and restricted values.
        is_read = declared is not None and restricts_values(declared)
        is_read = is_read or (operator is not None and proto.name in operator.type_codes)
        if "s" in self.fields or (self.fields and is_read):
            content = getattr(proto, self.fields[0])
            value = content if isinstance(content, int | float | bytes) else tuple(content)
            if isinstance(value, bytes) and len(value) > MAX_KEY_STRING:
                return None
        # A function lives as long as the model, so its id stays unique.
        return (id(operator), id(self.node.function), proto.name, proto.type, *self.fields, value)

    @property
    def is_plain(self) -> bool:
        """Whether the attribute has no value, or only numbers or strings, in a single field."""
        return not self.fields or (len(self.fields) == 1 and TYPE_BY_FIELD[self.fields[0]].is_plain)

    @property
    def location(self) -> str:
        """The place of the attribute in the model, for findings."""
        return f"{self.node.location}, attribute {self.proto.name!r}"


class CheckedValue(NamedTuple):
    """A ValueInfoProto: an input or output of a graph, or an entry of `value_info`."""

    proto: ValueInfoProto
    container: CheckedContainer
    role: str

    @property
    def location(self) -> str:
        """The place of the value in the model, for findings."""
        return f"{self.container.location}, {self.role} {self.proto.name!r}"


class CheckedSparseTensor(NamedTuple):
    """A SparseTensorProto, and the graph or attribute that contains it."""

    proto: SparseTensorProto
    owner: CheckedContainer | CheckedAttribute
    role: str
    model: CheckedModel

    @property
    def location(self) -> str:
        """The place of the tensor in the model, for findings."""
        return f"{self.owner.location}, {self.role}{_quoted(self.proto.values.name)}"


class CheckedTensor(NamedTuple):
    """A TensorProto, and the graph, attribute or sparse tensor that contains it."""

    proto: TensorProto
    owner: CheckedContainer | CheckedAttribute | CheckedSparseTensor
    role: str
    model: CheckedModel

    @property
    def location(self) -> str:
        """The place of the tensor in the model, for findings."""
        return f"{self.owner.location}, {self.role}{_quoted(self.proto.name)}"

    @property
    def kind(self) -> ElementType | None:
        """The element type; `None` if `data_type` is invalid."""
        return BY_NUMBER.get(self.proto.data_type)


class InternalTensor(CheckedTensor):
    """A tensor whose elements are in the model."""

    @cached_property
    def filled_fields(self) -> dict[str, int]:
        """The data fields with elements, and the number of entries, or of bytes for `raw_data`."""
        sizes = {name: len(getattr(self.proto, name)) for name in DATA_FIELDS}
        sizes["raw_data"] = raw_size(self.proto) or 0
        filled = {name: size for name, size in sizes.items() if size}
        # Readers prefer raw_data to the typed fields, even if it is empty.
        if filled and self.proto.HasField("raw_data"):
            filled["raw_data"] = sizes["raw_data"]
        return filled


class ExternalTensor(CheckedTensor):
    """A tensor with elements in a separate file."""

    @cached_property
    def data(self) -> ExternalData:
        """The entries of `external_data`."""
        return read_external_data(self.proto)


class CheckedTraining(NamedTuple):
    """A TrainingInfoProto, its position in the model, the main graph, and the training graphs by field."""

    proto: TrainingInfoProto
    position: int
    main: CheckedGraph
    graphs: Mapping[str, CheckedGraph]

    @property
    def location(self) -> str:
        """The place of the message in the model, for findings, such as `training_info[0]`."""
        return f"training_info[{self.position}]"


def restricts_values(declared: Declared) -> bool:
    """Return whether a definition restricts the values of an attribute."""
    return declared.values is not None or declared.minimum is not None or declared.maximum is not None


def _quoted(name: str) -> str:
    return f" {name!r}" if name else ""
