"""Findings as a Code Quality report of GitLab.

Source: the page "Code Quality" of GitLab's documentation, "Code Quality report format".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TextIO

from opshift.cli.findings.finding import Finding, Severity
from opshift.cli.findings.locations import absolute_path, relative_name
from opshift.cli.findings.writer import FindingsWriter, problem_text
from opshift.cli.page import displayable, displayable_json
from opshift.model.locations import is_url

SEVERITIES: dict[Severity, str] = {"error": "major", "warning": "minor", "note": "info"}


class GitlabWriter(FindingsWriter):
    """Writer of a JSON list with one object for each finding."""

    def __init__(self, command: str, stream: TextIO | None = None) -> None:
        super().__init__(command, stream)
        self._separator = ""

    def begin(self) -> None:
        """Begin the list."""
        self.write("[")

    def add_findings(self, findings: Sequence[Finding]) -> None:
        """Write the findings of one file."""
        for each in findings:
            self.write(f"{self._separator}\n{displayable_json(json.dumps(_issue(each)))}")
            self._separator = ","

    def end(self, *, interrupted: bool, reason: str = "") -> None:
        """End the list."""
        self.write("\n]\n")


def _issue(finding: Finding) -> dict[str, object]:
    path = finding.file
    if not is_url(path):
        path = relative_name(absolute_path(path), Path.cwd()) or path
    text = problem_text(finding)
    # GitLab shows one of several issues with the same fingerprint
    identity = "\0".join((finding.rule, path, text, str(finding.line))).encode(errors="surrogatepass")
    return {
        "description": displayable(f"{text} ({finding.help})" if finding.help else text),
        "check_name": finding.rule,
        "fingerprint": sha256(identity).hexdigest(),
        "severity": SEVERITIES[finding.level],
        "location": {"path": path, "lines": {"begin": finding.line or 1}},
    }
