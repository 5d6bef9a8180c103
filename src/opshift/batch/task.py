"""Task of a worker: a model, and its entry in the ledger."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import NamedTuple, cast

from opshift.batch.file_states import FileState, FileStates
from opshift.batch.outcome import ModelError, Status
from opshift.model.errors import OpshiftError
from opshift.model.shared_data import FrozenRecord
from opshift.version import package_version

STARTED = "started"
"""Status of a model while it is converted."""

WRITTEN: tuple[Status, ...] = ("converted", "unchanged")
"""Outcomes with a new output."""


class Entry(FrozenRecord):
    """Fields of a line of the ledger that a later run needs.

    Attributes:
        status: the status of the outcome, or `started` while the model is converted.
        options: digest of the options; empty if the line proves nothing to this version of opshift.
        files: the states of all files that were read and written.
        owns_output: whether an existing output is one that a run with this ledger wrote.
        error: the error, if there was one.
    """

    status: str
    options: str
    files: FileStates
    owns_output: bool
    error: ModelError | None = None

    @classmethod
    def parse(cls, line: bytes) -> tuple[str, Entry] | None:
        """Return the output that a line is about, and its entry; `None` for a line that was cut off."""
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            data: dict[str, object] = json.loads(line)
            files = cast("dict[str, list[str]]", data.get("files", {}))
            states = {location: FileState(*state) for location, state in files.items()}
            error = ModelError(**data["error"]) if isinstance(data.get("error"), dict) else None  # type: ignore[arg-type]
            is_known = data.get("opshift") == package_version()
            options, status = str(data["options"]) if is_known else "", str(data["status"])
            return str(data["output"]), cls(status, options, states, data["owns_output"] is True, error)
        return None


class Task(NamedTuple):
    """Model to convert.

    Attributes:
        source, output: locations.
        entry: what the ledger knows about the output.
        data: external data files of the model, relative to its folder.
        may_copy_data: whether no other model can have different data files with the same destination.
        may_replace: whether the output may be replaced, if it exists.
        skips_existing: whether a model with an output that must not be replaced is skipped.
        is_started: whether the ledger has an entry that the conversion was started.
        error: an error about its name, or about files that another model has, too.
    """

    source: str
    output: str
    entry: Entry | None
    data: tuple[str, ...]
    may_copy_data: bool
    may_replace: bool
    skips_existing: bool
    is_started: bool
    error: OpshiftError | None
