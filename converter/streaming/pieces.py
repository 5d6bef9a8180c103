"""A serialized message in pieces: bytes, and ranges of the file that the model was read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from opshift.converter.streaming.layout import TENSOR, layout
from opshift.converter.streaming.wire import fields, tagged


class Range(NamedTuple):
    """Bytes of a file."""

    start: int
    end: int


Piece = bytes | Range
Change = Callable[[int, int, int], list[Piece] | None]
"""What takes the place of a tensor, `None` if it stays. Given are the mark in it, its start and its end."""


def size(pieces: Sequence[Piece]) -> int:
    """How many bytes the pieces make."""
    return sum([each[1] - each[0] if each.__class__ is Range else len(each) for each in pieces])


def rewritten(data: bytes, name: str, marks: Iterable[int], change: Change) -> list[Piece]:
    """A serialized message, in which those tensors are changed that certain bytes lie in; all lengths fit.

    Args:
        data: the message.
        name: what it is, as `ModelProto`.
        marks: the positions of the bytes, ascending.
        change: what takes a tensor's place.

    Raises:
        InvalidModel: it is no message.
    """
    ahead = [len(data), *reversed(tuple(marks))]
    return _Rewriting(data, ahead, change).inner(0, len(data), name) or [data]


class _Rewriting:
    def __init__(self, data: bytes, marks: list[int], change: Change) -> None:
        self._data = data
        self._marks = marks
        """Those ahead, the next one last; beyond all of them, the end."""
        self._change = change

    def inner(self, start: int, end: int, name: str) -> list[Piece] | None:
        """A message, or one in it; `None` if it stays as it is."""
        if name == TENSOR:
            return self._change(self._marks[-1], start, end) if self._marks[-1] < end else None
        return self._message(start, end, name)

    def _message(self, start: int, end: int, name: str) -> list[Piece] | None:
        found: list[Piece] = []
        parts, marks, kept = layout()[name], self._marks, start
        if marks[-1] >= end:
            return None
        for field in fields(self._read, start, end, marks=marks):
            part = parts.get(field.number)
            inner = self.inner(field.value, field.end, part.message) if part else None
            while marks[-1] < field.end:
                marks.pop()
            if inner is not None:
                found += [self._data[kept : field.start] + tagged(field.number, size(inner)), *inner]
                kept = field.end
            if marks[-1] >= end:
                break
        return [*found, self._data[kept:end]] if found else None

    def _read(self, start: int, end: int) -> bytes:
        return self._data[start:end]
