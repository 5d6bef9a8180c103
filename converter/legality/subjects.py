"""What lies in graphs and functions, as rules see it: each message with what it lies in."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

from opshift.adapters.elsewhere import with_elements
from opshift.converter.legality.containers import Container, Model
from opshift.converter.survey import label
from opshift.registry.element_types import BY_NUMBER
from opshift.registry.models import Attribute as Declared

DATA_FIELDS = (
    "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data", "raw_data",
)  # fmt: skip
"""The fields of a TensorProto that hold elements."""
LONGEST_FORM = 64
"""The length of texts that verdicts are remembered for."""

VALUE_FIELDS = {
    "f": 1, "i": 2, "s": 3, "t": 4, "g": 5, "floats": 6, "ints": 7, "strings": 8, "tensors": 9,
    "graphs": 10, "sparse_tensor": 11, "sparse_tensors": 12, "tp": 13, "type_protos": 14,
}  # fmt: skip
"""The fields of an AttributeProto that hold a value, each with the type that it is for."""
_PLAIN_FIELDS = frozenset(("f", "i", "s", "floats", "ints", "strings"))


class Node:
    """A NodeProto.

    Attributes:
        operator: what it is, if the registry knows it.
        function: the FunctionProto that it calls.
        error: why it is neither, if that is wrong.
    """

    __slots__ = ("container", "error", "function", "inputs", "operator", "outputs", "proto")

    def __init__(self, proto: Any, container: Container) -> None:
        self.proto = proto
        self.container = container
        self.operator, self.function, self.error = container.resolve(proto)
        self.inputs: list[str] = proto.input[:]
        self.outputs: list[str] = proto.output[:]

    @property
    def place(self) -> str:
        """The graph or function, and the node in it."""
        named = label(self.proto.name, self.proto.op_type, self.outputs)
        return f"{self.container.place}, node {named}"


class Call(NamedTuple):
    """What a node says apart from the names of its values: it holds for every node of the same form."""

    node: Node

    @property
    def place(self) -> str:
        """The graph or function, and the node in it."""
        return self.node.place

    @property
    def form(self) -> Hashable:
        """What the verdict on it depends on."""
        node = self.node
        proto = node.proto
        return (
            node.container.imports,
            (proto.domain, proto.op_type, proto.overload),
            tuple(map(bool, node.inputs)),
            tuple(map(bool, node.outputs)),
            tuple(each.name for each in proto.attribute),
            node.container.key is None,
        )


class Placement(NamedTuple):
    """What a node says of the devices that it is to run on."""

    node: Node

    @property
    def place(self) -> str:
        """The graph or function, and the node in it."""
        return self.node.place


class Attribute:
    """An AttributeProto of a node.

    Attributes:
        fields: the names of the fields with a value.
    """

    __slots__ = ("fields", "node", "proto")

    def __init__(self, proto: Any, node: Node) -> None:
        self.proto = proto
        self.node = node
        self.fields = [field.name for field, _ in proto.ListFields() if field.name in VALUE_FIELDS]

    @property
    def form(self) -> Hashable:
        """What the verdict on it depends on; `None` if that is much."""
        proto, operator = self.proto, self.node.operator
        if not self.is_plain or proto.ref_attr_name or "strings" in self.fields:
            return None
        declared = operator.attributes.get(proto.name) if operator else None
        told = None
        if "s" in self.fields or (self.fields and declared is not None and is_bounded(declared)):
            found = getattr(proto, self.fields[0])
            told = found if isinstance(found, int | float | bytes) else tuple(found)
            if isinstance(told, bytes) and len(told) > LONGEST_FORM:
                return None
        return (id(operator), proto.name, proto.type, *self.fields, told)

    @property
    def is_plain(self) -> bool:
        """Whether it holds no messages: numbers and texts, or nothing."""
        return not self.fields or (len(self.fields) == 1 and self.fields[0] in _PLAIN_FIELDS)

    def held(self, single: str, several: str) -> list[Any]:
        """The messages in two fields, one of which holds one, the other any number."""
        alone = [getattr(self.proto, single)] if single in self.fields else []
        return [*alone, *getattr(self.proto, several)]

    @property
    def place(self) -> str:
        """The node, and the attribute in it."""
        return f"{self.node.place}, attribute {self.proto.name!r}"


class Value(NamedTuple):
    """A ValueInfoProto: a graph's input or output, or what it says of another value."""

    proto: Any
    container: Container
    role: str

    @property
    def place(self) -> str:
        """The graph or function, and the value in it."""
        return f"{self.container.place}, {self.role} {self.proto.name!r}"


class Tensor(NamedTuple):
    """A TensorProto, and what it lies in."""

    proto: Any
    owner: Container | Attribute | SparseTensor
    role: str
    model: Model

    @property
    def place(self) -> str:
        """What it lies in, and the tensor in it."""
        return f"{self.owner.place}, {self.role}{_quoted(self.proto.name)}"


class Internal:
    """A tensor whose elements are in the model.

    Attributes:
        kind: its element type, if it has one.
        count: how many elements its shape has; `None` if it is no shape.
        used: the fields that hold elements, each with the number of its entries or bytes.
    """

    __slots__ = ("count", "kind", "proto", "tensor", "used")

    def __init__(self, tensor: Tensor) -> None:
        proto = with_elements(tensor.proto)
        self.tensor = tensor
        self.proto = proto
        self.kind = BY_NUMBER.get(proto.data_type)
        self.count = count_of(proto)
        sizes = {name: len(getattr(proto, name)) for name in DATA_FIELDS}
        self.used = {name: size for name, size in sizes.items() if size}
        if self.used and proto.HasField("raw_data"):  # read first, even if it is empty
            self.used["raw_data"] = sizes["raw_data"]

    @property
    def place(self) -> str:
        """What it lies in, and the tensor in it."""
        return self.tensor.place


class External(NamedTuple):
    """A tensor whose elements are in a file of their own."""

    tensor: Tensor

    @property
    def proto(self) -> Any:
        """The TensorProto."""
        return with_elements(self.tensor.proto)

    @property
    def place(self) -> str:
        """What it lies in, and the tensor in it."""
        return self.tensor.place


class SparseTensor(NamedTuple):
    """A SparseTensorProto, and what it lies in."""

    proto: Any
    owner: Container | Attribute
    role: str
    model: Model

    @property
    def place(self) -> str:
        """What it lies in, and the tensor in it."""
        return f"{self.owner.place}, {self.role}{_quoted(self.proto.values.name)}"


class Training(NamedTuple):
    """A TrainingInfoProto."""

    proto: Any
    position: int
    model: Model

    @property
    def place(self) -> str:
        """Which one it is."""
        return f"training_info[{self.position}]"


def count_of(tensor: Any) -> int | None:
    """How many elements the shape of a TensorProto has; `None` if it is no shape."""
    return None if any(each < 0 for each in tensor.dims) else math.prod(tensor.dims)


def is_bounded(declared: Declared) -> bool:
    """Whether an operator knows some values of an attribute only."""
    return declared.values is not None or declared.minimum is not None or declared.maximum is not None


def _quoted(name: str) -> str:
    return f" {name!r}" if name else ""
