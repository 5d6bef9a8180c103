"""Write and find a field that is unknown to the class of a serialized message.

Protobuf encodes a message as fields, each with a number and a wire type; readers keep or skip unknown fields
(https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; 3 and 4 mark the start and end of a group and have no content."""
SIZES = {FIXED64: 8, FIXED32: 4}


def bytes_field(number: int, content: bytes) -> bytes:
    """Return the encoding of a field, to be appended to a serialized message."""
    return _encode_varint(number << 3 | BYTES) + _encode_varint(len(content)) + content


def find_bytes(message: bytes, number: int) -> bytes | None:
    """Return the last field with this number in a valid message, or `None`."""
    found = None
    for field_number, content in _fields(message):
        if field_number == number:
            found = content
    return found


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and content of each length-delimited field."""
    position = 0
    while position < len(message):
        tag, position = _read_varint(message, position)
        wire_type = tag & 7
        if wire_type == BYTES:
            size, position = _read_varint(message, position)
            yield tag >> 3, message[position : position + size]
            position += size
        elif wire_type == VARINT:
            _, position = _read_varint(message, position)
        else:
            # The start and end of a group have no content, so its fields are read like top-level ones.
            position += SIZES.get(wire_type, 0)


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
