"""Report of the conversion of several files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from opshift.analysis.pages.conversion_page import changes_section
from opshift.analysis.pages.document import Document
from opshift.analysis.pages.markdown import escape_line, table
from opshift.analysis.pages.write_report import write_page
from opshift.cli.batch import FailedFile, Outcome, batch_row


def write_batch_report(
    path: Path, title: str, data: Mapping[str, object], outcomes: Sequence[Outcome]
) -> None:
    """Write the results of all files, one row each, and the changes of each converted file.

    `data` is the content of a report in JSON.
    """
    write_page(path, data, lambda: _page(title, outcomes))


def _page(title: str, outcomes: Sequence[Outcome]) -> Document:
    rows, parts = [], []
    for each in outcomes:
        remedy = each.error["remedy"] if isinstance(each, FailedFile) else ""
        rows.append(tuple(map(escape_line, (*batch_row(each), remedy))))
        if not isinstance(each, FailedFile) and each.report.changed:
            parts += [f"## {escape_line(each.source)}", *changes_section(each.report)]
    results = table(("model", "opsets", "kept", "changed", "result", "what to do"), rows)
    return Document("\n\n".join(filter(None, (f"# {escape_line(title)}", results, *parts))) + "\n")
