"""Inspect one of several models; an error becomes a result, so that it does not stop the others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from opshift.cli.errors import error_data, operating_system_error
from opshift.cli.findings.finding import FileFinding, ModelResult
from opshift.cli.options import run_adapters
from opshift.model.errors import OpshiftError
from opshift.model.locations import without_secrets_of
from opshift.model.plain_data import json_values

FAILED = "failed"
"""`GateResult.word` of a model that cannot be inspected."""


class Inspected(Protocol):
    """Result of a command for one model."""

    @property
    def result(self) -> str:
        """Short result, such as `valid` or `refused`; the summary counts models by result."""
        ...

    def findings(self) -> Iterable[FileFinding]:
        """Yield the findings; the command fails on one of level `error`."""
        ...

    def cells(self) -> Mapping[str, object]:
        """Return the cells of the model's row; the keys are headings of columns."""
        ...

    def as_dict(self) -> dict[str, object]:
        """Return the object that the command prints for the model as JSON."""
        ...


Inspect = Callable[[str], Inspected]
"""Function that inspects a file. It must be picklable, because worker processes receive it."""


class GateResult(NamedTuple):
    """Result of a model, the short result that the summary counts (`word`), and the cells of its row."""

    model: ModelResult
    word: str
    cells: Mapping[str, str]


def inspect_file(inspect: Inspect, adapters: Sequence[Path], file: str) -> GateResult:
    """Inspect a file; return a `failure` instead of raising an error."""
    try:
        run_adapters(adapters)  # a worker process that was spawned has not run the adapters yet
        return inspected_result(file, inspect(file))
    except Exception as error:  # an error, even a bug, must not stop the other files
        return failure_of(file, error)


def inspected_result(file: str, found: Inspected) -> GateResult:
    """Return the result of a model that was inspected."""
    findings = tuple(found.findings())
    cells = {heading: str(cell) for heading, cell in found.cells().items()}
    return result_of(file, found.result, findings, found.as_dict(), cells)


def failure_of(file: str, error: Exception) -> GateResult:
    """Return the `failure` for an exception of any class."""
    if isinstance(error, OpshiftError):
        return failure(file, error)
    if isinstance(error, OSError):
        return failure(file, operating_system_error(error, file), type(error).__name__)
    reason = without_secrets_of(file, f"{type(error).__name__}: {error}")
    return failure(file, OpshiftError(reason, remedy="report this as a bug"), "InternalError")


def failure(file: str, error: OpshiftError, name: str = "") -> GateResult:
    """Return the result of a model that raised an error; `name` replaces the name of the error's class."""
    data = error_data(error, name)
    place = str(error.place).removeprefix(file).removeprefix(": ")
    finding = FileFinding(str(data["error"]), "error", error.reason, file, place, error.remedy)
    return result_of(file, FAILED, (finding,), data, {})


def result_of(
    file: str,
    word: str,
    findings: tuple[FileFinding, ...],
    data: Mapping[str, object],
    cells: Mapping[str, str],
) -> GateResult:
    """Return the result of a model; the command fails on it if a finding has the level `error`."""
    is_ok = all(each.level != "error" for each in findings)
    plain = json_values({"input": file, "result": word, **data})
    return GateResult(ModelResult(file, is_ok, findings, plain), word, cells)
