"""Locations of tensors in serialized models, derived from the descriptors of ONNX's messages."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from opshift.model.messages import AttributeProto, ModelProto, TensorProto

MODEL, TENSOR, ATTRIBUTE = "ModelProto", "TensorProto", "AttributeProto"

RAW_DATA: int = TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number

_WIDTHS = {
    "raw_data": 1, "float_data": 4, "double_data": 8, "string_data": 1,
    "int32_data": 0, "int64_data": 0, "uint64_data": 0,
}  # fmt: skip
PAYLOAD_WIDTHS: Mapping[int, int] = {
    TensorProto.DESCRIPTOR.fields_by_name[name].number: width for name, width in _WIDTHS.items()
}
"""Width in bytes of the elements in each payload field of TensorProto; 0 if it varies."""

SCALAR_LIST_FIELDS = frozenset(
    AttributeProto.DESCRIPTOR.fields_by_name[name].number for name in ("floats", "ints", "strings")
)
"""Fields of AttributeProto with lists of numbers or strings of any length. An attribute with such a list has
no tensor."""


class Part(NamedTuple):
    """Field with messages of the type `message`, which are tensors or may contain tensors."""

    message: str
    is_repeated: bool


@cache
def tensor_fields() -> Mapping[str, Mapping[int, Part]]:
    """Return the fields that may contain tensors, by message name and field number."""
    messages = _reachable(ModelProto.DESCRIPTOR)
    with_tensors: set[str] = set()
    found = {TENSOR}
    # messages refer to each other (a graph has nodes, an attribute has graphs): repeat until no name is new
    while found - with_tensors:
        with_tensors |= found
        found = {
            name for name, parts in messages.items() if any(p.message in with_tensors for p in parts.values())
        }
    return {
        name: {number: part for number, part in parts.items() if part.message in with_tensors}
        for name, parts in messages.items()
        if name in with_tensors
    }


@cache
def mergeable_messages() -> frozenset[str]:
    """Return the messages with a single field that may contain tensors: protobuf merges its repetitions."""
    return frozenset(
        name
        for name, parts in tensor_fields().items()
        if not all(part.is_repeated for part in parts.values())
    )


def _reachable(descriptor: Any) -> dict[str, dict[int, Part]]:
    """Return the message fields of each message that is reachable from a descriptor, by name and number."""
    found: dict[str, dict[int, Part]] = {}
    waiting = [descriptor]
    while waiting:
        current = waiting.pop()
        inner = [field for field in current.fields if field.message_type]
        parts = {each.number: Part(each.message_type.name, _is_repeated(each)) for each in inner}
        found[current.name] = parts
        waiting += [each.message_type for each in inner if each.message_type.name not in found]
    return found


def _is_repeated(field: Any) -> bool:
    """Return whether a field is repeated. Protobuf 6.31 added the property; version 7 removed the label."""
    found = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if found is None else found)
