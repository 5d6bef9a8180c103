"""Input file that has to stay unchanged while it is read."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from opshift.model.errors import InvalidModel
from opshift.model.file_formats import unreadable
from opshift.model.wire_format import MAX_READ_SIZE


class SourceFile:
    """Open input file.

    The file is read and not mapped into memory: if another process truncates a mapped file, the next access
    kills this process. `file` is the descriptor, and `size` the size in bytes when the file was opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.file = _seekable(os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)))
        except (OSError, ValueError) as error:
            raise unreadable(path, error) from error
        self.size, self._changed = self._state()
        # nested messages start in bytes that were read for the enclosing message, so keep the last read
        self._last = 0, b""

    def __enter__(self) -> SourceFile:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.file)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two positions, or raise InvalidModel if the file lacks them."""
        base, cached = self._last
        if base <= start and end <= base + len(cached):
            return cached[start - base : end - base]
        try:
            os.lseek(self.file, start, os.SEEK_SET)  # not every system has pread
            found = os.read(self.file, end - start)
            while len(found) < end - start:  # one call returns at most 2 GiB
                more = os.read(self.file, end - start - len(found))
                if not more:
                    raise self._changed_meanwhile("was truncated while it was read")
                found += more
        except OSError as error:
            raise unreadable(self.path, error) from error
        if len(found) <= MAX_READ_SIZE:  # do not keep tensors or whole files in memory
            self._last = start, found
        return found

    def require_unchanged(self) -> None:
        """Raise InvalidModel if the size or modification time changed after the file was opened."""
        if self._state() != (self.size, self._changed):
            raise self._changed_meanwhile("changed while it was read")

    def _state(self) -> tuple[int, int]:
        found = os.fstat(self.file)
        return found.st_size, found.st_mtime_ns

    def _changed_meanwhile(self, reason: str) -> InvalidModel:
        return InvalidModel(
            reason, place=str(self.path), remedy="convert it again when no other process writes to it"
        )


def _seekable(file: int) -> int:
    """Return a descriptor that supports seeking: for a pipe, a temporary file with its content."""
    if not stat.S_ISFIFO(os.fstat(file).st_mode):
        return file
    import tempfile

    with open(file, "rb") as pipe, tempfile.TemporaryFile() as spool:
        shutil.copyfileobj(pipe, spool)
        spool.flush()
        return os.dup(spool.fileno())
