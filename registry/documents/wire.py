"""One field of a serialized message that its class does not know: added, and found again.

Protobuf writes a message as fields, each with its number and the way it is encoded; a reader keeps or skips
what it does not know (https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""How a value is encoded; 3 and 4 begin and end a group, whose fields stand between them."""
SIZES = {FIXED64: 8, FIXED32: 4}


def bytes_field(number: int, content: bytes) -> bytes:
    """A field as it is appended to a serialized message."""
    return _varint(number << 3 | BYTES) + _varint(len(content)) + content


def find_bytes(message: bytes, number: int) -> bytes | None:
    """The last field of this number, of a message that is well formed; `None` if there is none."""
    found = None
    for field, content in _fields(message):
        if field == number:
            found = content
    return found


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message that are encoded as bytes."""
    position = 0
    while position < len(message):
        tag, position = _read_varint(message, position)
        kind = tag & 7
        if kind == BYTES:
            size, position = _read_varint(message, position)
            yield tag >> 3, message[position : position + size]
            position += size
        elif kind == VARINT:
            _, position = _read_varint(message, position)
        else:
            position += SIZES.get(kind, 0)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
