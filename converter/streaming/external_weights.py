"""External data whose elements are converted: read from all data files, written to one new file."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from opshift.model.element_types import BY_NUMBER, byte_size
from opshift.model.errors import InvalidModel
from opshift.model.messages import ModelProto, TensorProto
from opshift.model.offloaded_tensors import (
    EXTERNAL,
    Payload,
    PlaceholderStore,
    byte_count,
    model_tensors,
    read_external_data,
)
from opshift.model.tensor_pieces import RAW_DATA, ConvertedRange, OutputPiece, Range, read_blocks, total_size
from opshift.model.tensors import element_count
from opshift.stores.source_file import SourceFile

ALIGNMENT = 1 << 12
"""Offsets of tensors are multiples of this page size, so that runtimes can map them into memory."""


class ExternalWeights(PlaceholderStore):
    """External tensors of one model, replaced by placeholders while the model is converted.

    The `Range` of a payload counts bytes in the concatenation of all data files.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(self._read_range)
        self._folder = folder
        self._files: list[SourceFile] = []
        self._starts: list[int] = []
        self._positions: dict[str, int] = {}
        self._end = 0
        self._stack = ExitStack()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._stack.close()

    def take(self, model: ModelProto) -> None:
        """Replace the external data of all tensors by placeholders; empty tensors become internal."""
        for tensor in model_tensors(model):
            if tensor.data_location == EXTERNAL:
                elements = self._element_range(tensor)
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")
                # empty tensors stay in the model: onnxruntime refuses an empty range at the end of a file
                is_empty = elements.start == elements.end
                tensor.raw_data = b"" if is_empty else self.placeholder(Payload(RAW_DATA, elements))

    def externalize(self, model: ModelProto, location: str) -> list[OutputPiece]:
        """Make the tensors external again, in the new file `location`; return the pieces of this file."""
        pieces: list[OutputPiece] = []
        size = 0
        for tensor in model_tensors(model):
            if not self.holds(tensor.raw_data):
                continue
            elements = self.payload_at(tensor.raw_data, 0).elements
            padding = -size % ALIGNMENT
            length = total_size([elements])
            tensor.ClearField("raw_data")
            tensor.data_location = EXTERNAL
            for key, value in (("location", location), ("offset", size + padding), ("length", length)):
                tensor.external_data.add(key=key, value=str(value))
            pieces += [bytes(padding), elements]
            size += padding + length
        return pieces

    def blocks(self, piece: OutputPiece) -> Iterator[bytes]:
        """Yield the bytes of a piece."""
        if isinstance(piece, ConvertedRange):
            yield from piece.blocks(self._read_range)
        elif isinstance(piece, Range):
            yield from read_blocks(piece, self._read_range)
        else:
            yield piece

    def require_unchanged(self) -> None:
        """Raise InvalidModel if a data file changed since it was opened."""
        for file in self._files:
            file.require_unchanged()

    def _element_range(self, tensor: TensorProto) -> Range:
        data = read_external_data(tensor)
        kind, count = BY_NUMBER.get(tensor.data_type), element_count(tensor)
        length = byte_count(data.length) if data.length else None
        expected = byte_size(kind, count) if kind is not None and count is not None else None
        if expected is None or length not in (None, expected):
            reason = f"tensor {tensor.name!r} has external data that do not match its type and shape"
            raise InvalidModel(reason, remedy="correct the type, the shape, or the length of the data")
        start = self._position_of(data.location) + (byte_count(data.offset) or 0 if data.offset else 0)
        return Range(start, start + expected)

    def _position_of(self, location: str) -> int:
        if location not in self._positions:
            file = self._stack.enter_context(SourceFile(self._folder / location))
            self._positions[location] = self._end
            self._starts.append(self._end)
            self._files.append(file)
            self._end += file.size
        return self._positions[location]

    def _read_range(self, start: int, end: int) -> bytes:
        position = bisect(self._starts, start) - 1
        base = self._starts[position]
        return self._files[position].read(start - base, end - base)


def relocate_external_data(model: ModelProto, location: str) -> None:
    """Set the `location` of all external tensors of a model."""
    for tensor in model_tensors(model):
        for each in tensor.external_data:
            if each.key == "location":
                each.value = location
