"""Large weights of a model file: replaced with placeholders for parsing, and restored for writing.

Also `OutputFile`, the result of converting a file, and `output_pieces`, which are the content of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opshift.model.errors import InvalidModel, Place
from opshift.model.file_formats import named_format
from opshift.model.files import MAX_MESSAGE_BYTES, FileLike, read_bytes, serialize_model
from opshift.model.messages import ModelProto
from opshift.model.offloaded_tensors import MIN_EXTRACTED_TENSOR, Payload, PlaceholderStore
from opshift.model.shared_data import FrozenRecord
from opshift.model.tensor_pieces import (
    ATTRIBUTE,
    MODEL,
    PAYLOAD_WIDTHS,
    RAW_DATA,
    SCALAR_LIST_FIELDS,
    TENSOR,
    MessageField,
    OutputPiece,
    Range,
    mergeable_messages,
    tensor_fields,
)
from opshift.model.wire_format import LENGTH, Field, bytes_field, field_head, fields
from opshift.stores.source_file import Source, open_source

if TYPE_CHECKING:
    from opshift.converter.report import Report

MIN_STREAMED_FILE = 1 << 20
"""Minimum number of bytes of a file that is not read as a whole."""

MAX_MESSAGE_DEPTH = 100
"""Nesting limit of messages, which is protobuf's own recursion limit."""


@contextmanager
def open_without_weights(path: FileLike) -> Iterator[ModelProto]:
    """Yield the model in a file of any size, with placeholders instead of the payloads of large tensors."""
    with open_source(path) as source, Weights(source) as weights:
        yield read_bytes(weights.message(), source.place)


class Weights(PlaceholderStore):
    """Large tensors of one model file.

    Payloads stay in messages that protobuf's libraries would serialize differently: those with a payload in
    several fields, or with a singular field twice. So the reduced model means the same as the file.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source.read)
        self._source = source

    def message(self) -> bytes:
        """Return the serialized model with placeholders instead of large payloads.

        InvalidModel is raised if the file is truncated, or the message is too large without its weights.
        """
        whole = self._source.size
        pieces = self._extract_payloads() if whole >= MIN_STREAMED_FILE else None
        if (whole if pieces is None else sum(map(len, pieces))) > MAX_MESSAGE_BYTES:
            reason = "is not an ONNX model, or is larger than 2 GiB without its weights"
            raise self._named_format() or InvalidModel(
                reason, place=self._source.place, remedy="store its weights in files of external data"
            )
        return self._source.read(0, whole) if pieces is None else b"".join(pieces)

    def _extract_payloads(self) -> list[bytes] | None:
        try:
            return self._reduced_message(0, self._source.size)
        except InvalidModel as error:
            error.place = Place(node=self._source.place)
            raise self._named_format() or error from None

    def _named_format(self) -> InvalidModel | None:
        return named_format(self._source.read, self._source.size, self._source.place)

    def _reduced_message(self, start: int, end: int, name: str = MODEL, depth: int = 0) -> list[bytes] | None:
        """Return the message between two positions with placeholders, or `None` if it stays unchanged."""
        if depth > MAX_MESSAGE_DEPTH:
            return None
        pieces: list[bytes] = []
        copied_up_to = start
        seen: set[int] = set()
        # Repeated occurrences of a singular message field must be detected, whatever their size.
        least = 0 if name in mergeable_messages() else MIN_EXTRACTED_TENSOR
        for field in fields(self._source.read, start, end, least):
            # Do not read a long list of scalars to its end: an attribute with such a list has no tensor.
            if name == ATTRIBUTE and field.number in SCALAR_LIST_FIELDS:
                return None
            part = tensor_fields()[name].get(field.number)
            if part is None:
                continue
            # protobuf merges repeated occurrences of a singular message field, which placeholders cannot
            # express
            if not part.is_repeated and field.number in seen:
                return None
            seen.add(field.number)
            inner = self._reduced_field(field, part, depth)
            if inner is not None:
                if copied_up_to < field.start:
                    pieces.append(self._source.read(copied_up_to, field.start))
                pieces += [field_head(field.number, sum(map(len, inner))), *inner]
                copied_up_to = field.end
        return [*pieces, self._source.read(copied_up_to, end)] if pieces else None

    def _reduced_field(self, field: Field, part: MessageField, depth: int) -> list[bytes] | None:
        if field.kind != LENGTH or field.end - field.value < MIN_EXTRACTED_TENSOR:
            return None
        if part.message == TENSOR:
            return self._reduced_tensor(field.value, field.end)
        return self._reduced_message(field.value, field.end, part.message, depth + 1)

    def _reduced_tensor(self, start: int, end: int) -> list[bytes] | None:
        payload = None
        for field in fields(self._source.read, start, end):
            if field.number in PAYLOAD_WIDTHS:
                if payload is not None or not self._is_extractable(field):
                    return None
                payload = field
        if payload is None:
            return None
        placeholder = self.placeholder(Payload(payload.number, Range(payload.value, payload.end)))
        return [
            self._source.read(start, payload.start),
            bytes_field(RAW_DATA, placeholder),
            self._source.read(payload.end, end),
        ]

    def _is_extractable(self, field: Field) -> bool:
        """Return whether a field is a large payload and contains complete elements only."""
        length = field.end - field.value
        if field.kind != LENGTH or length < MIN_EXTRACTED_TENSOR:
            return False
        width = PAYLOAD_WIDTHS[field.number]
        return length % width == 0 if width else self._source.read(field.end - 1, field.end)[0] < 0x80


class OutputFile(FrozenRecord):
    """Converted model in a temporary file.

    Attributes:
        path: the file; `None` for a model that was sent to a store without a local file.
        report: report of the conversion.
        external: locations of the external data files of the original.
        data: locations of the external data files of the result; one new file if elements are converted.
        data_file: temporary file with converted elements, which becomes the only file in `data`; `None` if no
            elements are converted.
    """

    path: Path | None
    report: Report
    external: tuple[str, ...]
    data: tuple[str, ...]
    data_file: Path | None = None


def output_pieces(
    report: Report, message: bytes, model: ModelProto, weights: Weights, file: Source
) -> list[OutputPiece]:
    """Return the pieces of the output: the whole input file if the conversion changes nothing."""
    converted = serialize_model(model, file.place)
    # Compare two serializations by one library, because the file itself may be encoded differently.
    if not report.opsets and not report.changed and converted == serialize_model(read_bytes(message)):
        return [Range(0, file.size)]
    return weights.restore(converted)
