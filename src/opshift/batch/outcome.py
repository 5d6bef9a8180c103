"""Task, outcome and ledger entry of one model of a batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from opshift.batch.file_states import FileState, FileStates, full_name
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import OpshiftError
from opshift.model.shared_data import FrozenRecord
from opshift.version import package_version

if TYPE_CHECKING:
    from opshift.analysis.verification.result import Verification
    from opshift.converter.report import Report


Status = Literal["converted", "unchanged", "skipped", "refused", "failed"]


STARTED = "started"
"""Status in the ledger of a new output, from the start of the conversion until the outcome."""

WRITTEN: tuple[Status, ...] = ("converted", "unchanged")
"""Statuses of outcomes that wrote an output."""


class ModelError(FrozenRecord):
    """Error that prevented the conversion of one model.

    Attributes:
        error: name of the error's class.
        reason, place, remedy: as in `OpshiftError`.
        code: the most frequent cause of a refusal, a key of `opsets/refusals.yaml`; empty for other errors.
        cause: the exception, with its refusals, findings or comparison; `None` if an earlier run raised it.
    """

    error: str
    reason: str
    place: str = ""
    remedy: str = ""
    code: str = ""
    cause: OpshiftError | None = field(default=None, compare=False)

    @classmethod
    def of(cls, error: OpshiftError, name: str = "") -> ModelError:
        """Return the fields of an error; `name` replaces the name of its class."""
        fields = error.as_dict()
        code = ""
        if isinstance(error, ConversionRefused):
            code = max(error.groups, key=lambda each: len(each.refusals)).code
        return cls(**(fields | {"error": name or fields["error"]}), code=code, cause=error)

    def as_dict(self) -> dict[str, str]:
        """Return the fields for JSON output."""
        return {name: value for name, value in vars(self).items() if name != "cause"}


class ModelOutcome(FrozenRecord):
    """Outcome of one model.

    Attributes:
        source, output: paths or URLs of the model and of the converted model.
        status: `converted`; `unchanged`, if the model already has the target and was copied; `skipped`, if
            the ledger shows that the output is up to date, or the output exists and `skip_existing` is set;
            `refused`, if nodes cannot be converted or rules are violated; or `failed`.
        error: the error of a refused or failed model; otherwise `None`.
        report: the report of the conversion; `None` if this run did not convert the model.
        verification: the comparison of both models, if it was requested.
        external_data: external data files, relative to the model's folder.
        files: states (digest and metadata) of all files that were read and written.
        seconds: time of the conversion.
        from_ledger: whether the outcome is from the ledger, because nothing changed since an earlier run.
        output_data: the source file of each data file of the output.
    """

    source: str
    output: str
    status: Status
    error: ModelError | None = None
    report: Report | None = None
    verification: Verification | None = None
    external_data: tuple[str, ...] = ()
    files: FileStates = field(default_factory=dict)
    seconds: float = 0.0
    from_ledger: bool = False
    output_data: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        result = f": {self.error.reason}" if self.error else f" -> {self.output}"
        return f"{self.status}: {self.source}{result}"

    @property
    def source_digest(self) -> str | None:
        """The digest of the model file that was read; `None` if it was not recorded."""
        return self._digest_of(self.source)

    @property
    def output_digest(self) -> str | None:
        """The digest of the model file that was written; `None` if it was not recorded."""
        return self._digest_of(self.output)

    def _digest_of(self, location: str) -> str | None:
        state = self.files.get(full_name(location))
        return state and state.digest

    @property
    def is_ok(self) -> bool:
        """Whether the output was written, is up to date, or existed and was skipped."""
        return self.error is None

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        data: dict[str, object] = {"input": self.source, "output": self.output if self.is_ok else None}
        data |= {"result": self.status, "from_ledger": self.from_ledger, "seconds": round(self.seconds, 3)}
        data |= {"source_digest": self.source_digest, "output_digest": self.output_digest}
        for part in (self.report, self.error):
            data |= part.as_dict() if part is not None else {}
        data["external_data"] = self.external_data
        if self.verification is not None:
            data["verification"] = self.verification.as_dict()
        return data


class Entry(FrozenRecord):
    """Fields of a line of the ledger that a later run needs.

    Attributes:
        status: the status of the outcome, or `started` while the model is converted.
        options: digest of the options; empty for `started`, and if another version of opshift wrote the line.
        files: the states of all files that were read and written.
        owns_output: whether a run with this ledger wrote, or may have written, the existing output.
        error: the error, if there was one.
        data: maps each data file of the output to its source and digest.
    """

    status: str
    options: str
    files: FileStates
    owns_output: bool
    error: ModelError | None = None
    data: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, line: bytes) -> tuple[str, Entry] | None:
        """Return the output that a line is about, and its entry; `None` for an invalid or incomplete line."""
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            data: dict[str, object] = json.loads(line)
            files = cast("dict[str, list[str]]", data.get("files", {}))
            states = {location: FileState(*state) for location, state in files.items()}
            error = ModelError(**data["error"]) if isinstance(data.get("error"), dict) else None  # type: ignore[arg-type]
            is_known = data.get("opshift") == package_version()
            options, status = str(data["options"]) if is_known else "", str(data["status"])
            files = cast("dict[str, list[str]]", data.get("data", {}))
            output_data = {str(path): (str(source), str(digest)) for path, (source, digest) in files.items()}
            is_owned = data["owns_output"] is True
            return str(data["output"]), cls(status, options, states, is_owned, error, output_data)
        return None


class Task(NamedTuple):
    """Model to convert.

    Attributes:
        source, output: paths or URLs of the model and of the converted model.
        entry: the entry of the output in the ledger; `None` if there is none.
        data: external data files of the model, relative to its folder.
        may_copy_data: whether data files may be copied; false if another model may write the same files.
        may_replace: whether the output may be replaced, if it exists.
        skips_existing: whether to skip the model, instead of failing, if its output must not be replaced.
        is_started: whether the ledger has a line with the status `started` for this conversion.
        error: an error found before the conversion, such as a conflict of files, or `None`.
        data_users: maps a data file of the output to another output in the ledger that has this data file,
            copied from another source.
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
    data_users: Mapping[str, str]
