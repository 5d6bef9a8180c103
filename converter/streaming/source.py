"""A file that is read while it has to stay as it is."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from types import TracebackType

from opshift.converter.errors import InvalidModel
from opshift.converter.streaming.wire import LARGEST_READ


class Source:
    """An open file.

    It is read, not mapped into memory: of a mapped file that somebody cuts off, the next look kills the
    process.

    Attributes:
        path: what it is called.
        file: the descriptor.
        size: its length in bytes when it was opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.file = _regular(os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)))
        except (OSError, ValueError) as error:  # ValueError: a null character in the path
            raise self._unreadable(error) from error
        self.size, self._changed = self._state()
        self._last = 0, b""

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self.file)

    def read(self, start: int, end: int) -> bytes:
        """The bytes from one position to another; what was read last is at hand.

        Raises:
            InvalidModel: the file ends before, or cannot be read.
        """
        base, known = self._last
        if base <= start and end <= base + len(known):
            return known[start - base : end - base]
        found = self._read(start, end)
        if len(found) <= LARGEST_READ:
            self._last = start, found
        return found

    def _read(self, start: int, end: int) -> bytes:
        try:
            os.lseek(self.file, start, os.SEEK_SET)  # not every system has pread
            found = os.read(self.file, end - start)
            while len(found) < end - start:  # the system hands over 2 GiB at most
                more = os.read(self.file, end - start - len(found))
                if not more:
                    raise self._moved("got shorter while it was read")
                found += more
        except OSError as error:
            raise self._unreadable(error) from error
        return found

    def require_unchanged(self) -> None:
        """Check that nobody wrote to the file since it was opened.

        Raises:
            InvalidModel: somebody did.
        """
        if self._state() != (self.size, self._changed):
            raise self._moved("changed while it was read")

    def _state(self) -> tuple[int, int]:
        found = os.fstat(self.file)
        return found.st_size, found.st_mtime_ns

    def _moved(self, reason: str) -> InvalidModel:
        return InvalidModel(reason, place=str(self.path), remedy="convert it when nothing writes to it")

    def _unreadable(self, error: OSError | ValueError) -> InvalidModel:
        reason = getattr(error, "strerror", None) or error
        return InvalidModel(f"cannot be read: {reason}", place=str(self.path))


def _regular(file: int) -> int:
    """A file that can be read anywhere: of a pipe, what came out of it."""
    if not stat.S_ISFIFO(os.fstat(file).st_mode):
        return file
    import tempfile

    with open(file, "rb") as pipe, tempfile.TemporaryFile() as spool:
        shutil.copyfileobj(pipe, spool)
        spool.flush()
        return os.dup(spool.fileno())
