"""Read tensors with payloads left in the source file of a streaming conversion.

While a model is converted from file to file, `raw_data` of a large tensor holds a short placeholder instead
of the payload. Code that reads elements, or serializes messages that may contain tensors, must use this
module.
"""

from typing import Protocol

from opshift.model.messages import Message, TensorProto
from opshift.model.tensor_pieces import ElementConversion

PLACEHOLDER_KEY_SIZE = 16
"""Number of random bytes that start each placeholder, so that payloads do not match it by accident."""


class TensorStore(Protocol):
    """A source of the payloads that placeholders refer to."""

    def whole(self, message: bytes, name: str) -> bytes:
        """Return a serialized message of the type `name` with payloads instead of placeholders."""
        ...

    def size(self, message: bytes, name: str) -> int:
        """Return the length in bytes of the result of `whole`, without reading payloads."""
        ...

    def raw_size(self, placeholder: bytes) -> int | None:
        """Return the length of the `raw_data` that a placeholder replaces; `None` for another field."""
        ...

    def convert(self, placeholder: bytes, conversion: ElementConversion) -> bytes | None:
        """Return the placeholder of a tensor with converted elements; `None` if they have to be decoded."""
        ...


STORES: dict[bytes, TensorStore] = {}
"""The open stores, by the key that starts their placeholders."""


def with_payload(tensor: TensorProto) -> TensorProto:
    """Return a TensorProto with its payload: the argument itself if it holds no placeholder, else a copy."""
    if not STORES or tensor.raw_data[:PLACEHOLDER_KEY_SIZE] not in STORES:
        return tensor
    return type(tensor).FromString(serialize(tensor))


def store_of(tensor: TensorProto) -> TensorStore | None:
    """Return the store with the payload of a tensor; `None` if the tensor has it itself."""
    return STORES.get(tensor.raw_data[:PLACEHOLDER_KEY_SIZE]) if STORES else None


def raw_size(tensor: TensorProto) -> int | None:
    """Return the length of `raw_data` without reading it; `None` if the payload is in another field."""
    store = store_of(tensor)
    return store.raw_size(tensor.raw_data) if store else len(tensor.raw_data)


def serialize(message: Message) -> bytes:
    """Serialize a message with all payloads, deterministically: equal messages give equal bytes."""
    data: bytes = message.SerializeToString(deterministic=True)
    for store in _stores_in(data):
        data = store.whole(data, message.DESCRIPTOR.name)
    return data


def serialized_size(message: Message) -> int:
    """Return the length in bytes of a message serialized with all payloads."""
    if not STORES:
        return int(message.ByteSize())
    data = message.SerializeToString()
    return max([len(data), *(store.size(data, message.DESCRIPTOR.name) for store in _stores_in(data))])


def _stores_in(data: bytes) -> list[TensorStore]:
    """Return the stores with placeholders in a serialized message."""
    # Iterate over a copy: other threads add and remove their own stores at any time.
    return [store for key, store in tuple(STORES.items()) if key in data]
