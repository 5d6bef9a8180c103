"""Input file that has to stay unchanged while it is read."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Union

from opshift.model.binary_files import file_name, read_blocks, regular_descriptor, temporary_copy
from opshift.model.file_formats import changed_file, unreadable
from opshift.model.files import FileLike
from opshift.model.locations import is_url
from opshift.model.stream_limits import limited
from opshift.model.wire_format import MAX_READ_SIZE

if TYPE_CHECKING:
    from opshift.model.remote import RemoteFile


Source = Union["SourceFile", "RemoteFile"]
"""Open input: a local file, or an object in a store."""


def open_source(source: FileLike, *, needs_identity: bool = False) -> Source:
    """Open a path, a URL or a file object; `needs_identity` is explained at `open_object`.

    Raises:
        InvalidModel: the source cannot be read.
        UsageError: no installed package supports the URL.
    """
    if not is_url(source):
        return SourceFile(source)
    from opshift.model.remote import open_url  # imported here: few models are read from a URL

    file = open_url(str(source), needs_identity=needs_identity)
    if not isinstance(file, io.FileIO):
        return file
    with file:  # `SourceFile` opens a descriptor of its own
        return SourceFile(file)


class SourceFile:
    """Open input file.

    The file is read and not mapped into memory: if another process truncates a mapped file, the next access
    kills this process. `file` is the descriptor, and `size` the size in bytes when the file was opened.
    `place` names the file in messages, and `path` is `None` for a file object.
    """

    copy_size = 1 << 20
    """Number of bytes to copy at once: large for few calls, small enough for the caches of the processor."""

    def __init__(self, source: FileLike) -> None:
        self.path = Path(source) if isinstance(source, str | os.PathLike) else None
        self.place = str(self.path or file_name(source))
        try:
            self.file = _descriptor(source)
        except (OSError, ValueError) as error:
            raise unreadable(self.place, error) from error
        self.size, self._changed = self._current_state()
        # Keep the last read: a nested message starts in bytes that were read for the enclosing message.
        self._last = 0, b""

    def __enter__(self) -> SourceFile:
        return self

    def __exit__(self, *error: object) -> None:
        # The file object of the caller may share the offset of the descriptor: reset the offset to 0.
        os.lseek(self.file, 0, os.SEEK_SET)
        os.close(self.file)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two positions, or raise InvalidModel if the file lacks them."""
        base, cached = self._last
        if base <= start and end <= base + len(cached):
            return cached[start - base : end - base]
        try:
            os.lseek(self.file, start, os.SEEK_SET)  # pread is missing on some systems, such as Windows
            found = os.read(self.file, end - start)
            while len(found) < end - start:  # one call returns at most 2 GiB
                more = os.read(self.file, end - start - len(found))
                if not more:
                    raise changed_file("was truncated while it was read", self.place)
                found += more
        except OSError as error:
            raise unreadable(self.place, error) from error
        if len(found) <= MAX_READ_SIZE:  # do not keep tensors or whole files in memory
            self._last = start, found
        return found

    def require_unchanged(self) -> None:
        """Raise InvalidModel if the size or modification time changed after the file was opened."""
        if self._current_state() != (self.size, self._changed):
            raise changed_file("changed while it was read", self.place)

    def _current_state(self) -> tuple[int, int]:
        found = os.fstat(self.file)
        return found.st_size, found.st_mtime_ns


def _descriptor(source: FileLike) -> int:
    """Return a descriptor that supports seeking; a pipe or other stream is copied to a temporary file."""
    if not isinstance(source, str | os.PathLike):
        shared = regular_descriptor(source)
        if shared is not None:
            return os.dup(shared)
        return temporary_copy(limited(read_blocks(source), file_name(source)))
    file = os.open(source, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    if not stat.S_ISFIFO(os.fstat(file).st_mode):
        return file
    with open(file, "rb") as pipe:
        return temporary_copy(limited(read_blocks(pipe), os.fspath(source)))
