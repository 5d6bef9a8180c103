"""Findings about files, results of commands for one model, and the base of writers for other tools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TextIO

import typer

from opshift.model.errors import OpshiftError
from opshift.model.locations import without_secrets
from opshift.model.shared_data import FrozenRecord

if TYPE_CHECKING:
    from opshift.converter.refusals import Refusal
    from opshift.converter.report import Report


MISSING_KERNEL = "runtime.missing"
"""Rule of nodes that a runtime does not implement."""

EXTERNAL_DATA = "external-data"
"""Rule of weights in separate files that were not copied."""

Severity = Literal["error", "warning", "note"]


class Finding(FrozenRecord):
    """Finding about a file, as code hosts show it.

    Attributes:
        rule: the id of the rule or of the cause, such as `type.unsupported`.
        level: the severity; a command fails on an error.
        message: the problem, in one sentence.
        file: the location of the file: a path or a URL.
        place: the graph and node in a model, or the operator of a definition.
        help: how to solve it.
        line: the line in a text file, from 1; 0 without one.
    """

    rule: str
    level: Severity
    message: str
    file: str
    place: str
    help: str = ""
    line: int = 0


def refusal_findings(refusals: Iterable[Refusal], file: str) -> Iterator[Finding]:
    """Yield a finding for each refusal of a conversion."""
    for each in refusals:
        yield Finding(each.code, "error", f"{each.operator}: {each.reason}", file, each.place, each.remedy)


def report_findings(report: Report, file: str) -> Iterator[Finding]:
    """Yield a finding for each refusal, and for each target runtime that does not run the result."""
    yield from refusal_findings(report.refusals, file)
    for sentence in report.unsupported:
        message, _, remedy = sentence.partition("; ")
        yield Finding(MISSING_KERNEL, "warning", message, file, "", remedy)


class ModelResult(FrozenRecord):
    """Result of a command for one model.

    Attributes:
        file: the location of the model: a path or a URL.
        ok: whether the command exits with 0 for this model.
        findings: the findings about the model.
        data: the JSON object that the command prints for this model alone.
    """

    file: str
    ok: bool
    findings: tuple[Finding, ...]
    data: Mapping[str, object]


class FindingsWriter(ABC):
    """Writer of the results of a command to stdout, or to another stream, in bounded memory.

    As a context manager, it begins the document, and ends it also after an exception, so that the document is
    valid.
    """

    def __init__(self, command: str, stream: TextIO | None = None) -> None:
        self.command = command
        self._stream = stream
        self.failed = 0
        """Number of files with errors so far."""

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end(interrupted=error is not None, reason=str(error) if isinstance(error, OpshiftError) else "")

    def add(self, result: ModelResult) -> None:
        """Write the findings of a model."""
        self.failed += not result.ok
        self.add_findings(result.findings)

    def add_all(self, findings: Iterable[Finding]) -> None:
        """Write findings about several files; those of one file follow each other."""
        for file, members in groupby(findings, key=lambda each: each.file):
            found = tuple(members)
            self.add(ModelResult(file, all(each.level != "error" for each in found), found, {}))

    def write(self, text: str) -> None:
        """Write a text at once, so that readers follow the progress; credentials in URLs are hidden."""
        typer.echo(without_secrets(text), file=self._stream, nl=False)

    @abstractmethod
    def begin(self) -> None:
        """Write the part before the findings."""

    @abstractmethod
    def add_findings(self, findings: Sequence[Finding]) -> None:
        """Write findings about one file."""

    @abstractmethod
    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """Write the part after the findings; `reason` is the error that interrupted the command."""


def incomplete(reason: str) -> str:
    """Return the message of an interrupted command."""
    return f"The run did not complete{f': {reason}' if reason else '; findings may be missing.'}"


def problem_text(finding: Finding) -> str:
    """Return the place in the file and the message."""
    return ": ".join(filter(None, (finding.place, finding.message)))
