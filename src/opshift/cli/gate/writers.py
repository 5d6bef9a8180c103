"""Results of a command over several models: rows of text or JSON Lines as they arrive, and a summary.

The summary has the numbers of models by result, and of findings by cause, with a few examples of each.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

import typer

from opshift.cli.findings.finding import FileFinding, FindingsWriter, Severity, rules_of
from opshift.cli.gate.inspect_file import FAILED, GateResult
from opshift.cli.page import Page, displayable_json
from opshift.model.message_text import count_text
from opshift.model.plain_data import json_values

if TYPE_CHECKING:
    from opshift.cli.gate.runtime_table import RuntimeTable


MAX_EXAMPLES = 3
"""Number of examples that are kept for each cause, so that memory does not grow with the models."""

UNREADABLE = "model.readable"
"""Id of the rule of `opshift check` for files that are not models."""


@dataclass
class RuleCount:
    """Numbers of models and findings of one rule, and the first finding of each of the first models."""

    rule: str
    level: Severity
    models: int = 0
    findings: int = 0
    examples: list[FileFinding] = field(default_factory=list)
    helps: set[str] = field(default_factory=set)

    @property
    def help(self) -> str:
        """Advice that all findings share; empty if their advice differs."""
        return next(iter(self.helps)) if len(self.helps) == 1 else ""

    @property
    def message(self) -> str:
        """Message that several examples without a place in the model share; otherwise empty."""
        messages = {(each.place, each.message) for each in self.examples}
        place, message = min(messages)
        return message if len(self.examples) > 1 and len(messages) == 1 and not place else ""

    def add(self, finding: FileFinding) -> None:
        """Count a finding."""
        self.findings += 1
        if len(self.helps) < 2:  # two different texts already show that the advice differs
            self.helps.add(finding.help)

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        numbers = {"rule": self.rule, "level": self.level, "models": self.models, "findings": self.findings}
        keys = ("file", "place", "message", "help")
        examples = [{key: getattr(each, key) for key in keys} for each in self.examples]
        return {**numbers, "help": self.help, "examples": examples}


class Summary:
    """Summary of the results so far."""

    def __init__(self) -> None:
        self.models = 0
        self.failed = 0
        self.results: Counter[str] = Counter()
        self._bad_results: set[str] = set()
        self._causes: dict[tuple[str, str], RuleCount] = {}
        self.runtimes: RuntimeTable | None = None
        self._started = time.monotonic()

    def add(self, result: GateResult) -> None:
        """Count a result."""
        self.models += 1
        self.failed += not result.model.ok
        self.results[result.word] += 1
        if not result.model.ok:
            self._bad_results.add(result.word)
        if "runtimes" in result.model.data:
            self._add_runtimes(result.model.data)
        seen = set[tuple[str, str]]()
        for finding in result.model.findings:
            # Count each kind of unreadable file, such as a Git LFS pointer, by its remedy.
            is_about_file = result.word == FAILED or finding.rule == UNREADABLE
            key = finding.rule, finding.help if is_about_file else ""
            cause = self._causes.setdefault(key, RuleCount(finding.rule, finding.level))
            cause.add(finding)
            if key not in seen:
                seen.add(key)
                cause.models += 1
                cause.examples += [finding][: MAX_EXAMPLES - len(cause.examples)]

    def _add_runtimes(self, data: Mapping[str, object]) -> None:
        # imported here: other commands do not need the table
        from opshift.cli.gate.runtime_table import RuntimeTable

        self.runtimes = self.runtimes or RuntimeTable()
        self.runtimes.add(data)

    @property
    def causes(self) -> list[RuleCount]:
        """Counts of the rules that findings violate: errors first, then by decreasing number of models."""
        return sorted(
            self._causes.values(), key=lambda each: (each.level != "error", -each.models, each.rule)
        )

    @property
    def counts(self) -> list[tuple[str, int]]:
        """The number of models by result, failures first."""
        return sorted(self.results.items(), key=lambda each: (each[0] not in self._bad_results, -each[1]))

    @property
    def seconds(self) -> float:
        """Seconds since the summary was created, before the first model."""
        return time.monotonic() - self._started

    def as_dict(self, *, interrupted: bool) -> dict[str, object]:
        """Return plain data for JSON."""
        runtimes = {"runtimes": self.runtimes.as_dict()} if self.runtimes else {}
        return {
            "models": self.models,
            "ok": self.models - self.failed,
            "results": dict(self.results),
            "causes": [each.as_dict() for each in self.causes],
            **runtimes,
            "interrupted": interrupted,
            "seconds": round(self.seconds, 1),
        }


MAX_ROWS = 50
"""Maximum number of rows of models without errors in a terminal, unless `--verbose` is given."""

MAX_CAUSES = 20
"""Maximum number of causes in text output; JSON contains all."""

RESULT_WIDTH = 11
"""Least width of the result column; fixed, because rows are printed before all results are known."""


class Writer(Protocol):
    """Writer of the results of a command over several models."""

    def add(self, result: GateResult) -> None:
        """Write a result; `Summary` has counted it."""
        ...

    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """Write the summary; `reason` is the error that interrupted the command."""
        ...


class JsonLinesWriter:
    """Writer of JSON Lines: one object per model, and one with the key `summary` at the end."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary

    def add(self, result: GateResult) -> None:
        """Write the line of a model."""
        print_json_line(result.model.data)

    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """Write the summary."""
        error = {"error": reason} if reason else {}
        summary = {**self._summary.as_dict(interrupted=interrupted), **error}
        print_json_line({"summary": summary})


def print_json_line(data: Mapping[str, object]) -> None:
    """Print an object as one line of JSON."""
    typer.echo(displayable_json(json_values(data)))


class FindingsOutput:
    """Writer of findings in the format of a `FindingsWriter`, such as SARIF."""

    def __init__(self, writer: FindingsWriter) -> None:
        self._writer = writer
        writer.begin()

    def add(self, result: GateResult) -> None:
        """Write the findings of a model."""
        self._writer.add(result.model)

    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """Write the end of the document."""
        self._writer.end(interrupted=interrupted, reason=reason)


class TextWriter:
    """Writer of text: a row per model, the causes of failures with examples, and a count of each result.

    The widths of columns cannot depend on later rows, so the name of the model, which may be long, is last.
    With `max_rows`, rows of failures are printed as they arrive, and at most `max_rows` rows of other models
    at the end. Names are relative to `folder`, which the heading contains.
    """

    def __init__(
        self,
        summary: Summary,
        page: Page,
        command: str,
        columns: Sequence[str],
        *,
        quiet: bool,
        max_rows: int | None,
        folder: str = "",
    ) -> None:
        self._command = command
        self._summary, self._page, self._columns = summary, page, columns
        self._quiet, self._max_rows = quiet, max_rows
        self._folder = folder
        self._has_title = False
        self._later: list[str] = []
        self._dropped = 0

    def add(self, result: GateResult) -> None:
        """Print the row of a model, or keep it for the end; with `quiet`, print only failures."""
        found = result.model.findings
        if result.model.ok and self._quiet:
            return
        if not self._has_title:
            name = f"model in {self._folder}" if self._folder else "model"
            self._page.title(self._row_text("result", self._columns, name))
            self._has_title = True
        counts = dict.fromkeys((each.rule for each in found if each.level != "note"), 0)
        for each in found:
            if each.rule in counts:
                counts[each.rule] += 1
        causes = ", ".join(rule if count == 1 else f"{rule} ({count:,})" for rule, count in counts.items())
        cells = [result.cells.get(each.strip(), "") for each in self._columns]
        name = result.model.file.removeprefix(self._folder)
        row = self._row_text(result.word, cells, f"{name}  {causes}".rstrip())
        if not result.model.ok:
            self._page.line(row, style="red")
        elif self._max_rows is None:
            self._page.line(row)
        elif len(self._later) < self._max_rows:
            self._later.append(row)
        else:
            self._dropped += 1

    def _row_text(self, word: str, cells: Sequence[str], model: str) -> str:
        # a heading with a leading space marks a column of numbers
        aligned = [
            cell.rjust(len(heading)) if heading.startswith(" ") else cell.ljust(len(heading))
            for heading, cell in zip(self._columns, cells, strict=True)
        ]
        width = max(
            RESULT_WIDTH, *(len(each.strip()) for each in self._columns)
        )  # results of `runs` are columns
        return "  ".join((word.ljust(width), *aligned, model))

    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """Print the kept rows, the causes and the numbers of models."""
        summary, page = self._summary, self._page
        for row in self._later:
            page.line(row)
        if self._dropped:
            page.line(f"... and {count_text(self._dropped, 'more model')}; --verbose prints all")
        causes = summary.causes
        if summary.runtimes:
            # Errors only: the table already counts missing kernels, and there may be thousands of notes about
            # them.
            causes = [each for each in causes if each.level == "error"]
            page.blank()
            summary.runtimes.write(page)
        if causes:
            page.heading("Causes")
        rules = rules_of(self._command) if causes else {}
        for each in causes[:MAX_CAUSES]:
            _write_cause(page, each, rules[each.rule].title if each.rule in rules else "", self._folder)
        if len(causes) > MAX_CAUSES:
            page.blank()
            page.line(f"and {len(causes) - MAX_CAUSES:,} more causes; --format json lists all")
        if summary.models and (interrupted or not self._quiet):
            page.blank()
            numbers = ", ".join(f"{count:,} {word}" for word, count in summary.counts)
            verdict = f"{count_text(summary.models, 'model')}: {numbers} ({summary.seconds:.1f} s)"
            after = "interrupted after " if interrupted else ""
            page.line(f"{after}{verdict}", style="red" if summary.failed else "green")


def _write_cause(page: Page, cause: RuleCount, title: str, folder: str) -> None:
    page.blank()
    numbers = f"{count_text(cause.models, 'model')}, {count_text(cause.findings, 'finding')}"
    page.line(f"{cause.rule}: {numbers}", style="red" if cause.level == "error" else "bold magenta")
    if title:
        page.prose(title, indent=2)
    if cause.message:
        page.prose(cause.message, indent=2)
    if cause.help:
        page.prose(f"help: {cause.help}", indent=2)
    for advice, examples in groupby(cause.examples, key=lambda each: each.help):
        for each in examples:
            name = each.file.removeprefix(folder)
            message = each.message if not cause.message else ""
            page.prose(": ".join(filter(None, (name, each.place, message))), indent=2)
        if advice and not cause.help:
            page.prose(f"help: {advice}", indent=4)
    if cause.models > len(cause.examples):
        page.line(f"  and {count_text(cause.models - len(cause.examples), 'more model')}")
