"""Ledger in a local file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from opshift.model.atomic_files import AtomicFiles, raising_cannot_write, write_all
from opshift.model.errors import UsageError
from opshift.model.plain_data import MAX_FILE_BYTES


class LedgerFile:
    """Ledger in a local file, which grows with each line.

    Raises:
        UsageError: another run uses the ledger, or the file is not a ledger.
        CannotWrite: the file cannot be read or written.
    """

    def __init__(self, location: str) -> None:
        self._path = Path(os.path.realpath(location))
        with raising_cannot_write(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._file = os.open(self._path, flags, 0o666)
            self._require_only_run()

    def _require_only_run(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows: two runs do the same work twice
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = "another run uses this ledger"
            remedy = "wait for its end, or name another with --ledger"
            raise UsageError(reason, place=str(self._path), remedy=remedy) from None
        except OSError:  # a file system without locks
            return

    def read(self) -> Iterator[bytes]:
        """Yield the lines; a line that was cut off gets an end."""
        last = b"\n"
        with raising_cannot_write(self._path), open(self._file, "rb", closefd=False) as file:
            if file.peek(1)[:1] not in (b"", b"{"):
                reason, remedy = "is not a ledger", "name another file with --ledger"
                raise UsageError(reason, place=str(self._path), remedy=remedy)
            for last in iter(partial(file.readline, MAX_FILE_BYTES), b""):
                yield last
        if not last.endswith(b"\n"):  # the run was killed while it wrote the line
            self.append(b"\n")

    def append(self, lines: bytes) -> None:
        """Write lines."""
        with raising_cannot_write(self._path):
            write_all(self._file, lines)

    def replace(self, lines: Iterable[bytes]) -> None:
        """Replace all lines."""
        with AtomicFiles() as files, raising_cannot_write(self._path), files.new(self._path) as (file, _):
            for line in lines:
                write_all(file, line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
