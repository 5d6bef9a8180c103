"""Read-only views of nodes, attributes and constants, for nodes of the model and emitted nodes.

A traced node also records which attribute values its steps read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from opshift.model.attributes import read_attribute
from opshift.model.element_types import round_to_float32
from opshift.model.shared_data import FrozenRecord

if TYPE_CHECKING:
    from opshift.model.messages import AttributeProto, NodeProto, ValueInfoProto


class Node:
    """Read-only view of a node. Nothing enforces this: call `with_` for a changed copy, and never assign.

    Unchanged attributes of a model's node are its AttributeProto messages. Attributes written by an adapter
    are Python values: int, float, bytes, str, sequences of these, `Tensor` or `Graph`.
    """

    __slots__ = ("_attributes", "_proto", "domain", "inputs", "op_type", "outputs")

    def __init__(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: Mapping[str, Any] | None,
        domain: str = "",
        proto: NodeProto | None = None,
    ) -> None:
        self.op_type = op_type
        self.domain = domain
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self._attributes = attributes
        self._proto = proto

    @classmethod
    def from_proto(cls, proto: NodeProto) -> Node:
        """Return a view of a NodeProto."""
        return cls(proto.op_type, proto.input[:], proto.output[:], None, proto.domain, proto)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Return the attributes by name."""
        # Most nodes are never rewritten, so attributes are read from the NodeProto on first use.
        if self._attributes is None:
            assert self._proto is not None
            self._attributes = {each.name: each for each in self._proto.attribute[:]}
        return self._attributes

    @property
    def duplicate_attribute(self) -> str | None:
        """Return the name of an attribute that occurs more than once in the NodeProto, or `None`."""
        if self._proto is None or len(self._proto.attribute) == len(self.attributes):
            return None
        names: list[str] = [each.name for each in self._proto.attribute]
        return next(name for name in names if names.count(name) > 1)

    @property
    def has_attribute_references(self) -> bool:
        """Return whether an attribute refers to an attribute of the enclosing function (`ref_attr_name`)."""
        found = self.attributes
        return bool(found) and any(getattr(value, "ref_attr_name", "") for value in found.values())

    @property
    def is_original(self) -> bool:
        """Return whether this is an unchanged node of the model."""
        return self._proto is not None

    def copy_proto(self) -> NodeProto:
        """Return a copy of the NodeProto of this view."""
        assert self._proto is not None
        copy = type(self._proto)()
        copy.CopyFrom(self._proto)
        return copy

    def with_(self, **changes: Any) -> Node:
        """Return a copy with some of `op_type`, `inputs`, `outputs`, `attributes` and `domain` replaced."""
        return Node(
            changes.get("op_type", self.op_type),
            changes.get("inputs", self.inputs),
            changes.get("outputs", self.outputs),
            changes["attributes"] if "attributes" in changes else self.attributes,  # noqa: SIM401
            changes.get("domain", self.domain),
        )

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute, or `default` if the node does not have it.

        Strings are bytes. Floats are rounded to float32, the type of FLOAT attributes. The default in the
        operator's schema is not consulted.

        Raises:
            CannotConvert: the attribute refers to an attribute of the enclosing function.
        """
        found = self.attributes.get(name, default)
        if hasattr(found, "ref_attr_name"):
            return read_attribute(found)
        if isinstance(found, str) and name in self.attributes:  # a Python value that an adapter wrote
            return found.encode()
        return round_to_float32(found) if isinstance(found, float) else found

    def unread_attribute(self, name: str) -> Any:
        """Return an attribute as stored: an AttributeProto or a Python value; `None` if the node lacks it."""
        return self.attributes.get(name)

    def without(self, *names: str) -> dict[str, Any]:
        """Return the attributes, as stored, except those in `names`."""
        return {name: value for name, value in self.attributes.items() if name not in names}

    def input(self, position: int) -> str:
        """Return the name of an input, or `""` if it is omitted."""
        return self.inputs[position] if position < len(self.inputs) else ""

    def output(self, position: int) -> str:
        """Return the name of an output, or `""` if it is omitted."""
        return self.outputs[position] if position < len(self.outputs) else ""


class Emitted(NamedTuple):
    """Node that an adapter emits, and the opset of the node's domain for which it is written."""

    node: Node
    opset: int
    is_replacement: bool
    """Whether the node is the replacement of the original, and inherits its name, doc string and metadata."""


Dims = tuple[int | None, ...] | None
"""A shape with `None` for each unknown dimension; `None` if the rank is unknown."""


class Value(NamedTuple):
    """An input or output of a subgraph; its type is an element type or a type string.

    `origin` is a declaration in the model with the doc string and the metadata of the value, if there is one.
    """

    name: str
    type: str
    dims: Dims
    origin: ValueInfoProto | None = None


class Graph(FrozenRecord):
    """A subgraph emitted as an attribute. Each node is converted further, from the opset of the node."""

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[Emitted, ...]
    embedded: AttributeProto | None = None
    """Attribute with a subgraph of the model, if any: `nodes` produce its inputs, `nodes_after` follow it."""
    nodes_after: tuple[Emitted, ...] = ()
    embedded_names: tuple[tuple[str, str], ...] = ()
    """Inputs of the embedded subgraph to rename: the name in the subgraph, and the name in this graph."""


class Tensor(NamedTuple):
    """A constant: element type name, dimensions, and values in row-major order.

    Values are Python numbers or booleans, or bytes for strings.
    """

    element_type: str
    dims: tuple[int, ...]
    values: tuple[Any, ...]

    @property
    def scalar(self) -> Any:
        """Return the value of a tensor with one element.

        Raises:
            ValueError: the tensor has no element or more than one.
        """
        (value,) = self.values
        return value


def serialized_attributes(proto: NodeProto) -> Sequence[bytes]:
    """Return the serialized attributes of a NodeProto, in order."""
    attributes = proto.attribute
    return [each.SerializeToString() for each in attributes[:]] if attributes else ()


class Move(NamedTuple):
    """Attribute that becomes a constant: its name, the constant's name, and `rank` of `Rewriter.constant`."""

    attribute: str
    constant: str
    rank: int | None


class AttributeComparison(NamedTuple):
    """Comparison of an attribute with a value, made by a step, and its result."""

    attribute: str
    value: object
    is_same: bool


class AttributeTrace:
    """Record of the attributes that the conversion steps of a node read, moved to constants, or compared.

    An attribute that a step drops, moves or compares does not count as read: nodes with another value share
    the cached rewrite if all comparisons have the same results.
    """

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.moves: list[Move] = []
        self.comparisons: list[AttributeComparison] = []


class TracedNode(Node):
    """Node that records the use of its attribute values, but not tests for the presence of an attribute."""

    __slots__ = ("_raw", "trace")

    def __init__(self, node: Node, raw: Mapping[str, Any], trace: AttributeTrace) -> None:
        attributes = _TracedAttributes(raw, trace.reads)
        super().__init__(node.op_type, node.inputs, node.outputs, attributes, node.domain, node._proto)
        self._raw = raw
        self.trace = trace

    def with_(self, **changes: Any) -> Node:
        """Return a copy with some fields replaced, which records into the same trace."""
        attributes = changes.setdefault("attributes", self._raw)
        raw = attributes._raw if isinstance(attributes, _TracedAttributes) else attributes
        return TracedNode(super().with_(**changes), raw, self.trace)

    def without(self, *names: str) -> dict[str, Any]:
        """Return the attributes except those in `names`, without recording reads."""
        return {name: value for name, value in self._raw.items() if name not in names}

    def unread_attribute(self, name: str) -> Any:
        """Return an attribute without recording a read."""
        return self._raw.get(name)


class _TracedAttributes(Mapping[str, Any]):
    """Attributes by name. Reads of unchanged attributes of the model are recorded."""

    def __init__(self, raw: Mapping[str, Any], reads: set[str]) -> None:
        self._raw = raw
        self._reads = reads

    def __getitem__(self, name: str) -> Any:
        found = self._raw[name]
        if hasattr(found, "ref_attr_name"):
            self._reads.add(found.name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)
