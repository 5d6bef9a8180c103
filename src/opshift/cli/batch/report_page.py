"""Report of a batch as a page, for `--report`."""

from collections.abc import Sequence
from pathlib import Path

from opshift.analysis.pages.conversion_page import changes_section
from opshift.analysis.pages.document import Document, escape_line, table
from opshift.analysis.pages.write_report import write_page
from opshift.batch.outcome import ModelOutcome
from opshift.cli.conversion_text import opsets_text
from opshift.cli.gate.inspect_file import GateResult


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
