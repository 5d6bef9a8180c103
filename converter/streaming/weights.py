"""The weights of a model in a file: taken out of the message, and put back at their places."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opshift.adapters.elsewhere import HOLDERS, KEY_SIZE
from opshift.converter.errors import InvalidModel
from opshift.converter.files import LARGEST_MESSAGE, read_bytes
from opshift.converter.streaming.cutting import NOTE_HEAD, NOTE_SIZE, POSITION, Cutting
from opshift.converter.streaming.layout import MODEL, RAW_DATA
from opshift.converter.streaming.pieces import Piece, Range, rewritten, size
from opshift.converter.streaming.source import Source
from opshift.converter.streaming.wire import fields, tagged
from opshift.registry.errors import Place
from opshift.registry.messages import ModelProto

SMALL_FILE = 1 << 20
"""Files of fewer bytes are read whole."""
LEAST = 1 << 10
"""Tensors of fewer bytes stay in the message."""


@contextmanager
def reading(path: Path) -> Iterator[ModelProto]:
    """The model in a file of any size, with notes where large tensors have their elements.

    Raises:
        InvalidModel: it cannot be read, is cut off, or is no model.
    """
    with Source(path) as source, Weights(source) as weights:
        yield read_bytes(weights.message(), str(path))


class Weights:
    """The large tensors of one model in a file.

    In the message a note takes the place of a tensor's elements: a few bytes that no model holds, in
    `raw_data`. Whoever needs the elements all the same asks `opshift.adapters.elsewhere`.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._key = os.urandom(KEY_SIZE)
        self._cutting = Cutting(source.read, self._key, LEAST)

    def __enter__(self) -> Weights:
        HOLDERS[self._key] = self
        return self

    def __exit__(self, *error: object) -> None:
        del HOLDERS[self._key]

    def message(self) -> bytes:
        """The serialized model, with notes where large tensors have their elements.

        Raises:
            InvalidModel: it is cut off, or no model; or it is too large without its weights.
        """
        whole = self._source.size
        pieces = self._cut() if whole >= SMALL_FILE else None
        if (whole if pieces is None else sum(map(len, pieces))) > LARGEST_MESSAGE:
            raise InvalidModel(
                "is no ONNX model, or takes more than 2 GiB without its weights", place=str(self._source.path)
            )
        return self._source.read(0, whole) if pieces is None else b"".join(pieces)

    def _cut(self) -> list[bytes] | None:
        try:
            return self._cutting.message(0, self._source.size)
        except InvalidModel as error:
            error.place = Place(node=str(self._source.path))
            raise

    def put_back(self, message: bytes, name: str = MODEL) -> list[Piece]:
        """A serialized message as pieces, with ranges of the file where it has notes."""
        marks = [found.start() for found in re.finditer(re.escape(self._key), message)]

        def restored(mark: int, start: int, end: int) -> list[Piece]:
            return self._restored(message, mark, start, end)

        return rewritten(message, name, marks, restored)

    def whole(self, message: bytes, name: str) -> bytes:
        """A serialized message, with elements where it has notes."""
        pieces = self.put_back(message, name)
        return b"".join(self._source.read(*each) if isinstance(each, Range) else each for each in pieces)

    def size(self, message: bytes, name: str) -> int:
        """How many bytes a message has with its elements."""
        return size(self.put_back(message, name))

    def _restored(self, message: bytes, mark: int, start: int, end: int) -> list[Piece]:
        """A tensor with its elements instead of the note, in the order in which protobuf writes fields."""
        (index,) = POSITION.unpack_from(message, mark + KEY_SIZE)
        number, elements = self._cutting.payloads[index]
        head = tagged(number, elements.end - elements.start)
        before, after = message[start : mark - NOTE_HEAD], message[mark + NOTE_SIZE : end]
        if number != RAW_DATA:
            rest = before + after
            before, after = _parted(rest, number)
        return [before + head, elements, after]


def _parted(message: bytes, number: int) -> tuple[bytes, bytes]:
    """The fields of a message up to those of higher numbers, and these."""
    found = fields(lambda start, end: message[start:end], 0, len(message))
    at = next((each.start for each in found if each.number > number), len(message))
    return message[:at], message[at:]
