"""Findings as annotations of GitHub Actions.

Source: the page "Workflow commands for GitHub Actions" of GitHub's documentation.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from opshift.cli.findings.finding import Finding, Severity
from opshift.cli.findings.locations import absolute_path, relative_name
from opshift.cli.findings.writer import FindingsWriter, incomplete, problem_text
from opshift.cli.page import displayable
from opshift.model.locations import is_url
from opshift.model.message_text import count_text

COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}
"""Workflow command of each severity."""

MAX_ANNOTATIONS = 10
"""Number of annotations of each severity that GitHub shows for one step."""

MAX_FILES = 3
"""Maximum number of files that the annotation of a cause names."""


@dataclass
class RuleFindings:
    """Findings with the same severity and rule: their number, the first ones, and the number of files."""

    count: int = 0
    files: int = 0
    first: list[Finding] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


class GithubWriter(FindingsWriter):
    """Writer of annotations: one for each finding or, if GitHub would not show all, one for each cause.

    They are written at the end, when the causes with the most findings are known.
    """

    def __init__(self, command: str, stream: TextIO | None = None) -> None:
        super().__init__(command, stream)
        self._causes: dict[tuple[Severity, str], RuleFindings] = {}

    def begin(self) -> None:
        """Write nothing: GitHub reads single lines."""

    def add_findings(self, findings: Sequence[Finding]) -> None:
        """Count the findings of one file."""
        for each in findings:
            cause = self._causes.setdefault((each.level, each.rule), RuleFindings())
            cause.count += 1
            if len(cause.first) < MAX_ANNOTATIONS:
                cause.first.append(each)
        keys: dict[tuple[Severity, str], None] = dict.fromkeys((each.level, each.rule) for each in findings)
        for key in keys:
            cause = self._causes[key]
            cause.files += 1
            if len(cause.names) < MAX_FILES:
                cause.names.append(findings[0].file)

    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """Write the annotations and, in a job of GitHub Actions, its summary."""
        if interrupted:
            title = {"title": f"opshift {self.command}"}
            self.write(annotation("error", title, displayable(incomplete(reason))) + "\n")
        for severity, command in COMMANDS.items():
            causes = self._sorted(severity)
            if sum(each.count for each in causes) <= MAX_ANNOTATIONS:
                for finding in (each for cause in causes for each in cause.first):
                    self.write(_finding_annotation(command, finding) + "\n")
            else:
                for cause in causes:
                    self.write(_cause_annotation(command, cause) + "\n")
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary:
            with open(summary, "a", encoding="utf-8") as file:
                file.write(self._summary(interrupted))

    def _sorted(self, severity: Severity) -> list[RuleFindings]:
        """Return the causes of a severity, those of most findings first."""
        causes = (cause for (level, _), cause in self._causes.items() if level == severity)
        return sorted(causes, key=lambda each: -each.count)

    def _summary(self, interrupted: bool) -> str:
        """Return the summary of the job in Markdown."""
        from opshift.analysis.pages.document import escape_line, table

        result = f"{count_text(self.failed, 'file')} with errors{', interrupted' if interrupted else ''}"
        rows = [
            (
                severity,
                escape_line(first.rule),
                f"{cause.count:,}",
                f"{cause.files:,}",
                escape_line(_problem(first)),
            )
            for severity in COMMANDS
            for cause in self._sorted(severity)
            for first in cause.first[:1]
        ]
        causes = table(("level", "cause", "findings", "files", "first"), rows)
        return f"### opshift {self.command}\n\n{result}\n\n{causes}\n\n"


def _finding_annotation(command: str, finding: Finding) -> str:
    return annotation(command, _properties(finding, finding.rule), _text(finding))


def _cause_annotation(command: str, cause: RuleFindings) -> str:
    first = cause.first[0]
    if cause.count == 1:
        return _finding_annotation(command, first)
    counts = f"{count_text(cause.count, 'finding')} in {count_text(cause.files, 'file')}"
    others = ", ".join(cause.names) + (", ..." if cause.files > len(cause.names) else "")
    properties = _properties(first, f"{first.rule}: {counts}")
    return annotation(command, properties, f"{_text(first)}\nfiles: {displayable(others)}")


def _properties(finding: Finding, title: str) -> dict[str, str]:
    """Return the properties of an annotation; GitHub has only files below the working folder."""
    title = displayable(title)
    if is_url(finding.file):
        return {"title": title}
    path = absolute_path(finding.file)
    name = relative_name(path, Path.cwd()) or str(path)
    # line breaks are encoded; GitHub has no escape for other control characters
    name = "".join(each if each in "\r\n" else displayable(each) for each in name)
    return {"file": name, "line": str(finding.line or 1), "title": title}


def _text(finding: Finding) -> str:
    problem = displayable(_problem(finding) if is_url(finding.file) else problem_text(finding))
    return f"{problem}\nhelp: {displayable(finding.help)}" if finding.help else problem


def _problem(finding: Finding) -> str:
    return f"{finding.file}: {problem_text(finding)}"


def annotation(command: str, properties: dict[str, str], text: str) -> str:
    """Return a workflow command of GitHub Actions, which shows a text at a line of a file."""
    pairs = ",".join(f"{key}={escape_property(value)}" for key, value in properties.items())
    return f"::{command} {pairs}::{escape_data(text)}"


def escape_data(text: str) -> str:
    """Escape a text, so that it cannot end the workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape the value of a property, so that it cannot start another one."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")
