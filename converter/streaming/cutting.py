"""Large tensors out of a model that is in a file: what is left is small enough to be read."""

from __future__ import annotations

import struct
from typing import NamedTuple

from opshift.adapters.elsewhere import KEY_SIZE
from opshift.converter.streaming.layout import (
    ATTRIBUTE,
    MODEL,
    PLAIN_LISTS,
    RAW_DATA,
    TENSOR,
    WIDTHS,
    Part,
    layout,
    merging,
)
from opshift.converter.streaming.pieces import Range
from opshift.converter.streaming.wire import LENGTH, Field, Read, fields, tagged

DEEPEST = 100
"""Messages within each other; protobuf reads no more."""


POSITION = struct.Struct("<Q")
NOTE_SIZE = KEY_SIZE + POSITION.size
NOTE_HEAD = len(tagged(RAW_DATA, NOTE_SIZE))


class Payload(NamedTuple):
    """The elements of a tensor, and the field of TensorProto that they are."""

    number: int
    elements: Range


class Cutting:
    """Takes the elements out of large tensors, and puts notes in their place, as `raw_data`.

    Whatever is not written as protobuf's own libraries do stays whole: a payload in several fields, a single
    message written twice. So the message that is left has the meaning of the file.

    Attributes:
        payloads: what was taken out; a note is the key and a number, the position here.
    """

    def __init__(self, read: Read, key: bytes, least: int) -> None:
        self._read = read
        self._key = key
        self._least = least
        self.payloads: list[Payload] = []

    def message(self, start: int, end: int, name: str = MODEL, depth: int = 0) -> list[bytes] | None:
        """The message between two positions; `None` if it stays whole.

        Raises:
            InvalidModel: it is cut off, or no message.
        """
        if depth > DEEPEST:
            return None
        found: list[bytes] = []
        kept = start
        seen: set[int] = set()
        for field in fields(self._read, start, end, 0 if name in merging() else self._least):
            if name == ATTRIBUTE and field.number in PLAIN_LISTS:
                return None
            part = layout()[name].get(field.number)
            if part is None:
                continue
            if not part.is_repeated and field.number in seen:
                return None
            seen.add(field.number)
            inner = self._inner(field, part, depth)
            if inner is not None:
                if kept < field.start:
                    found.append(self._read(kept, field.start))
                found += [tagged(field.number, sum(map(len, inner))), *inner]
                kept = field.end
        return [*found, self._read(kept, end)] if found else None

    def _inner(self, field: Field, part: Part, depth: int) -> list[bytes] | None:
        if field.kind != LENGTH or field.end - field.value < self._least:
            return None
        if part.message == TENSOR:
            return self._tensor(field.value, field.end)
        return self.message(field.value, field.end, part.message, depth + 1)

    def _tensor(self, start: int, end: int) -> list[bytes] | None:
        payload = None
        for field in fields(self._read, start, end):
            if field.number in WIDTHS:
                if payload is not None or not self._is_large(field):
                    return None
                payload = field
        if payload is None:
            return None
        note = tagged(RAW_DATA, NOTE_SIZE) + self._key + POSITION.pack(len(self.payloads))
        self.payloads.append(Payload(payload.number, Range(payload.value, payload.end)))
        return [self._read(start, payload.start), note, self._read(payload.end, end)]

    def _is_large(self, field: Field) -> bool:
        """Whether a field is a payload to take out, and no entry of it is cut off."""
        length = field.end - field.value
        if field.kind != LENGTH or length < self._least:
            return False
        width = WIDTHS[field.number]
        return length % width == 0 if width else self._read(field.end - 1, field.end)[0] < 0x80
