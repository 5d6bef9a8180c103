"""The view of a node that adapters read, and that they emit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opshift.adapters.refusal import CannotConvert


class Tensor(NamedTuple):
    """A constant: its element type by name, its dimensions, and its values in row-major order.

    Values are Python numbers, booleans or bytes (of strings).
    """

    element_type: str
    dims: tuple[int, ...]
    values: tuple[Any, ...]

    @property
    def scalar(self) -> Any:
        """The only value."""
        (value,) = self.values
        return value


class Node:
    """One node, immutable by agreement: `with_` makes another.

    Attributes are AttributeProto messages of the model where nobody changed them, and Python values
    (int, float, bytes, lists of them, `Tensor`) where an adapter wrote them.
    """

    __slots__ = ("_attributes", "_proto", "domain", "inputs", "op_type", "outputs")

    def __init__(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: Mapping[str, Any] | None,
        domain: str = "",
        proto: Any = None,
    ) -> None:
        self.op_type = op_type
        self.domain = domain
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self._attributes = attributes
        self._proto = proto

    @classmethod
    def of(cls, proto: Any) -> Node:
        """The view of a NodeProto."""
        return cls(proto.op_type, proto.input[:], proto.output[:], None, proto.domain, proto)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes by name; those of a NodeProto are looked at when first asked for."""
        if self._attributes is None:
            self._attributes = {each.name: each for each in self._proto.attribute[:]}
        return self._attributes

    @property
    def repeated_attribute(self) -> str | None:
        """The name of an attribute that a node of the model states more than once."""
        if self._proto is None or len(self._proto.attribute) == len(self.attributes):
            return None
        names: list[str] = [each.name for each in self._proto.attribute]
        return next(name for name in names if names.count(name) > 1)

    @property
    def refers_to_caller(self) -> bool:
        """Whether an attribute is given by the call of the function that the node is in."""
        found = self.attributes
        return bool(found) and any(getattr(value, "ref_attr_name", "") for value in found.values())

    @property
    def is_original(self) -> bool:
        """Whether it is a node of the model, as it stands there."""
        return self._proto is not None

    def copied(self) -> Any:
        """A copy of the NodeProto that it is a view of."""
        copy = type(self._proto)()
        copy.CopyFrom(self._proto)
        return copy

    def with_(self, **changes: Any) -> Node:
        """A copy with some of `op_type`, `inputs`, `outputs`, `attributes`, `domain` replaced."""
        return Node(
            changes.get("op_type", self.op_type),
            changes.get("inputs", self.inputs),
            changes.get("outputs", self.outputs),
            changes.get("attributes", self.attributes),
            changes.get("domain", self.domain),
        )

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value (bytes for strings), or `default` if the node does not state it."""
        found = self.attributes.get(name)
        if found is None:
            return default
        return read_attribute(found) if hasattr(found, "ref_attr_name") else found

    def without(self, *names: str) -> dict[str, Any]:
        """The attributes but for some."""
        return {name: value for name, value in self.attributes.items() if name not in names}

    def input(self, position: int) -> str:
        """The name of an input, `""` where it is left out."""
        return self.inputs[position] if position < len(self.inputs) else ""

    def output(self, position: int) -> str:
        """The name of an output, `""` where it is left out."""
        return self.outputs[position] if position < len(self.outputs) else ""


def attribute_bytes(proto: Any) -> Sequence[bytes]:
    """What the attributes of a NodeProto say."""
    attributes = proto.attribute
    return [each.SerializeToString() for each in attributes[:]] if attributes else ()


_FIELD = {
    1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors",
    10: "graphs", 11: "sparse_tensor", 12: "sparse_tensors", 13: "tp", 14: "type_protos",
}  # fmt: skip


def read_attribute(attribute: Any) -> Any:
    """The value of an AttributeProto: a number, bytes, a message, or a tuple of them.

    Models older than IR version 3 leave the type out; the field that is set then tells.

    Raises:
        CannotConvert: the value is given by the call of the function that the node is in.
    """
    if attribute.ref_attr_name:
        raise CannotConvert(
            f"attribute {attribute.name!r} is whatever a call of the function gives",
            remedy="inline the function first, so that every attribute has a value",
        )
    kind = attribute.type or _untyped(attribute)
    value = getattr(attribute, _FIELD.get(kind, "i"))
    return tuple(value) if kind in (6, 7, 8, 9, 10, 12, 14) else value


def _untyped(attribute: Any) -> int:
    for kind, field in _FIELD.items():
        present = (
            getattr(attribute, field) if field.endswith("s") and field != "s" else attribute.HasField(field)
        )
        if present:
            return kind
    return 0
