"""Large weights of a model file: replaced with placeholders for parsing, and restored for writing."""

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
"""Smaller files, in bytes, are read as a whole."""
LEAST = 1 << 10
"""Smaller tensors, in bytes, stay in the message."""


@contextmanager
def reading(path: Path) -> Iterator[ModelProto]:
    """Yield the model in a file of any size, with placeholders instead of the payloads of large tensors.

    Raises:
        InvalidModel: the file cannot be read, is truncated, or is not a model.
    """
    with Source(path) as source, Weights(source) as weights:
        yield read_bytes(weights.message(), str(path))


class Weights:
    """Large tensors of one model file.

    In the message, a placeholder in `raw_data` replaces the payload of each large tensor. It starts with a
    random key, which does not occur in any model. `opshift.model.offloaded_tensors` provides access to the
    payloads.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._key = os.urandom(KEY_SIZE)
        self._extractor = Cutting(source.read, self._key, LEAST)

    def __enter__(self) -> Weights:
        HOLDERS[self._key] = self
        return self

    def __exit__(self, *error: object) -> None:
        del HOLDERS[self._key]

    def message(self) -> bytes:
        """Return the serialized model with placeholders instead of large payloads.

        Raises:
            InvalidModel: the file is truncated or not a model, or the message is too large without its
                weights.
        """
        whole = self._source.size
        pieces = self._extract() if whole >= SMALL_FILE else None
        if (whole if pieces is None else sum(map(len, pieces))) > LARGEST_MESSAGE:
            raise InvalidModel(
                "is not an ONNX model, or is larger than 2 GiB without its weights",
                place=str(self._source.path),
            )
        return self._source.read(0, whole) if pieces is None else b"".join(pieces)

    def _extract(self) -> list[bytes] | None:
        try:
            return self._extractor.message(0, self._source.size)
        except InvalidModel as error:
            error.place = Place(node=str(self._source.path))
            raise

    def put_back(self, message: bytes, name: str = MODEL) -> list[Piece]:
        """Return a serialized message as pieces, with ranges of the file instead of placeholders."""
        marks = [found.start() for found in re.finditer(re.escape(self._key), message)]

        def restored(mark: int, start: int, end: int) -> list[Piece]:
            return self._restored_tensor(message, mark, start, end)

        return rewritten(message, name, marks, restored)

    def whole(self, message: bytes, name: str) -> bytes:
        """Return a serialized message with payloads instead of placeholders."""
        pieces = self.put_back(message, name)
        return b"".join(self._source.read(*each) if isinstance(each, Range) else each for each in pieces)

    def size(self, message: bytes, name: str) -> int:
        """Return the size of a message with payloads, in bytes."""
        return size(self.put_back(message, name))

    def _restored_tensor(self, message: bytes, mark: int, start: int, end: int) -> list[Piece]:
        """Return the pieces of a tensor with its payload, in protobuf's order of fields."""
        (index,) = POSITION.unpack_from(message, mark + KEY_SIZE)
        number, elements = self._extractor.payloads[index]
        head = tagged(number, elements.end - elements.start)
        before, after = message[start : mark - NOTE_HEAD], message[mark + NOTE_SIZE : end]
        if number != RAW_DATA:
            rest = before + after
            before, after = _split_fields(rest, number)
        return [before + head, elements, after]


def _split_fields(message: bytes, number: int) -> tuple[bytes, bytes]:
    """Return the fields of a message with numbers up to `number`, and the remaining fields."""
    found = fields(lambda start, end: message[start:end], 0, len(message))
    at = next((each.start for each in found if each.number > number), len(message))
    return message[:at], message[at:]
