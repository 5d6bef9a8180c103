"""Where tensors lie in a serialized model, told by the descriptors of ONNX's messages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from opshift.registry.messages import AttributeProto, ModelProto, TensorProto

MODEL, TENSOR, ATTRIBUTE = "ModelProto", "TensorProto", "AttributeProto"
RAW_DATA: int = TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number
WIDTHS: Mapping[int, int] = MappingProxyType(
    {
        TensorProto.DESCRIPTOR.fields_by_name[name].number: width
        for name, width in {
            "raw_data": 1, "float_data": 4, "double_data": 8, "string_data": 1,
            "int32_data": 0, "int64_data": 0, "uint64_data": 0,
        }.items()
    }
)  # fmt: skip
"""The fields of TensorProto that hold its elements, with the bytes of an entry; 0 where these differ."""
PLAIN_LISTS = frozenset(
    AttributeProto.DESCRIPTOR.fields_by_name[name].number for name in ("floats", "ints", "strings")
)
"""The fields of AttributeProto that hold as many numbers or texts as there are; with them, no tensor."""


class Part(NamedTuple):
    """A field that is, or may hold, tensors: the message that it is, and whether there are several."""

    message: str
    is_repeated: bool


@cache
def layout() -> Mapping[str, Mapping[int, Part]]:
    """By message, the fields in which tensors may be, by number."""
    messages = _reachable(ModelProto.DESCRIPTOR)
    holding = {TENSOR}
    while True:
        more = {name for name, parts in messages.items() if any(p.message in holding for p in parts.values())}
        if more <= holding:
            break
        holding |= more
    return MappingProxyType(
        {
            name: {number: part for number, part in parts.items() if part.message in holding}
            for name, parts in messages.items()
            if name in holding
        }
    )


@cache
def merging() -> frozenset[str]:
    """The messages in which such a field is single: written twice, protobuf makes one message of both."""
    return frozenset(
        name for name, parts in layout().items() if not all(part.is_repeated for part in parts.values())
    )


def _reachable(descriptor: Any) -> dict[str, dict[int, Part]]:
    """Every message within one, by name: its fields that are messages."""
    found: dict[str, dict[int, Part]] = {}
    waiting = [descriptor]
    while waiting:
        current = waiting.pop()
        if current.name in found:
            continue
        inner = [field for field in current.fields if field.message_type]
        found[current.name] = {
            each.number: Part(each.message_type.name, _is_repeated(each)) for each in inner
        }
        waiting += [each.message_type for each in inner]
    return found


def _is_repeated(field: Any) -> bool:
    """Protobuf 6.31 brought the property, and 7 took the label out."""
    found = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if found is None else found)
