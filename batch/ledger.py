"""Ledger of a batch: one JSON line per model, which later runs compare with the files."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from opshift import __version__
from opshift.batch.file_states import full_name
from opshift.batch.outcome import ModelOutcome
from opshift.batch.run_chunks import WORKER_LOST
from opshift.batch.task import STARTED, WRITTEN, Entry, Task
from opshift.model.atomic_files import AtomicFiles, raising_cannot_write, write_all
from opshift.model.errors import UsageError
from opshift.model.plain_data import MAX_FILE_BYTES

if TYPE_CHECKING:
    from opshift.converter.report import Report

LEDGER_NAME = "opshift-ledger.jsonl"
"""Name of the ledger in the output folder."""


class Ledger:
    """Ledger in a file, which grows by a line for each outcome; the last line of an output counts.

    Raises:
        UsageError: another run uses the ledger.
        CannotWrite: the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))
        self._lines = 0
        # on disk beyond a few megabytes, because there may be millions of models
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._index.execute("CREATE TABLE entries (output BLOB PRIMARY KEY, line BLOB)")
        with raising_cannot_write(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._file = os.open(path, flags, 0o666)
            self._require_only_run()
            with open(self._file, "rb", closefd=False) as file:
                if file.peek(1)[:1] not in (b"", b"{"):
                    reason, remedy = "is not a ledger", "name another file with --ledger"
                    raise UsageError(reason, place=str(path), remedy=remedy)
                self._index.execute("BEGIN")
                last = b"\n"
                for last in iter(partial(file.readline, MAX_FILE_BYTES), b""):
                    self._add(last)
                self._index.execute("COMMIT")
            if not last.endswith(b"\n"):  # the run was killed while it wrote the line
                write_all(self._file, b"\n")

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
            raise UsageError(reason, place=str(self.path), remedy=remedy) from None
        except OSError:  # a file system without locks
            return

    def _add(self, line: bytes) -> None:
        self._lines += 1
        parsed = Entry.parse(line)
        if parsed is not None:
            output, _ = parsed
            self._index.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", (_key(output), line))

    def entry(self, output: str) -> Entry | None:
        """Return the entry of an output."""
        key = _key(full_name(output))
        found = self._index.execute("SELECT line FROM entries WHERE output = ?", (key,)).fetchone()
        parsed = Entry.parse(found[0]) if found else None
        return parsed[1] if parsed else None

    def start(self, source: str, output: str) -> None:
        """Record that an output that the ledger does not own may be written from here on.

        If the run is killed before it records the outcome, a later run may replace the output.
        """
        names = {"source": full_name(source), "output": full_name(output)}
        self._write([{**names, "status": STARTED, "options": "", "owns_output": True}])

    def add(self, outcomes: Iterable[tuple[Task, ModelOutcome]], options: str) -> None:
        """Append the lines of outcomes, unless the ledger has them."""
        self._write(
            _line(task, outcome, options)
            for task, outcome in outcomes
            if task.is_started or not outcome.from_ledger
        )

    def _write(self, entries: Iterable[Mapping[str, object]]) -> None:
        lines = [f"{json.dumps(each)}\n".encode() for each in entries]
        with raising_cannot_write(self.path):
            write_all(self._file, b"".join(lines))
        for line in lines:
            self._add(line)

    def close(self, *, is_complete: bool) -> None:
        """Close the ledger; after a complete run, remove lines that later ones replaced."""
        try:
            (count,) = self._index.execute("SELECT COUNT(*) FROM entries").fetchone()
            if is_complete and self._lines != count:
                self._remove_replaced_lines()
        finally:
            os.close(self._file)
            self._index.close()

    def _remove_replaced_lines(self) -> None:
        with AtomicFiles() as files, raising_cannot_write(self.path), files.new(self.path) as (file, _):
            for (line,) in self._index.execute("SELECT line FROM entries ORDER BY rowid"):
                write_all(file, line)


def _key(name: str) -> bytes:
    """Return a name as bytes, because a path may have characters that are not Unicode."""
    return name.encode(errors="surrogatepass")


def _line(task: Task, outcome: ModelOutcome, options: str) -> dict[str, object]:
    error = outcome.error
    is_lost = error is not None and error.error == WORKER_LOST  # it may have written the output
    was_owned = task.entry is not None and task.entry.owns_output
    return {
        "source": full_name(outcome.source),
        "output": full_name(outcome.output),
        "status": outcome.status,
        "source_digest": outcome.source_digest,
        "output_digest": outcome.output_digest,
        **_summary(outcome.report),
        "error": error and error.summary(),
        "options": options,
        "opshift": __version__,
        "seconds": round(outcome.seconds, 3),
        "owns_output": was_owned or outcome.status in WRITTEN or is_lost,
        "files": outcome.files,
    }


def _summary(report: Report | None) -> dict[str, object]:
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
            "concessions": report.concessions,
            "repairs": report.repairs,
        },
    }
