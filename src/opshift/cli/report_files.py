"""Write reports of conversions to files, for `--report`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from opshift.analysis.pages.conversion_page import changes_section, conversion_page
from opshift.analysis.pages.document import Document, escape_line, table
from opshift.analysis.pages.write_report import write_page
from opshift.analysis.verification.result import DifferenceLocation, Verification, VerificationFailed
from opshift.batch.outcome import ModelOutcome
from opshift.cli.conversion_text import opsets_text
from opshift.cli.errors import error_data
from opshift.cli.gate.inspect_file import GateResult
from opshift.converter.refusals import ConversionRefused
from opshift.converter.report import Report

Data = Mapping[str, object]
"""Content of a report file with the suffix .json."""


def write_report_file(
    path: Path,
    title: str,
    data: Data,
    report: Report,
    verification: Verification | None = None,
    location: DifferenceLocation | None = None,
) -> None:
    """Write the report of a plan or conversion in the format of the suffix of `path`."""
    write_page(path, data, lambda: conversion_page(report, title, verification, location))


@contextmanager
def failure_reported(path: Path, source: str, reports: Sequence[Report]) -> Iterator[None]:
    """Write the last report if the `with` block refuses the conversion or finds different outputs."""
    try:
        yield
    except (ConversionRefused, VerificationFailed) as error:
        verification = location = None
        if isinstance(error, VerificationFailed):
            verification, location = error.verification, error.location
        data = {"input": source, "output": None, **reports[-1].as_dict(), **error_data(error)}
        title = f"{source} was not converted"
        write_report_file(path, title, data, reports[-1], verification, location)
        raise


def write_batch_report(path: Path, folder: str, results: Sequence[tuple[ModelOutcome, GateResult]]) -> None:
    """Write the results of all models, one row each, and the changes of each converted model."""
    rows, parts = [], []
    for each, _ in results:
        opsets = kept = changed = reason = remedy = ""
        if each.error is not None:
            reason, remedy = each.error.reason, each.error.remedy
        if each.report is not None:
            opsets, kept, changed = (
                opsets_text(each.report),
                str(each.report.kept),
                str(len(each.report.changed)),
            )
        row = (each.source, each.status, opsets, kept, changed, reason or each.output, remedy)
        rows.append(tuple(map(escape_line, row)))
        if each.report is not None and each.report.changed:
            parts += [f"## {escape_line(each.source)}", *changes_section(each.report)]
    headings = ("model", "result", "opsets", "kept", "changed", "output or problem", "what to do")
    text = "\n\n".join((f"# Conversion to {escape_line(folder)}", table(headings, rows), *parts))
    data = {"output": folder, "files": [result.model.data for _, result in results]}
    write_page(path, data, lambda: Document(f"{text}\n"))
