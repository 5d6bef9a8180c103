"""Ledger of a batch: one JSON line per model, which later runs compare with the files."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from opshift.batch.file_states import full_name
from opshift.batch.ledger_file import LedgerFile
from opshift.batch.outcome import ModelOutcome
from opshift.batch.run_chunks import WORKER_LOST
from opshift.batch.task import STARTED, WRITTEN, Entry, Task
from opshift.model.errors import CannotWrite
from opshift.model.locations import is_url
from opshift.model.redaction import without_secrets
from opshift.stores.locations import join
from opshift.version import __version__

if TYPE_CHECKING:
    from opshift.batch.ledger_segments import LedgerSegments
    from opshift.converter.report import Report

LEDGER_NAME = "opshift-ledger.jsonl"
"""Name of the ledger in the output folder."""

LEDGER_FOLDER = "opshift-ledger"
"""Name of the folder of a ledger in a store."""


def ledger_location(out: str) -> str:
    """Return the default location of the ledger of an output folder."""
    return join(out, LEDGER_FOLDER) if is_url(out) else os.path.join(out, LEDGER_NAME)


class Ledger:
    """Ledger that grows by a line for each outcome; the last line of an output counts.

    Raises:
        UsageError: another run uses the ledger, or it is not a ledger.
        CannotWrite: it cannot be read or written.
    """

    def __init__(self, location: str) -> None:
        self._lines = 0
        # on disk beyond a few megabytes, because there may be millions of models
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._index.execute("CREATE TABLE entries (output BLOB PRIMARY KEY, line BLOB)")
        self._file = ledger_storage(location)
        self._index.execute("BEGIN")
        for line in self._file.read():
            self._add(line)
        self._index.execute("COMMIT")

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
            _record(task, outcome, options)
            for task, outcome in outcomes
            if task.is_started or not outcome.from_ledger
        )

    def _write(self, entries: Iterable[Mapping[str, object]]) -> None:
        lines = [f"{without_secrets(json.dumps(each))}\n".encode() for each in entries]
        self._file.append(b"".join(lines))
        for line in lines:
            self._add(line)

    def close(self, *, is_complete: bool) -> None:
        """Close the ledger; after a complete run, remove lines that later ones replaced."""
        try:
            (count,) = self._index.execute("SELECT COUNT(*) FROM entries").fetchone()
            if is_complete and self._lines != count:
                with suppress(CannotWrite):  # the ledger is valid with them
                    self._file.replace(
                        line for (line,) in self._index.execute("SELECT line FROM entries ORDER BY rowid")
                    )
        finally:
            self._file.close()
            self._index.close()


def ledger_storage(location: str) -> LedgerFile | LedgerSegments:
    """Return the storage of a ledger: a file, or segments below a URL."""
    if not is_url(location):
        return LedgerFile(location)
    from opshift.batch.ledger_segments import LedgerSegments  # few ledgers have a URL

    return LedgerSegments(location)


def _key(name: str) -> bytes:
    """Return the name of an output in the ledger, as bytes: a path may not be valid Unicode."""
    return without_secrets(name).encode(errors="surrogatepass")


def _record(task: Task, outcome: ModelOutcome, options: str) -> dict[str, object]:
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
        "error": error and error.as_dict(),
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
