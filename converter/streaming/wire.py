"""Protobuf's wire format, as far as it takes to find fields: tags, lengths, and what to skip.

Source: protobuf's encoding guide. Positions are offsets into whatever is read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from opshift.converter.errors import InvalidModel

Read = Callable[[int, int], bytes]
"""Gives the bytes from one position to another."""
VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)
LONGEST_VARINT = 10
LONGEST_HEAD = 2 * LONGEST_VARINT
"""A tag and a length."""
WIDTHS = {FIXED32: 4, FIXED64: 8}
FIRST_READ, READ_AFTER_JUMP, LARGEST_READ = 1 << 10, 1 << 12, 1 << 18
"""How much is read at once: less at the beginning of a message, more where short fields follow each other."""
IS_LENGTH, IS_VARINT = (
    bytes(8 <= tag < 0x80 and tag & 7 == kind for tag in range(256)) for kind in (LENGTH, VARINT)
)
"""By byte, whether it is the whole tag of a field of that kind."""


class Field(NamedTuple):
    """One field: its number and wire type, where its tag starts, and its value from `value` to `end`."""

    number: int
    kind: int
    start: int
    value: int
    end: int


def fields(read: Read, start: int, end: int, least: int = 0, marks: Sequence[int] = (-1,)) -> Iterator[Field]:
    """The fields of the message between two positions, in order.

    Args:
        read: gives its bytes.
        start: where it is from ...
        end: ... and up to.
        least: shorter values are passed over, ...
        marks: ... and so are fields before the position that is last here, also if that changes meanwhile.

    Raises:
        InvalidModel: it is cut off, or no message.
    """
    position, size = start, FIRST_READ
    groups: list[int] = []
    while position < end:
        known = min(position + size, end)
        window = read(position, known)
        if known == end:
            window += bytes(LONGEST_HEAD)  # whatever is cut off goes on with zeros, and so beyond the end
        passed = yield from _in_window(window, position, end, least, marks, groups)
        size = min(2 * size, LARGEST_READ) if passed <= 2 * size else READ_AFTER_JUMP
        position += passed
    if position > end or groups:
        raise _broken(start, "ends within a field")


def _in_window(
    window: bytes, position: int, end: int, least: int, marks: Sequence[int], groups: list[int]
) -> Generator[Field, None, int]:
    """The fields whose head is in a window, which is of bytes from `position` on.

    `groups` are the numbers of those that are open: what lies in one is no field of the message.

    Returns the offset behind the last of them.
    """
    at, safe = 0, len(window) - LONGEST_HEAD
    while at < safe:
        start, tag, length = at, window[at], window[at + 1]
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
            tag, value, at = _any(window, at, position, groups)
        if at - value >= least and position + at > marks[-1] and not groups:
            if position + at > end:
                raise _broken(position + start, "states a length beyond the end")
            yield Field(tag >> 3, tag & 7, position + start, position + value, position + at)
    return at


def _any(window: bytes, at: int, position: int, groups: list[int]) -> tuple[int, int, int]:
    """Of a field of any kind its tag, and where its value starts and ends."""
    tag, value = _varint(window, at, position)
    number, kind = tag >> 3, tag & 7
    end = value + WIDTHS.get(kind, 0)
    if kind == LENGTH:
        length, value = _varint(window, value, position)
        end = value + length
    elif kind == VARINT:
        end = _varint(window, value, position)[1]
    elif kind == GROUP:
        groups.append(number)
    elif kind not in WIDTHS and (kind != END_GROUP or not groups or groups.pop() != number):
        raise _broken(position + at, "starts no field")
    if not number:
        raise _broken(position + at, "starts no field")
    return tag, value, end


def _varint(window: bytes, at: int, position: int) -> tuple[int, int]:
    """The number at an offset, and where it ends."""
    found = shift = 0
    for index in range(at, at + LONGEST_VARINT):
        byte = window[index]
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, index + 1
        shift += 7
    raise _broken(position + at, "starts no number that ends")


def _broken(position: int, reason: str) -> InvalidModel:
    return InvalidModel(
        f"is not an ONNX model or is cut off: what is at byte {position:,} {reason}",
        remedy="check that it is the right file and was copied completely",
    )


@lru_cache(maxsize=1024)
def tagged(number: int, length: int) -> bytes:
    """The tag of a field of some length, and the length."""
    return _encoded(number << 3 | LENGTH) + _encoded(length)


def _encoded(number: int) -> bytes:
    """A varint."""
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
