"""Writers of findings in the formats of other tools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import groupby
from types import TracebackType
from typing import Self, TextIO

import typer

from opshift.cli.findings.finding import Finding, ModelResult
from opshift.model.errors import OpshiftError
from opshift.model.locations import without_secrets


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
