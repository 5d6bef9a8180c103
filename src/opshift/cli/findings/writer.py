"""Writers of findings in the formats of other tools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import typer

from opshift.cli.findings.finding import Finding, ModelResult


class FindingsWriter(ABC):
    """Writer of the results of a command to stdout, in bounded memory.

    As a context manager, it begins the document, and ends it also after an exception, so that the document is
    valid.
    """

    def __init__(self, command: str) -> None:
        self.command = command
        self.is_ok = True
        """Whether all models so far are without errors."""

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end(interrupted=error is not None)

    def add(self, result: ModelResult) -> None:
        """Write the findings of a model."""
        self.is_ok &= result.ok
        self.add_findings(result.findings)

    @abstractmethod
    def begin(self) -> None:
        """Write the part before the findings."""

    @abstractmethod
    def add_findings(self, findings: Sequence[Finding]) -> None:
        """Write findings about one file."""

    @abstractmethod
    def end(self, *, interrupted: bool) -> None:
        """Write the part after the findings."""


def write(text: str) -> None:
    """Write a text to stdout."""
    typer.echo(text, nl=False)
