"""Tensors of a model, and tensors with elements outside the message: in a file, or replaced by a placeholder.

While a model is converted from file to file, `raw_data` of a large tensor holds a short placeholder instead
of the payload, the serialized elements. Code that reads elements, or serializes messages that may contain
tensors, must use this module. Source for separate files: ONNX's IR specification, "External Tensor Data".
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, Protocol, Self

from opshift.model.attributes import tensors_in
from opshift.model.graphs import ContainerProto, is_graph, nested_containers, root_graphs
from opshift.model.messages import Message, ModelProto, TensorProto
from opshift.model.tensor_pieces import (
    MODEL,
    PAYLOAD_WIDTHS,
    RAW_DATA,
    ConvertedRange,
    ElementConversion,
    OutputPiece,
    Range,
    read_blocks,
    rewrite_tensors,
    total_size,
)
from opshift.model.wire_format import ReadBytes, field_head, fields

PLACEHOLDER_KEY_SIZE = 16
"""Number of random bytes that start each placeholder, so that payloads do not match it by accident."""


class TensorStore(Protocol):
    """Provider of the payloads that placeholders refer to."""

    def whole(self, message: bytes, name: str) -> bytes:
        """Return a serialized message of the type `name` with payloads instead of placeholders."""
        ...

    def size(self, message: bytes, name: str) -> int:
        """Return the length in bytes of the result of `whole`, without reading payloads."""
        ...

    def raw_size(self, placeholder: bytes) -> int | None:
        """Return the length of the replaced `raw_data`; `None` if the placeholder replaces another field."""
        ...

    def convert(
        self, placeholder: bytes, conversion: ElementConversion, field: str, size: int | None
    ) -> bytes | None:
        """Return the placeholder of the converted elements; `None` if the elements must be decoded first.

        The elements can be converted if they are in `raw_data` or `field`, in `size` bytes.
        """
        ...


STORES: dict[bytes, TensorStore] = {}
"""The open stores, by the key that starts their placeholders."""


def with_payload(tensor: TensorProto) -> TensorProto:
    """Return a TensorProto with its payload: the argument itself if it holds no placeholder, else a copy."""
    if not STORES or tensor.raw_data[:PLACEHOLDER_KEY_SIZE] not in STORES:
        return tensor
    return type(tensor).FromString(serialize(tensor))


def store_of(tensor: TensorProto) -> TensorStore | None:
    """Return the store with the payload of a tensor; `None` if the tensor holds its payload."""
    return STORES.get(tensor.raw_data[:PLACEHOLDER_KEY_SIZE]) if STORES else None


def raw_size(tensor: TensorProto) -> int | None:
    """Return the length of `raw_data` without reading it; `None` if a placeholder replaces another field."""
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


EXTERNAL = 1
"""`TensorProto.data_location` of a tensor with elements in a separate file."""

MAX_DIGITS = 18
"""Maximum number of digits of an offset or length, so that the number fits 64 bits and parses quickly."""


class ExternalData(NamedTuple):
    """Values of the entries in `external_data`; a missing entry has an empty value.

    The location is relative to the model's folder. Offset and length are decimal numbers of bytes. The
    checksum is the SHA1 digest of the file.
    """

    location: str = ""
    offset: str = ""
    length: str = ""
    checksum: str = ""


def read_external_data(tensor: TensorProto) -> ExternalData:
    """Return the external data entries of a tensor; the last entry for a key wins.

    Raises:
        UnicodeDecodeError: a key or value is not UTF-8 text.
    """
    entries = {_text(each.key): _text(each.value) for each in tensor.external_data}
    return ExternalData(*(entries.get(key, "") for key in ExternalData._fields))


def byte_count(text: str) -> int | None:
    """Return an offset or length as a number; `None` if it is not a decimal number of at most 18 digits."""
    # int() also accepts signs, spaces, underscores and digits of other scripts.
    is_number = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    return int(text) if is_number else None


def _text(value: str | bytes) -> str:
    """Return a string field, which some releases of protobuf return as bytes if it is not UTF-8."""
    return value if isinstance(value, str) else value.decode()


MIN_EXTRACTED_TENSOR = 1 << 10
"""Minimum size in bytes of a tensor that a placeholder replaces; smaller tensors stay in the message."""

PAYLOAD_INDEX = struct.Struct("<Q")
"""Encoding of a payload's index in its placeholder."""

PLACEHOLDER_SIZE = PLACEHOLDER_KEY_SIZE + PAYLOAD_INDEX.size

PLACEHOLDER_HEAD_SIZE = len(field_head(RAW_DATA, PLACEHOLDER_SIZE))


class Payload(NamedTuple):
    """Payload of a tensor: the number of its field in TensorProto, and its range in the source."""

    number: int
    elements: Range | ConvertedRange


class PlaceholderStore:
    """Payloads of one model's tensors.

    In the message, a placeholder in `raw_data` replaces each payload. A placeholder is a random key, which
    occurs in no model, followed by the index of the payload. Within a `with` block, the functions of this
    module find the store of a placeholder, and read payloads with `read`.
    """

    def __init__(self, read: ReadBytes) -> None:
        self._read = read
        self._key = os.urandom(PLACEHOLDER_KEY_SIZE)
        self._payloads: list[Payload] = []

    def __enter__(self) -> Self:
        STORES[self._key] = self
        return self

    def __exit__(self, *error: object) -> None:
        del STORES[self._key]

    def placeholder(self, payload: Payload) -> bytes:
        """Store a payload, and return its placeholder."""
        self._payloads.append(payload)
        return self._key + PAYLOAD_INDEX.pack(len(self._payloads) - 1)

    def holds(self, raw_data: bytes) -> bool:
        """Return whether `raw_data` of a tensor is a placeholder of this store."""
        return raw_data.startswith(self._key)

    def payload_at(self, message: bytes, mark: int) -> Payload:
        """Return the payload of the placeholder that starts at the position `mark` of a message."""
        index: int
        (index,) = PAYLOAD_INDEX.unpack_from(message, mark + PLACEHOLDER_KEY_SIZE)
        return self._payloads[index]

    def restore(self, message: bytes, name: str = MODEL) -> list[OutputPiece]:
        """Return a serialized message as pieces, with ranges of the source instead of placeholders."""
        marks = [found.start() for found in re.finditer(re.escape(self._key), message)]

        def restored(mark: int, start: int, end: int) -> list[OutputPiece]:
            return self._restored_tensor(message, mark, start, end)

        return rewrite_tensors(message, name, marks, restored)

    def whole(self, message: bytes, name: str) -> bytes:
        """Implement `TensorStore.whole`."""
        return b"".join(map(self.read_piece, self.restore(message, name)))

    def read_piece(self, piece: OutputPiece) -> bytes:
        """Return the bytes of a piece."""
        if isinstance(piece, ConvertedRange):
            return b"".join(piece.blocks(self._read))
        return self._read(*piece) if isinstance(piece, Range) else piece

    def convert(
        self, placeholder: bytes, conversion: ElementConversion, field: str, size: int | None
    ) -> bytes | None:
        """Add a payload with the converted elements of another payload.

        Elements are checked here, and converted when they are written. Errors of `conversion` pass through.

        Args:
            placeholder: the placeholder of the other payload.
            conversion: the conversion of the elements.
            field: the field of TensorProto for elements of this type, if not `raw_data`.
            size: number of bytes of the elements; `None` if it is unknown.

        Returns:
            The placeholder of the new payload, for `raw_data`; `None` if the elements have varying lengths,
            as in `int32_data`, are already converted, or are not in `size` bytes of `raw_data` or `field`.
        """
        number, elements = self.payload_at(placeholder, 0)
        if not PAYLOAD_WIDTHS[number] or not isinstance(elements, Range) or total_size([elements]) != size:
            return None
        if number not in (RAW_DATA, TensorProto.DESCRIPTOR.fields_by_name[field].number):
            return None
        for block in read_blocks(elements, self._read):
            conversion.require_range(block)
        return self.placeholder(Payload(RAW_DATA, ConvertedRange(elements, conversion)))

    def size(self, message: bytes, name: str) -> int:
        """Implement `TensorStore.size`."""
        return total_size(self.restore(message, name))

    def raw_size(self, placeholder: bytes) -> int | None:
        """Implement `TensorStore.raw_size`."""
        number, elements = self.payload_at(placeholder, 0)
        return total_size([elements]) if number == RAW_DATA else None

    def _restored_tensor(self, message: bytes, mark: int, start: int, end: int) -> list[OutputPiece]:
        """Return the pieces of a tensor with its payload; the fields keep their order by number."""
        number, elements = self.payload_at(message, mark)
        head = field_head(number, total_size([elements]))
        before, after = message[start : mark - PLACEHOLDER_HEAD_SIZE], message[mark + PLACEHOLDER_SIZE : end]
        if number != RAW_DATA:
            rest = before + after
            before, after = _split_fields(rest, number)
        return [before + head, elements, after]


def _split_fields(message: bytes, number: int) -> tuple[bytes, bytes]:
    """Split a serialized message before the first field whose number is greater than `number`."""
    found = fields(lambda start, end: message[start:end], 0, len(message))
    at = next((each.start for each in found if each.number > number), len(message))
    return message[:at], message[at:]


def model_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield the initializers and the tensors in attributes of all graphs and functions.

    Values and indices of sparse tensors, and defaults of function attributes, are included.
    """
    roots: list[ContainerProto] = [*root_graphs(model), *model.functions]
    for container in nested_containers(roots):
        if is_graph(container):
            yield from container.initializer
            for sparse in container.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        attributes = (attribute for node in container.node for attribute in node.attribute)
        yield from chain.from_iterable(map(tensors_in, attributes))
    # releases of onnx before IR version 9 lack the field
    defaults = (attribute for each in model.functions for attribute in getattr(each, "attribute_proto", ()))
    yield from chain.from_iterable(map(tensors_in, defaults))
