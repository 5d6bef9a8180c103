"""Ledger of a command over many models: a later run reuses the results of unchanged files."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, cast

from opshift.batch.file_states import (
    FileState,
    FileStates,
    are_unchanged,
    content_digests,
    full_name,
    plugins,
    states_of,
)
from opshift.batch.ledger import ledger_storage
from opshift.cli.findings.finding import FileFinding, ModelResult
from opshift.cli.gate.inspect_file import FAILED, GateResult, Inspect, inspect_file
from opshift.cli.gate.several import GateOptions
from opshift.converter.streaming.external_data import external_locations
from opshift.model.errors import OpshiftError
from opshift.model.locations import json_without_secrets, without_secrets
from opshift.model.plain_data import PlainDataError, parse_json
from opshift.stores.locations import with_data
from opshift.version import package_version


class InspectionTask(NamedTuple):
    """Model file, and the recorded states of this file and its external data; empty without a record."""

    file: str
    states: FileStates


class Inspection(NamedTuple):
    """Result of a task, `None` if its files are unchanged, and the states of the files."""

    result: GateResult | None
    states: FileStates


def inspect_task(inspect: Inspect, adapters: Sequence[Path], task: InspectionTask) -> Inspection:
    """Inspect a model unless its files are unchanged."""
    if task.states and are_unchanged(task.states):
        return Inspection(None, task.states)
    # Read the states first: if a file changes during the inspection, the next run inspects it again.
    states = states_if_readable(task.file)
    return Inspection(inspect_file(inspect, adapters, task.file), states)


def states_if_readable(file: str) -> FileStates:
    """Return the states of a model file and its data files; empty if a file cannot be read."""
    try:
        return states_of(with_data(file, external_locations(file)))
    except (OSError, OpshiftError):
        return {}


def digest_of(inspect: Inspect, paths: Iterable[Path]) -> str:
    """Return a digest of opshift's version, the command with its options, files at `paths`, and plugins."""
    content = (package_version(), inspect, list(content_digests(paths)), plugins())
    return sha256(pickle.dumps(content)).hexdigest()[:16]


def open_ledger(location: str, options: GateOptions, inspect: Inspect) -> GateLedger:
    """Return the ledger at `location` with the results of `inspect` with these options."""
    return GateLedger(location, digest_of(inspect, (*(options.folders or ()), *(options.adapters or ()))))


class GateLedger:
    """Results of models as JSON lines, in a file or below a URL; only the last line of each model counts.

    The ledger ignores lines with another digest, such as lines of another command.

    Raises:
        UsageError: another run uses the ledger, or the file is not a ledger.
        CannotWrite, InvalidModel: the ledger cannot be read or written.
    """

    def __init__(self, location: str, digest: str) -> None:
        self._file = ledger_storage(location)
        self._head = f'{{"gate": "{digest}", "file": '
        # SQLite moves this index to disk beyond a few megabytes, because lines may be long.
        self._index = sqlite3.connect("", isolation_level=None)
        self._index.execute("CREATE TABLE entries (file TEXT PRIMARY KEY, line BLOB)")
        for line in self._file.read():
            self._add(line)

    def _add(self, line: bytes) -> None:
        """Index a line by the name of its model; ignore a line that is cut off."""
        with suppress(ValueError):  # the line is not UTF-8, or is cut off
            text = line.decode()
            if text.startswith(self._head) and text.endswith("}\n"):
                # Parse only the name, because the rest of the line may be long.
                _, end = json.JSONDecoder().raw_decode(text, len(self._head))
                name = text[len(self._head) : end]
                self._index.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", (name, line))

    def tasks(self, files: Iterable[str]) -> Iterator[InspectionTask]:
        """Yield a task for each file."""
        for file in files:
            recorded = self._entry_of_file(file)
            yield InspectionTask(file, recorded[0] if recorded else {})

    def result(self, task: InspectionTask, inspection: Inspection) -> GateResult:
        """Return the recorded or new result of a task; record a new result if the file states are known.

        Errors are not recorded: a later run may be able to read the file.
        """
        if inspection.result is None:
            recorded = self._entry_of_file(task.file)
            assert recorded is not None  # the task has file states only if the ledger has a result
            return recorded[1]
        if inspection.states and inspection.result.word != FAILED:
            content = {"states": inspection.states, **_as_dict(inspection.result)}
            name = json_without_secrets(task.file)
            line = f"{self._head}{name}, {json_without_secrets(content)[1:]}\n".encode()
            self._file.append(line)
            self._add(line)
        return inspection.result

    def _entry_of_file(self, file: str) -> tuple[FileStates, GateResult] | None:
        name, shown = full_name(file), without_secrets(full_name(file))
        row = (json_without_secrets(file),)
        found = self._index.execute("SELECT line FROM entries WHERE file = ?", row).fetchone()
        with suppress(PlainDataError, KeyError, TypeError, AttributeError):
            # in another working folder, the same relative name may refer to another file
            if found and shown in (entry := _read(found[0]))[0]:
                states, result = entry
                return {name if each == shown else each: state for each, state in states.items()}, result
        return None

    def close(self) -> None:
        """Close the ledger."""
        self._file.close()
        self._index.close()


def _as_dict(result: GateResult) -> Mapping[str, object]:
    findings = [asdict(each) for each in result.model.findings]
    return {"word": result.word, "cells": result.cells, "findings": findings, "data": result.model.data}


def _read(line: bytes) -> tuple[FileStates, GateResult]:
    """Return the file states and the result that a line of the ledger contains."""
    entry = cast("dict[str, Any]", parse_json(line))
    states = {name: FileState(*state) for name, state in entry["states"].items()}
    findings = tuple(FileFinding(**each) for each in entry["findings"])
    is_ok = all(each.level != "error" for each in findings)
    model = ModelResult(entry["file"], is_ok, findings, entry["data"])
    return states, GateResult(model, entry["word"], entry["cells"])
