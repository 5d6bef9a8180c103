"""Reports of conversions as files, for `--report`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from opshift.analysis.pages.conversion_page import conversion_page
from opshift.analysis.pages.write_report import write_page
from opshift.analysis.verification.result import DifferenceLocation, Verification, VerificationFailed
from opshift.cli.errors import error_data
from opshift.converter.errors import ConversionRefused
from opshift.converter.report import Report

Data = Mapping[str, object]
"""Content of the report in JSON."""


def write_report_file(
    path: Path,
    title: str,
    data: Data,
    report: Report,
    verification: Verification | None = None,
    location: DifferenceLocation | None = None,
) -> None:
    """Write the report of a plan or conversion."""
    write_page(path, data, lambda: conversion_page(report, title, verification, location))


@contextmanager
def failure_reported(path: Path, source: str, reports: Sequence[Report]) -> Iterator[None]:
    """Write the last report if the block refuses the conversion or finds different outputs."""
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
