"""Summary of the conversion of several files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opshift.cli.batch import Failed, Outcome
from opshift.cli.conversion import Converted
from opshift.cli.output import Column, counted
from opshift.cli.page import Page

COLUMNS = (
    Column("model", style="cyan"),
    Column("opsets"),
    Column("kept", is_number=True),
    Column("changed", is_number=True),
    Column("result"),
)
FAILED = (Column("model", style="cyan"), Column("error", style="red"), Column("help"))


def batch_data(folder: Path, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return plain data for JSON."""
    failed = failures(outcomes)
    files = [each.as_dict() for each in outcomes]
    return {"output": folder, "converted": len(files) - len(failed), "failed": len(failed), "files": files}


def failures(outcomes: Sequence[Outcome]) -> list[Failed]:
    """Return the files that were not converted."""
    return [each for each in outcomes if isinstance(each, Failed)]


def write_batch(page: Page, outcomes: Sequence[Outcome]) -> None:
    """Print one row per file, then the numbers of converted and failed files."""
    failed = len(failures(outcomes))
    page.table(COLUMNS, map(_row, outcomes))
    page.blank()
    counts = f"{counted(len(outcomes) - failed, 'model')} converted, {failed} failed"
    page.line(counts, style="red" if failed else "green")
    for each in outcomes:
        if isinstance(each, Converted) and each.missing:
            page.prose(
                f"{each.out} has weights in separate files: copy {', '.join(each.missing)} to its folder."
            )


def write_failures(page: Page, outcomes: Sequence[Outcome]) -> None:
    """Print the files that were not converted, with reasons and remedies."""
    rows = [(each.source, _reason(each), each.error["remedy"]) for each in failures(outcomes)]
    if rows:
        page.table(FAILED, rows)


def _row(outcome: Outcome) -> tuple[object, ...]:
    if isinstance(outcome, Failed):
        return (outcome.source, "", "", "", f"failed: {_reason(outcome)}")
    report = outcome.report
    opsets = ", ".join(f"{each.domain} {each.source} -> {each.target}" for each in report.opsets)
    return (outcome.source, opsets or "unchanged", report.kept, len(report.changed), _result(outcome))


def _result(outcome: Converted) -> str:
    verification = outcome.verification
    if verification is None:
        return str(outcome.out)
    max_difference = max((each.absolute for each in verification.outputs), default=0.0)
    return f"{outcome.out}, equal{f' within {max_difference:.2g}' if max_difference else ''}"


def _reason(failed: Failed) -> str:
    """Return place and reason of an error, without the file: it has its own column."""
    place = str(failed.error["place"]).removeprefix(str(failed.source)).removeprefix(": ")
    return ": ".join(filter(None, (place, failed.error["reason"])))
