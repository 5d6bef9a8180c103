"""Ledger of a batch: one JSON line per model, which later runs compare with the files."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from opshift.batch.file_states import full_name
from opshift.batch.outcome import STARTED, WRITTEN, Entry, ModelOutcome, Task
from opshift.batch.run_chunks import WORKER_LOST
from opshift.model.atomic_files import AtomicFiles, raising_cannot_write, write_all
from opshift.model.errors import CannotWrite, InvalidModel, UsageError
from opshift.model.locations import is_url, is_web_url, json_without_secrets, without_secrets
from opshift.model.plain_data import MAX_FILE_BYTES
from opshift.stores.list_objects import objects_below
from opshift.stores.locations import exists, folder_prefix, join, url_below
from opshift.stores.source_file import open_source
from opshift.stores.uploads import remove_object, write_object
from opshift.version import package_version

if TYPE_CHECKING:
    from opshift.converter.report import Report


SEGMENT_SECONDS = 1.0
"""Seconds between segments. A killed run loses its last lines, but the next run checks the outputs."""

MAX_SEGMENT = 16 << 20
"""Size in bytes of the unwritten lines at which a segment is written early."""

SUFFIX = ".jsonl"


class LedgerSegments:
    """Ledger in a folder of a store; each object (segment) has the lines of about a second.

    The names of the segments give their order. Two runs may use one ledger at a time: all lines are valid.
    The methods raise InvalidModel if the store cannot be read, CannotWrite if it cannot be written, and
    UsageError if the URL is not usable.
    """

    def __init__(self, location: str) -> None:
        self._folder = folder_prefix(location)
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
                if not exists(location):  # another run replaced the segment after it was listed
                    continue
                raise
            self._segments.append(location)
            yield from lines

    def append(self, lines: bytes) -> None:
        """Add lines to the next segment."""
        self._waiting.append(lines)
        self._size += len(lines)
        if time.monotonic() - self._written >= SEGMENT_SECONDS or self._size >= MAX_SEGMENT:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            # The time orders the segments of several runs, and the process id makes their names unique.
            location = f"{self._folder}{time.time_ns():020}-{os.getpid()}{SUFFIX}"
            write_object(location, b"".join(self._waiting))
            self._segments.append(location)
        self._waiting.clear()
        self._size = 0
        self._written = time.monotonic()

    def replace(self, lines: Iterable[bytes]) -> None:
        """Replace all segments that this run read or wrote with new segments of `lines`."""
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


LINE_STARTS: Final = (b'{"source": ', b'{"gate": ')
"""Starts of the lines of conversions, and of other commands; other files are not ledgers."""


class LedgerFile:
    """Ledger in a local file, to which lines are appended.

    Raises:
        UsageError: another run uses the ledger.
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
        except ImportError:  # Windows has no such locks: two runs may do the same work twice
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = "another run uses this ledger"
            remedy = "wait until that run ends, or name another ledger with --ledger"
            raise UsageError(reason, place=str(self._path), remedy=remedy) from None
        except OSError:  # the file system has no locks
            return

    def read(self) -> Iterator[bytes]:
        """Yield the lines; raise UsageError if the file is not a ledger.

        If the last line was cut off, a line break is appended to the file.
        """
        last = b"\n"
        with raising_cannot_write(self._path), open(self._file, "rb", closefd=False) as file:
            start = file.peek(1)
            # the file may end within its first line, after a kill
            if not any(each.startswith(start[: len(each)]) for each in LINE_STARTS):
                reason, remedy = "is not a ledger", "name another file with --ledger"
                raise UsageError(reason, place=str(self._path), remedy=remedy)
            for last in iter(partial(file.readline, MAX_FILE_BYTES), b""):
                yield last
        if not last.endswith(b"\n"):  # the run was killed while it wrote the line
            self.append(b"\n")

    def append(self, lines: bytes) -> None:
        """Append lines to the file."""
        with raising_cannot_write(self._path):
            write_all(self._file, lines)

    def replace(self, lines: Iterable[bytes]) -> None:
        """Replace the file with a file of these lines, atomically."""
        with AtomicFiles() as files, raising_cannot_write(self._path), files.new(self._path) as (file, _):
            for line in lines:
                write_all(file, line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


LEDGER_NAME = "opshift-ledger.jsonl"
"""Name of the ledger in the output folder."""

LEDGER_FOLDER = "opshift-ledger"
"""Name of the folder of a ledger in a store."""


def ledger_location(out: str) -> str:
    """Return the default location of the ledger of an output folder."""
    return join(out, LEDGER_FOLDER) if is_url(out) else os.path.join(out, LEDGER_NAME)


class Ledger:
    """Ledger with one JSON line for each outcome; the last line about an output replaces earlier ones.

    Raises:
        UsageError: another run uses the ledger, or the file is not a ledger.
        CannotWrite, InvalidModel: the file or the store cannot be read or written.
    """

    def __init__(self, location: str) -> None:
        self._lines = 0
        # SQLite moves the database to disk beyond a few megabytes: there may be millions of models.
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._index.execute("CREATE TABLE entries (output BLOB PRIMARY KEY, line BLOB)")
        # All rows of a data file have the same digest, because `_add` removes rows with other digests.
        columns = "path BLOB, output BLOB, source BLOB, digest TEXT, PRIMARY KEY (path, output)"
        self._index.execute(f"CREATE TABLE data ({columns})")
        self._index.execute("CREATE INDEX data_of_outputs ON data (output)")
        self._file = ledger_storage(location)
        self._index.execute("BEGIN")
        for line in self._file.read():
            self._add(line)
        self._index.execute("COMMIT")

    def _add(self, line: bytes) -> None:
        """Index a line of the ledger; ignore an invalid or incomplete line."""
        self._lines += 1
        parsed = Entry.parse(line)
        if parsed is not None:
            output, entry = parsed
            key = _location_key(output)
            self._index.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", (key, line))
            self._index.execute("DELETE FROM data WHERE output = ?", (key,))
            for path, (source, digest) in entry.data.items():
                # Rows with another digest describe content that has been replaced.
                self._index.execute(
                    "DELETE FROM data WHERE path = ? AND digest != ?", (_location_key(path), digest)
                )
                row = (_location_key(path), key, _location_key(source), digest)
                self._index.execute("INSERT INTO data VALUES (?, ?, ?, ?)", row)

    def entry(self, output: str) -> Entry | None:
        """Return the entry of an output; `None` if the ledger has none."""
        key = _location_key(full_name(output))
        found = self._index.execute("SELECT line FROM entries WHERE output = ?", (key,)).fetchone()
        parsed = Entry.parse(found[0]) if found else None
        return parsed[1] if parsed else None

    def data_users(self, output: str, path: str, source: str) -> Iterator[str]:
        """Yield the other outputs whose data file `path` is a copy of a file other than `source`."""
        values = (_location_key(full_name(each)) for each in (path, output, source))
        query = "SELECT output FROM data WHERE path = ? AND output != ? AND source != ?"
        yield from (_name_of_key(found) for (found,) in self._index.execute(query, tuple(values)).fetchall())

    def data_users_below(self, output: str, folder: str, source: str) -> Iterator[tuple[str, str]]:
        """Yield pairs of a data file below `folder` and another output in the ledger that has this file.

        Skip files that were copied from the same relative path below the folder `source`. `source` is a
        folder, because the data files of an object are known only during its conversion.
        """
        below, read = (_location_key(folder_prefix(full_name(each))) for each in (folder, source))
        query = (
            "SELECT path, output, source FROM data WHERE substr(path, 1, ?) = ? AND output != ? "
            "AND source != CAST(? || substr(path, ?) AS BLOB)"
        )
        values = (len(below), below, _location_key(full_name(output)), read, len(below) + 1)
        for path, found, copied in self._index.execute(query, values):
            # SQL cannot percent-encode names: on a web server, `a%20b` may be the source of the file `a b`.
            relative = _name_of_key(path[len(below) :])
            if not is_web_url(source) or copied != _location_key(url_below(source, quote(relative))):
                yield _name_of_key(path), _name_of_key(found)

    def start(self, source: str, output: str) -> None:
        """Record that this run may write an output that no run with this ledger wrote before.

        If the run is killed before it records the outcome, a later run may replace the output.
        """
        names = {"source": full_name(source), "output": full_name(output)}
        self._write([{**names, "status": STARTED, "options": "", "owns_output": True}])

    def add(self, outcomes: Iterable[tuple[Task, ModelOutcome]], options: str) -> None:
        """Append a line for each outcome that is not yet in the ledger; `options` is the options digest."""
        self._write(
            _record_of(task, outcome, options) | {"data": self._data_of_outcome(outcome)}
            for task, outcome in outcomes
            if task.is_started or not outcome.from_ledger
        )

    def _data_of_outcome(self, outcome: ModelOutcome) -> dict[str, tuple[str, str]]:
        if outcome.status in WRITTEN:
            found = outcome.output_data.items()
            return {path: (source, outcome.files[path].digest) for path, source in found}
        # An output of an earlier run may still exist: keep the names of its data files.
        query = "SELECT path, source, digest FROM data WHERE output = ?"
        rows = self._index.execute(query, (_location_key(full_name(outcome.output)),))
        return {_name_of_key(path): (_name_of_key(source), digest) for path, source, digest in rows}

    def _write(self, entries: Iterable[Mapping[str, object]]) -> None:
        lines = [f"{json_without_secrets(each)}\n".encode() for each in entries]
        self._file.append(b"".join(lines))
        for line in lines:
            self._add(line)

    def close(self, *, is_complete: bool) -> None:
        """Close the ledger; after a complete run, remove lines that later lines replace."""
        try:
            (count,) = self._index.execute("SELECT COUNT(*) FROM entries").fetchone()
            if is_complete and self._lines != count:
                with suppress(CannotWrite):  # the ledger remains valid if replaced lines stay in it
                    self._file.replace(
                        line for (line,) in self._index.execute("SELECT line FROM entries ORDER BY rowid")
                    )
        finally:
            self._file.close()
            self._index.close()


def ledger_storage(location: str) -> LedgerFile | LedgerSegments:
    """Return the storage of a ledger: a file, or segments below a URL."""
    return LedgerSegments(location) if is_url(location) else LedgerFile(location)


def _location_key(name: str) -> bytes:
    """Return a location without credentials, as bytes: a path may not be valid Unicode."""
    return without_secrets(name).encode(errors="surrogatepass")


def _name_of_key(key: bytes) -> str:
    return key.decode(errors="surrogatepass")


def _record_of(task: Task, outcome: ModelOutcome, options: str) -> dict[str, object]:
    error = outcome.error
    # the worker may have written the output before it ended
    is_lost = error is not None and error.error == WORKER_LOST
    was_owned = task.entry is not None and task.entry.owns_output
    return {
        "source": full_name(outcome.source),
        "output": full_name(outcome.output),
        "status": outcome.status,
        "source_digest": outcome.source_digest,
        "output_digest": outcome.output_digest,
        **_report_summary(outcome.report),
        "error": error and error.as_dict(),
        "options": options,
        "opshift": package_version(),
        "seconds": round(outcome.seconds, 3),
        "owns_output": was_owned or outcome.status in WRITTEN or is_lost,
        "files": outcome.files,
    }


def _report_summary(report: Report | None) -> dict[str, object]:
    if report is None:
        return {"opsets": None, "report": None}
    return {
        "opsets": {each.domain: [each.source, each.target] for each in report.opsets},
        "report": {
            "ir_version": report.ir_version,
            "nodes": report.nodes,
            "sizes": report.sizes,
            "kept": report.kept,
            "changed": len(report.changed),
            "changes": [str(each) for each in report.groups()],
            "allowances": report.allowances,
            "concessions": report.allowances,  # deprecated alias
            "repairs": report.repairs,
        },
    }
