"""Views of nodes, attributes, values and tensors for checker rules, with their places in the model."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from opshift.checker.checked_model import CheckedModel
from opshift.checker.containers import CheckedContainer, CheckedGraph
from opshift.checker.findings import repeated
from opshift.model.attributes import TYPE_BY_FIELD
from opshift.model.element_types import BY_NUMBER, ElementType, element_bits
from opshift.model.graphs import NodeRecord, node_label
from opshift.model.messages import (
    AttributeProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TrainingInfoProto,
    ValueInfoProto,
)
from opshift.model.node_key import NodeKey, has_small_tensors, is_small_key
from opshift.model.offloaded_tensors import ExternalData, raw_size, read_external_data
from opshift.model.operator_ids import overload_of
from opshift.model.tensors import DATA_FIELDS
from opshift.registry.models import Attribute as Declared

UNEVEN_TYPES = frozenset(number for number, kind in BY_NUMBER.items() if element_bits(kind) == 6)
"""Numbers of the 6-bit element types, whose tensors may have unused bits."""


class CheckedNode:
    """A NodeProto, with its operator version, function or resolution error; all are `None` if unknown."""

    __slots__ = ("container", "error", "function", "inputs", "operator", "outputs", "proto", "record")

    def __init__(self, record: NodeRecord, proto: NodeProto, container: CheckedContainer) -> None:
        self.record = record
        self.proto = proto
        self.container = container
        _, domain, op_type, self.inputs, self.outputs = record
        self.operator, self.function, self.error = container.resolve(domain, op_type, overload_of(proto))

    @property
    def location(self) -> str:
        """Place of the node, for findings."""
        labelled = node_label(self.proto.name, self.proto.op_type, self.outputs)
        return f"{self.container.location}, node {labelled}"

    @property
    def is_text(self) -> bool:
        """Whether all names are `str`, not `bytes`."""
        _, domain, op_type, inputs, outputs = self.record
        try:
            # This runs for every node: joining the names checks the types of all names at once.
            "".join((self.proto.name, domain, op_type, *inputs, *outputs))
        except TypeError:
            return False
        return True

    @property
    def is_regular(self) -> bool:
        """Whether it is certain that no rule for this class finds a problem.

        All inputs must be known, all outputs new, and all names text; and the node must have no doc string
        and no repeated metadata keys. Omitted inputs and outputs have no effect.
        """
        if not self.is_text:
            return False
        proto, outputs, known = self.proto, _without_omitted(self.outputs), self.container.scope.defined_names
        parent = self.container.parent
        return (
            known.issuperset(_without_omitted(self.inputs))
            and known.isdisjoint(outputs)
            and (len(outputs) == 1 or len(set(outputs)) == len(outputs))
            and (parent is None or not any(map(parent.scope.is_visible, outputs)))
            and not proto.doc_string
            and not any(repeated(each.key for each in proto.metadata_props))
        )


class CheckedCall(CheckedNode):
    """A node for rules that do not read value names: nodes with the same key have the same problems."""

    __slots__ = ()

    @property
    def key(self) -> NodeKey | None:
        """Node key; `None` for a large key, an overload, or attributes that are neither plain nor small."""
        operator, proto = self.operator, self.proto
        is_plain = operator.has_plain_attributes if operator is not None else not proto.attribute
        if overload_of(proto) or not (is_plain or has_small_tensors(proto)):
            return None
        found = self.container.scope.node_key_of(self.record, proto)
        # Large attributes seldom repeat, so hashing and keeping them would cost more than it saves.
        return found if is_small_key(found) else None


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
    def is_plain(self) -> bool:
        """Whether the attribute has no value, or only numbers or strings, in a single field."""
        return not self.fields or (len(self.fields) == 1 and TYPE_BY_FIELD[self.fields[0]].is_plain)

    @property
    def holds_graphs(self) -> bool:
        """Whether the attribute contains a graph or a list of graphs."""
        return "g" in self.fields or "graphs" in self.fields

    @property
    def location(self) -> str:
        """Place of the attribute, for findings."""
        return f"{self.node.location}, attribute {self.proto.name!r}"


class CheckedValue(NamedTuple):
    """A ValueInfoProto: an input or output of a graph, or an entry of `value_info`."""

    proto: ValueInfoProto
    container: CheckedContainer
    role: str

    @property
    def location(self) -> str:
        """Place of the value, for findings."""
        return f"{self.container.location}, {self.role} {self.proto.name!r}"

    @property
    def is_signature(self) -> bool:
        """Whether the value is an input or output of the main graph."""
        return self.container.is_top and self.container.parent is None and self.role != "value"

    @property
    def cache_key(self) -> Hashable:
        """Cache key; `None` for a value with documentation or metadata, or without a name of type `str`."""
        proto = self.proto
        if not (proto.name and _is_text(proto.name)) or proto.doc_string or proto.metadata_props:
            return None
        return self.is_signature, proto.HasField("type") and proto.type.SerializeToString()


class CheckedSparseTensor(NamedTuple):
    """A SparseTensorProto, and the graph or attribute that contains it."""

    proto: SparseTensorProto
    owner: CheckedContainer | CheckedAttribute
    role: str
    model: CheckedModel

    @property
    def location(self) -> str:
        """Place of the tensor, for findings."""
        return f"{self.owner.location}, {self.role}{_quoted_name(self.proto.values.name)}"


class CheckedTensor(NamedTuple):
    """A TensorProto, and the graph, attribute or sparse tensor that contains it."""

    proto: TensorProto
    owner: CheckedContainer | CheckedAttribute | CheckedSparseTensor
    role: str
    model: CheckedModel

    @property
    def location(self) -> str:
        """Place of the tensor, for findings."""
        return f"{self.owner.location}, {self.role}{_quoted_name(self.proto.name)}"

    @property
    def kind(self) -> ElementType | None:
        """The element type; `None` if `data_type` is invalid."""
        return BY_NUMBER.get(self.proto.data_type)

    @property
    def cache_key(self) -> Hashable:
        """Cache key; `None` for segments, unknown sizes, or texts, elements or files that rules read."""
        proto = self.proto
        if not _is_text(proto.name) or proto.doc_string or proto.metadata_props or proto.string_data:
            return None
        if proto.external_data or proto.HasField("segment") or proto.data_type in UNEVEN_TYPES:
            return None
        size = raw_size(proto)
        # No key for an offloaded payload of a field other than `raw_data`: only its store knows the size.
        if size is None:
            return None
        # Besides the size, store the presence: rules distinguish empty `raw_data` from absent `raw_data`.
        stored = proto.HasField("raw_data"), size, *[len(getattr(proto, name)) for name in DATA_FIELDS]
        return proto.data_location, proto.data_type, tuple(proto.dims[:]), *stored


class InternalTensor(CheckedTensor):
    """A tensor whose elements are in the model."""

    @cached_property
    def filled_fields(self) -> dict[str, int]:
        """The data fields with elements, and the number of entries, or of bytes for `raw_data`."""
        sizes = {name: len(getattr(self.proto, name)) for name in DATA_FIELDS}
        sizes["raw_data"] = raw_size(self.proto) or 0
        filled = {name: size for name, size in sizes.items() if size}
        # Empty raw_data counts, too, if another field is filled: readers prefer it to the typed fields.
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


def _quoted_name(name: str) -> str:
    return f" {name!r}" if name else ""


def _without_omitted(names: Sequence[str]) -> Sequence[str]:
    # Few nodes omit values: copy the names only then.
    return names if "" not in names else [*filter(None, names)]


def _is_text(name: object) -> bool:
    return isinstance(name, str)
