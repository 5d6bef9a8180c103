"""Serialized messages as pieces: bytes, and ranges of the file that the model was read from."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from opshift.model.tensor_locations import TENSOR, tensor_fields
from opshift.model.wire_format import ReadBytes, field_head, fields

BLOCK = 1 << 20
"""Number of bytes that are converted at once, a multiple of the size of every element."""


class Range(NamedTuple):
    """Byte range of a file."""

    start: int
    end: int


class ElementConversion(Protocol):
    """Conversion of the elements of a tensor to another element type."""

    def new_size(self, size: int) -> int:
        """Return the number of bytes after the conversion of a number of bytes."""
        ...

    def convert(self, data: bytes) -> bytes:
        """Return converted elements."""
        ...

    def require_range(self, data: bytes) -> None:
        """Raise an error if elements cannot be converted."""
        ...


class ConvertedRange:
    """Elements in a byte range of a file, converted while they are written."""

    def __init__(self, elements: Range, conversion: ElementConversion) -> None:
        self.elements = elements
        self.conversion = conversion

    def __len__(self) -> int:
        return self.conversion.new_size(self.elements.end - self.elements.start)

    def blocks(self, read: ReadBytes) -> Iterator[bytes]:
        """Yield the converted elements."""
        yield from map(self.conversion.convert, read_blocks(self.elements, read))


def read_blocks(elements: Range, read: ReadBytes) -> Iterator[bytes]:
    """Yield the bytes of a range in blocks of whole elements."""
    for start in range(elements.start, elements.end, BLOCK):
        yield read(start, min(start + BLOCK, elements.end))


Piece = bytes | Range

OutputPiece = Piece | ConvertedRange

ReplaceTensor = Callable[[int, int, int], Sequence[OutputPiece] | None]
"""Function that returns the pieces that replace a tensor, or `None` to keep it. Its arguments are the mark in
the tensor, and the start and end of the tensor."""


def unconverted(pieces: Sequence[OutputPiece]) -> list[Piece] | None:
    """Return pieces that need no conversion of elements; `None` if some do."""
    found = [each for each in pieces if not isinstance(each, ConvertedRange)]
    return found if len(found) == len(pieces) else None


def total_size(pieces: Sequence[OutputPiece]) -> int:
    """Return the total size of pieces in bytes."""
    return sum([each.end - each.start if isinstance(each, Range) else len(each) for each in pieces])


def rewrite_tensors(data: bytes, name: str, marks: Iterable[int], change: ReplaceTensor) -> list[OutputPiece]:
    """Replace the tensors in a serialized message that contain marked positions, and update all lengths.

    `name` is that of the message type, such as `ModelProto`, and the marks are in ascending order.
    """
    remaining = [len(data), *reversed(tuple(marks))]
    return [*(_Rewriter(data, remaining, change).rewritten(0, len(data), name) or [data])]


class _Rewriter:
    def __init__(self, data: bytes, marks: list[int], change: ReplaceTensor) -> None:
        self._data = data
        self._marks = marks
        """Remaining marks in descending order, after a sentinel at the end of the message."""
        self._change = change

    def rewritten(self, start: int, end: int, name: str) -> Sequence[OutputPiece] | None:
        """Return the pieces of a message or of a nested message, or `None` if it stays unchanged."""
        marks = self._marks
        if marks[-1] >= end:
            return None
        if name == TENSOR:
            return self._change(marks[-1], start, end)
        pieces: list[OutputPiece] = []
        parts, copied_up_to = tensor_fields()[name], start
        for field in fields(lambda first, last: self._data[first:last], start, end, marks=marks):
            part = parts.get(field.number)
            inner = self.rewritten(field.value, field.end, part.message) if part else None
            while marks[-1] < field.end:
                marks.pop()
            if inner is not None:
                pieces += [
                    self._data[copied_up_to : field.start] + field_head(field.number, total_size(inner)),
                    *inner,
                ]
                copied_up_to = field.end
            if marks[-1] >= end:
                break
        return [*pieces, self._data[copied_up_to:end]] if pieces else None
