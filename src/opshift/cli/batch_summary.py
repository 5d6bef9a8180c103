"""Several files in one table: what became of each."""

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
FAILED = (Column("model", style="cyan"), Column("failed", style="red"), Column("help"))


def batch_data(folder: Path, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Plain data, for JSON."""
    failed = failures(outcomes)
    files = [each.as_dict() for each in outcomes]
    return {"output": folder, "converted": len(files) - len(failed), "failed": len(failed), "files": files}


def failures(outcomes: Sequence[Outcome]) -> list[Failed]:
    """Those that were not written."""
    return [each for each in outcomes if isinstance(each, Failed)]


def write_batch(page: Page, outcomes: Sequence[Outcome]) -> None:
    """One row for each file, then how many there are of which kind."""
    failed = len(failures(outcomes))
    page.table(COLUMNS, map(_row, outcomes))
    page.blank()
    counts = f"{counted(len(outcomes) - failed, 'model')} converted, {failed} failed"
    page.line(counts, style="red" if failed else "green")
    for each in outcomes:
        if isinstance(each, Converted) and each.missing:
            page.prose(f"Copy {', '.join(each.missing)} beside {each.out}: its weights are there.")


def write_failures(page: Page, outcomes: Sequence[Outcome]) -> None:
    """Those that were not written, and why."""
    rows = [(each.source, _reason(each), each.error["remedy"]) for each in failures(outcomes)]
    if rows:
        page.table(FAILED, rows)


def _row(outcome: Outcome) -> tuple[object, ...]:
    if isinstance(outcome, Failed):
        return (outcome.source, "", "", "", f"failed: {_reason(outcome)}")
    report = outcome.report
    steps = ", ".join(f"{each.domain} {each.source} -> {each.target}" for each in report.opsets)
    return (outcome.source, steps or "as they are", report.kept, len(report.changed), _written(outcome))


def _written(outcome: Converted) -> str:
    found = outcome.verification
    if found is None:
        return str(outcome.out)
    furthest = max((each.absolute for each in found.outputs), default=0.0)
    return f"{outcome.out}, equal{f' within {furthest:.2g}' if furthest else ''}"


def _reason(failed: Failed) -> str:
    """What is wrong; the place of an error names the file, which has a column of its own."""
    place = str(failed.error["place"]).removeprefix(str(failed.source)).removeprefix(": ")
    return ": ".join(filter(None, (place, failed.error["reason"])))
