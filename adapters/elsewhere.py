"""Elements of tensors that are left in a file: a note in the message stands for them.

While a model is converted from file to file, `raw_data` of its large tensors is such a note. So whoever
looks at elements, or at the bytes of messages that tensors may be in, asks for them here.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

Message = TypeVar("Message", bound=Any)
KEY_SIZE = 16
"""The bytes that a note begins with; no tensor has them but by it."""


class Holder(Protocol):
    """What can give the elements."""

    def whole(self, message: bytes, name: str) -> bytes:
        """A serialized message, such as a `TensorProto`, with elements in place of its notes."""

    def size(self, message: bytes, name: str) -> int:
        """How many bytes that would be."""


HOLDERS: dict[bytes, Holder] = {}
"""By the beginning of their notes."""


def with_elements(tensor: Message) -> Message:
    """A TensorProto that has its elements: itself, or one like it."""
    if not HOLDERS or tensor.raw_data[:KEY_SIZE] not in HOLDERS:
        return tensor
    return type(tensor).FromString(serialized(tensor))  # type: ignore[no-any-return]


def serialized(message: Any) -> bytes:
    """The bytes of a message, the same for equal ones, with all elements."""
    data: bytes = message.SerializeToString(deterministic=True)
    for holder in _holders(data):
        data = holder.whole(data, message.DESCRIPTOR.name)
    return data


def byte_size(message: Any) -> int:
    """How many bytes `serialized` has."""
    if not HOLDERS:
        return int(message.ByteSize())
    data = message.SerializeToString()
    return max([len(data), *(holder.size(data, message.DESCRIPTOR.name) for holder in _holders(data))])


def _holders(data: bytes) -> list[Holder]:
    """Those whose notes are in a message; others may come and go meanwhile, in other threads."""
    return [holder for key, holder in tuple(HOLDERS.items()) if key in data]
