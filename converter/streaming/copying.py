"""Byte ranges of one file into another, by the kernel where it can."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from opshift.converter.streaming.pieces import Piece, Range
from opshift.converter.streaming.replacing import write_all
from opshift.converter.streaming.source import Source

MOST_AT_ONCE = 1 << 26
"""Between two calls an interruption is heard."""
MOST_IN_MEMORY = 1 << 18
SHORT = 1 << 16
"""Shorter ranges are cheaper to read, and to write together."""
Copy = Callable[[int, int, int, int], int]
"""Appends bytes of one file to another: given both, a position and a count it tells how many it took."""


def write_pieces(pieces: Iterable[Piece], source: Source, target: int) -> None:
    """Append pieces to a file; ranges are of another.

    Raises:
        InvalidModel: the file to read from ends too early, or cannot be read.
        OSError: the disk is full, say.
    """
    waiting = bytearray()
    for piece in pieces:
        if not isinstance(piece, Range):
            waiting += piece
        elif piece.end - piece.start < SHORT:
            waiting += source.read(*piece)
        else:
            write_all(target, waiting)
            waiting.clear()
            copy_range(source, piece, target)
        if len(waiting) > MOST_IN_MEMORY:
            write_all(target, waiting)
            waiting.clear()
    write_all(target, waiting)


def copy_range(source: Source, part: Range, target: int) -> None:
    """Append a range of one file to another: `copy_file_range`, else `sendfile`, else through memory.

    What one of them cannot do, for whatever reason, the next one tries; the last one tells.
    """
    start, end = part
    for copy in KERNEL:
        try:
            while start < end and (done := copy(source.file, target, start, min(end - start, MOST_AT_ONCE))):
                start += done
        except OSError:
            continue
    while start < end:
        known = min(start + MOST_IN_MEMORY, end)
        write_all(target, source.read(start, known))
        start = known


def _copy_file_range(source: int, target: int, start: int, count: int) -> int:
    return os.copy_file_range(source, target, count, offset_src=start)


def _sendfile(source: int, target: int, start: int, count: int) -> int:
    return os.sendfile(target, source, start, count)


KERNEL: tuple[Copy, ...] = tuple(
    copy
    for name, copy in (("copy_file_range", _copy_file_range), ("sendfile", _sendfile))
    if hasattr(os, name)
)
"""What the system has, the best first."""
