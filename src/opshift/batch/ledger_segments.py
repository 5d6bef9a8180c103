"""Ledger in a store, whose objects cannot be appended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

from opshift.model.errors import InvalidModel
from opshift.stores.list_objects import objects_below
from opshift.stores.locations import exists
from opshift.stores.source_file import open_source
from opshift.stores.uploads import remove_object, write_object

SEGMENT_SECONDS = 1.0
"""Time between two segments. A killed run loses the lines of this time; the next run finds the outputs."""

MAX_SEGMENT = 16 << 20
"""Bytes of lines after which a segment is written at once."""

SUFFIX = ".jsonl"


class LedgerSegments:
    """Ledger in the objects of a folder, each with the lines of about a second, in the order of their names.

    Two runs may use it at a time: both convert models, and the lines of either are valid.

    Raises:
        InvalidModel: the store cannot be read.
        UsageError: the URL is not usable.
    """

    def __init__(self, location: str) -> None:
        self._folder = f"{location.rstrip('/')}/"
        self._segments: list[str] = []
        self._waiting: list[bytes] = []
        self._size = 0
        self._written = time.monotonic()

    def read(self) -> Iterator[bytes]:
        """Yield the lines of all segments."""
        if not exists(self._folder):
            return
        for name in sorted(each for each in objects_below(self._folder) if each.endswith(SUFFIX)):
            location = self._folder + name
            try:
                with open_source(location) as segment:
                    lines = segment.read(0, segment.size).splitlines(keepends=True)
            except InvalidModel:
                if not exists(location):  # another run replaced it
                    continue
                raise
            self._segments.append(location)
            yield from lines

    def append(self, lines: bytes) -> None:
        """Write lines with the next segment."""
        self._waiting.append(lines)
        self._size += len(lines)
        if time.monotonic() - self._written >= SEGMENT_SECONDS or self._size >= MAX_SEGMENT:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            # the time orders the segments of several runs, and the process keeps their names apart
            location = f"{self._folder}{time.time_ns():020}-{os.getpid()}{SUFFIX}"
            write_object(location, b"".join(self._waiting))
            self._segments.append(location)
        self._waiting.clear()
        self._size = 0
        self._written = time.monotonic()

    def replace(self, lines: Iterable[bytes]) -> None:
        """Replace the lines of all segments that were read and written."""
        self._write()
        replaced, self._segments = self._segments, []
        for line in lines:
            self.append(line)
        self._write()
        for location in replaced:
            remove_object(location)

    def close(self) -> None:
        """Write the remaining lines."""
        self._write()
