"""Serialized messages as pieces: bytes, and ranges of the file that the model was read from."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from opshift.model.tensor_locations import TENSOR, tensor_fields
from opshift.model.wire_format import field_head, fields


class Range(NamedTuple):
    """Byte range of a file."""

    start: int
    end: int


Piece = bytes | Range

ReplaceTensor = Callable[[int, int, int], list[Piece] | None]
"""Function that returns the pieces that replace a tensor, or `None` to keep it. Its arguments are the mark in
the tensor, and the start and end of the tensor."""


def total_size(pieces: Sequence[Piece]) -> int:
    """Return the total size of pieces in bytes."""
    return sum([each[1] - each[0] if each.__class__ is Range else len(each) for each in pieces])


def rewrite_tensors(data: bytes, name: str, marks: Iterable[int], change: ReplaceTensor) -> list[Piece]:
    """Replace the tensors in a serialized message that contain marked positions, and update all lengths.

    `name` is that of the message type, such as `ModelProto`, and the marks are in ascending order.
    """
    remaining = [len(data), *reversed(tuple(marks))]
    return _Rewriter(data, remaining, change).rewritten(0, len(data), name) or [data]


class _Rewriter:
    def __init__(self, data: bytes, marks: list[int], change: ReplaceTensor) -> None:
        self._data = data
        self._marks = marks
        """Remaining marks in descending order, after a sentinel at the end of the message."""
        self._change = change

    def rewritten(self, start: int, end: int, name: str) -> list[Piece] | None:
        """Return the pieces of a message or of a nested message, or `None` if it stays unchanged."""
        marks = self._marks
        if marks[-1] >= end:
            return None
        if name == TENSOR:
            return self._change(marks[-1], start, end)
        pieces: list[Piece] = []
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
