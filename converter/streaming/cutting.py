"""Extraction of large tensors from a serialized model; the remaining message is small enough to parse."""

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
"""Nesting limit of messages, which is protobuf's own recursion limit."""
POSITION = struct.Struct("<Q")
"""Encoding of a payload's index in its placeholder."""
NOTE_SIZE = KEY_SIZE + POSITION.size
NOTE_HEAD = len(tagged(RAW_DATA, NOTE_SIZE))


class Payload(NamedTuple):
    """Payload of a tensor: the number of its field in TensorProto, and its range in the file."""

    number: int
    elements: Range


class Cutting:
    """Replacement of large tensor payloads with placeholders in `raw_data`.

    Fields that protobuf's own libraries would serialize differently stay unchanged: a payload in several
    fields, or a single message that occurs twice. The remaining message therefore means the same as the file.

    Attributes:
        payloads: the extracted payloads. A placeholder is the key followed by an index into this list.
    """

    def __init__(self, read: Read, key: bytes, least: int) -> None:
        self._read = read
        self._key = key
        self._least = least
        self.payloads: list[Payload] = []

    def message(self, start: int, end: int, name: str = MODEL, depth: int = 0) -> list[bytes] | None:
        """Return the message between two positions with placeholders, or `None` if it stays unchanged.

        Args:
            start: position of its first byte.
            end: position after its last byte.
            name: name of the message type.
            depth: nesting depth of the message.

        Raises:
            InvalidModel: the message is truncated or malformed.
        """
        if depth > DEEPEST:
            return None
        pieces: list[bytes] = []
        copied_up_to = start
        seen: set[int] = set()
        # repetitions of a single message have to be detected, whatever their size
        for field in fields(self._read, start, end, 0 if name in merging() else self._least):
            # such a list may be long, and an attribute that has one has no tensor
            if name == ATTRIBUTE and field.number in PLAIN_LISTS:
                return None
            part = layout()[name].get(field.number)
            if part is None:
                continue
            # protobuf merges repetitions of a single message, which placeholders cannot express
            if not part.is_repeated and field.number in seen:
                return None
            seen.add(field.number)
            inner = self._reduced_field(field, part, depth)
            if inner is not None:
                if copied_up_to < field.start:
                    pieces.append(self._read(copied_up_to, field.start))
                pieces += [tagged(field.number, sum(map(len, inner))), *inner]
                copied_up_to = field.end
        return [*pieces, self._read(copied_up_to, end)] if pieces else None

    def _reduced_field(self, field: Field, part: Part, depth: int) -> list[bytes] | None:
        if field.kind != LENGTH or field.end - field.value < self._least:
            return None
        if part.message == TENSOR:
            return self._reduced_tensor(field.value, field.end)
        return self.message(field.value, field.end, part.message, depth + 1)

    def _reduced_tensor(self, start: int, end: int) -> list[bytes] | None:
        payload = None
        for field in fields(self._read, start, end):
            if field.number in WIDTHS:
                if payload is not None or not self._is_extractable(field):
                    return None
                payload = field
        if payload is None:
            return None
        placeholder = tagged(RAW_DATA, NOTE_SIZE) + self._key + POSITION.pack(len(self.payloads))
        self.payloads.append(Payload(payload.number, Range(payload.value, payload.end)))
        return [self._read(start, payload.start), placeholder, self._read(payload.end, end)]

    def _is_extractable(self, field: Field) -> bool:
        """Return whether a field is a large payload and contains complete elements only."""
        length = field.end - field.value
        if field.kind != LENGTH or length < self._least:
            return False
        width = WIDTHS[field.number]
        return length % width == 0 if width else self._read(field.end - 1, field.end)[0] < 0x80
