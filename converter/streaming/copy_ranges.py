"""Copies of byte ranges between files, by the kernel where possible."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from opshift.model.atomic_files import write_all
from opshift.model.progress import Progress
from opshift.model.tensor_pieces import ConvertedRange, OutputPiece, Range
from opshift.stores.source_file import Source

MAX_KERNEL_COPY = 1 << 26
"""Maximum number of bytes per kernel call; a keyboard interrupt is handled between two calls."""

MAX_BUFFERED = 1 << 18
"""Number of bytes of short pieces that are collected before they are written."""

MIN_DIRECT_COPY = 1 << 16
"""Minimum number of bytes of a range that is copied directly; shorter ones are joined in memory."""

PAGE_SIZE = 1 << 12
"""Page size of common file systems, in bytes."""

CopyFunction = Callable[[int, int, int, int], int]
"""Function (source, target, start, count): append at most `count` bytes, and return their number."""


def write_pieces(
    pieces: Iterable[OutputPiece], source: Source, target: int, progress: Progress | None = None
) -> None:
    """Append bytes, and ranges of `source`, to the file with the descriptor `target`.

    `progress` counts the written bytes of ranges.

    Raises:
        InvalidModel: the source file ends too early, or cannot be read.
        OSError: the target cannot be written, for example because the disk is full.
    """
    progress = progress or Progress()
    buffered = bytearray()
    for piece in pieces:
        if isinstance(piece, ConvertedRange):
            write_all(target, buffered)
            buffered.clear()
            for block in piece.blocks(source.read):
                write_all(target, block)
                progress.done += len(block)
        elif not isinstance(piece, Range):
            buffered += piece
        elif piece.end - piece.start < MIN_DIRECT_COPY:
            buffered += source.read(*piece)
            progress.done += piece.end - piece.start
        else:
            write_all(target, buffered)
            buffered.clear()
            copy_range(source, piece, target, progress)
        if len(buffered) > MAX_BUFFERED:
            write_all(target, buffered)
            buffered.clear()
    write_all(target, buffered)


def copy_range(source: Source, part: Range, target: int, progress: Progress | None = None) -> None:
    """Append a range of one file to another by `copy_file_range`, by `sendfile`, or through memory.

    If one method fails, the next continues; copying through memory raises the errors of `write_pieces`. If
    the range has different page offsets in the files, only memory is used, which is then faster.
    """
    progress = progress or Progress()
    shift = _position(target) - part.start
    for copy in KERNEL_COPIES if source.file >= 0 and shift % PAGE_SIZE == 0 else ():
        # A failed method may have copied a part: continue at the end of the target.
        start = _position(target) - shift
        with suppress(OSError):
            while start < part.end:
                count = copy(source.file, target, start, min(part.end - start, MAX_KERNEL_COPY))
                if not count:
                    break
                start += count
                progress.done += count
    start = _position(target) - shift
    while start < part.end:
        # Blocks end at page boundaries of the target.
        page_end = start + source.copy_size - (start + shift) % PAGE_SIZE
        end = min(page_end, part.end)
        write_all(target, source.read(start, end))
        progress.done += end - start
        start = end


def _position(file: int) -> int:
    """Return the write position, which after an error shows how many bytes were written."""
    return os.lseek(file, 0, os.SEEK_CUR)


def _copy_in_file_system(source: int, target: int, start: int, count: int) -> int:
    return os.copy_file_range(source, target, count, offset_src=start)


def _copy_in_kernel(source: int, target: int, start: int, count: int) -> int:
    return os.sendfile(target, source, start, count)


def _available(**methods: CopyFunction) -> tuple[CopyFunction, ...]:
    """Return the functions that this operating system supports."""
    return tuple(copy for name, copy in methods.items() if hasattr(os, name))


KERNEL_COPIES = _available(copy_file_range=_copy_in_file_system, sendfile=_copy_in_kernel)
