"""Outcome of the conversion of one model of a batch."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal

from opshift.batch.file_states import FileStates, full_name
from opshift.converter.errors import ConversionRefused
from opshift.model.errors import OpshiftError
from opshift.model.shared_data import FrozenRecord

if TYPE_CHECKING:
    from opshift.analysis.verification.result import Verification
    from opshift.converter.report import Report

Status = Literal["converted", "unchanged", "skipped", "refused", "failed"]


class ModelError(FrozenRecord):
    """Error of one model.

    Attributes:
        error: name of the error's class.
        reason, place, remedy: as in `OpshiftError`.
        code: the most frequent cause of a refusal, a key of `opsets/refusals.yaml`; empty for other errors.
        cause: the error with its refusals, findings or comparison; `None` if an earlier run raised it.
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
        source, output: locations.
        status: `converted`; `unchanged`, if the model has the target already and was copied; `skipped`, if
            the ledger shows that the output is up to date, or it exists and `skip_existing` is set;
            `refused`, if nodes cannot be converted or rules are violated; or `failed`.
        error: the error of a refused or failed model.
        report: the report of the conversion; `None` without one.
        verification: the comparison of both models, if it was requested.
        external_data: external data files, relative to the model's folder.
        files: digests of all files that were read and written.
        seconds: time of the conversion.
        from_ledger: whether an earlier run had this outcome, and this run did nothing.
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

    @property
    def source_digest(self) -> str | None:
        """The digest of the model file that was read."""
        return self._digest(self.source)

    @property
    def output_digest(self) -> str | None:
        """The digest of the model file that was written."""
        return self._digest(self.output)

    def _digest(self, location: str) -> str | None:
        state = self.files.get(full_name(location))
        return state and state.digest

    @property
    def is_ok(self) -> bool:
        """Whether the output exists and is the result of the conversion, or an existing output remained."""
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
