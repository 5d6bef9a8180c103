"""Findings about files, and results of commands for one model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

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
