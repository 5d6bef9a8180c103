"""Find the fields of messages in protobuf's wire format without decoding values, and encode bytes fields.

Source: protobuf's encoding guide. A position is a byte offset in the file or buffer with the message.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from opshift.model.errors import InvalidModel

ReadBytes = Callable[[int, int], bytes]
"""Function that returns the bytes from the first position up to, but not including, the second."""

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)

MAX_VARINT_SIZE = 10

MAX_HEAD_SIZE = 2 * MAX_VARINT_SIZE
"""Maximum size in bytes of a tag and the length that follows it."""

FIXED_WIDTHS = {FIXED32: 4, FIXED64: 8}
"""Size of fixed values in bytes, by wire type."""

FIRST_READ, READ_AFTER_JUMP, MAX_READ_SIZE = 1 << 10, 1 << 12, 1 << 18
"""Sizes of reads in bytes: at the start of a message, after a skipped value, and the maximum."""

IS_LENGTH, IS_VARINT = (
    bytes(8 <= tag < 0x80 and tag & 7 == kind for tag in range(256)) for kind in (LENGTH, VARINT)
)
"""Tables by byte: 1 if the byte alone is a valid tag with the wire type LENGTH or VARINT, else 0."""


class Field(NamedTuple):
    """Field: number, wire type (`kind`), positions of its tag and of its value, and the position after it."""

    number: int
    kind: int
    start: int
    value: int
    end: int


def fields(
    read: ReadBytes, start: int, end: int, least: int = 0, marks: Sequence[int] = (-1,)
) -> Iterator[Field]:
    """Yield the fields of the message between two positions, in order.

    Args:
        read: returns bytes of the message.
        start: position of the first byte.
        end: position after the last byte.
        least: minimum size in bytes of a value; fields with shorter values are not yielded.
        marks: only fields that end after the position `marks[-1]` are yielded. The caller may change the
            sequence during the iteration.

    Raises:
        InvalidModel: the message is truncated or malformed.
    """
    position, size = start, FIRST_READ
    groups: list[int] = []
    while position < end:
        window_end = min(position + size, end)
        window = read(position, window_end)
        if window_end == end:
            # Zero padding avoids bounds checks of tags and lengths; a truncated field ends after `end`.
            window += bytes(MAX_HEAD_SIZE)
        consumed = yield from _in_window(window, position, end, least, marks, groups)
        # double the read size while fields are short; after a jump over a long value, read little
        size = min(2 * size, MAX_READ_SIZE) if consumed <= 2 * size else READ_AFTER_JUMP
        position += consumed
    if position > end or groups:
        raise _malformed_error(start, "an incomplete message")


def _in_window(
    window: bytes, position: int, end: int, least: int, marks: Sequence[int], groups: list[int]
) -> Generator[Field, None, int]:
    """Yield the fields whose tag and length are in a window; return the offset after the last field.

    `window` starts at `position`. `groups` has the numbers of the open groups; fields in groups are skipped.
    """
    at, safe = 0, len(window) - MAX_HEAD_SIZE
    while at < safe:
        start, tag, length = at, window[at], window[at + 1]
        # fast paths: tags of one byte, with a length or number of one or two bytes
        if IS_LENGTH[tag] and length < 0x80:
            value = at + 2
            at = value + length
        elif IS_LENGTH[tag] and window[at + 2] < 0x80:
            value = at + 3
            at = value + length + ((window[at + 2] - 1) << 7)
        elif IS_VARINT[tag] and (length < 0x80 or window[at + 2] < 0x80):
            value = at + 1
            at += 2 if length < 0x80 else 3
        else:
            tag, value, at = read_head(window, at, position, groups)
        if at - value >= least and position + at > marks[-1] and not groups:
            if position + at > end:
                element = f"a field that ends at byte {position + at:,}, after the end at byte {end:,}"
                raise _malformed_error(position + start, element)
            yield Field(tag >> 3, tag & 7, position + start, position + value, position + at)
    return at


def read_head(window: bytes, at: int, position: int, groups: list[int]) -> tuple[int, int, int]:
    """Return the tag of the field at offset `at`, and the start and end of its value; update `groups`."""
    tag, value = _varint_at(window, at, position)
    number, kind = tag >> 3, tag & 7
    end = value + FIXED_WIDTHS.get(kind, 0)
    if kind == LENGTH:
        length, value = _varint_at(window, value, position)
        end = value + length
    elif kind == VARINT:
        end = _varint_at(window, value, position)[1]
    elif kind == GROUP:
        groups.append(number)
    elif kind not in FIXED_WIDTHS and (kind != END_GROUP or not groups or groups.pop() != number):
        raise _malformed_error(position + at, "an invalid field")
    if not number:
        raise _malformed_error(position + at, "an invalid field")
    return tag, value, end


def _varint_at(window: bytes, at: int, position: int) -> tuple[int, int]:
    """Return the varint at an offset as a number, and the offset after it."""
    found = shift = 0
    for index in range(at, at + MAX_VARINT_SIZE):
        byte = window[index]
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, index + 1
        shift += 7
    raise _malformed_error(position + at, "an unterminated integer")


def _malformed_error(position: int, element: str) -> InvalidModel:
    return InvalidModel(
        f"is not an ONNX model or is truncated: byte {position:,} starts {element}",
        remedy="check that it is the right file and was copied completely",
    )


# cached: the fields of a model have few different numbers and lengths
@lru_cache(maxsize=1024)
def field_head(number: int, length: int) -> bytes:
    """Return the encoded tag and length of a length-delimited field, without its content."""
    return _varint_bytes(number << 3 | LENGTH) + _varint_bytes(length)


def _varint_bytes(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def bytes_field(number: int, content: bytes) -> bytes:
    """Return an encoded length-delimited field, to append to a serialized message."""
    return field_head(number, len(content)) + content


def find_bytes(message: bytes, number: int) -> bytes | None:
    """Return the value of the last length-delimited field with this number in a valid message, or `None`."""
    found = None
    for field in fields(lambda start, end: message[start:end], 0, len(message)):
        if field.number == number and field.kind == LENGTH:
            found = message[field.value : field.end]
    return found
