"""Byte ranges of one file into another, by the kernel where it can."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from opshift.converter.streaming.pieces import Piece, Range
from opshift.converter.streaming.replacing import write_all
from opshift.converter.streaming.source import Source

MOST_AT_ONCE = 1 << 26
"""Between two calls an interruption is heard."""
MOST_WAITING = 1 << 18
MOST_IN_MEMORY = 1 << 20
"""Large enough for few calls, small enough to be written while it is still near the processor."""
SHORT = 1 << 16
"""Shorter ranges are cheaper to read, and to write together."""
PAGE = 1 << 12
Copy = Callable[[int, int, int, int], None]
"""Appends to a file what lies in another between two positions, as far as it can."""


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
        if len(waiting) > MOST_WAITING:
            write_all(target, waiting)
            waiting.clear()
    write_all(target, waiting)


def copy_range(source: Source, part: Range, target: int) -> None:
    """Append a range of one file to another: by `copy_file_range`, else `sendfile`, else through memory.

    What one of them cannot do, for whatever reason, the next one tries; the last one tells. The kernel takes
    pages as they are: where those of the two files do not lie alike, memory is the fastest way.

    Raises:
        InvalidModel: the file to read from ends too early, or cannot be read.
        OSError: the disk is full, say.
    """
    shift = _position(target) - part.start
    for copy in KERNEL if shift % PAGE == 0 else ():
        with suppress(OSError):
            copy(source.file, target, _position(target) - shift, part.end)
    start = _position(target) - shift
    while start < part.end:
        whole_pages = start + MOST_IN_MEMORY - (start + shift) % PAGE
        end = min(whole_pages, part.end)
        write_all(target, source.read(start, end))
        start = end


def _position(file: int) -> int:
    """Where the next bytes go; after an error it tells how many went."""
    return os.lseek(file, 0, os.SEEK_CUR)


def _by_file_system(source: int, target: int, start: int, end: int) -> None:
    while start < end:
        count = os.copy_file_range(source, target, min(end - start, MOST_AT_ONCE), offset_src=start)
        if not count:
            return
        start += count


def _by_kernel(source: int, target: int, start: int, end: int) -> None:
    while start < end:
        count = os.sendfile(target, source, start, min(end - start, MOST_AT_ONCE))
        if not count:
            return
        start += count


def _ways(**known: Copy) -> tuple[Copy, ...]:
    """Those that the system has."""
    return tuple(copy for name, copy in known.items() if hasattr(os, name))


KERNEL = _ways(copy_file_range=_by_file_system, sendfile=_by_kernel)
