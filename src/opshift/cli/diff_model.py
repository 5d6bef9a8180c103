"""`opshift diff-model`, and `opshift textconv` for the differences that git shows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opshift.cli.errors import add_file_to_errors
from opshift.cli.options import (
    Format,
    FormatOption,
    InputArgument,
    NewModelArgument,
    OldModelArgument,
    QuietOption,
    ReportOption,
)
from opshift.cli.output import print_result
from opshift.cli.page import Page
from opshift.cli.paths import model_input, require_file
from opshift.cli.progress import show_progress
from opshift.model.errors import InvalidModel
from opshift.model.message_text import count_text

if TYPE_CHECKING:
    from opshift.analysis.model_diff.result import ModelDiff, PropertyChange, Region


STYLES = {"added": "green", "removed": "red", "changed": "bold magenta"}

MAX_LINES = 40
"""Maximum number of listed changes of a graph's properties, of places, or of nodes at one place."""

MAX_NODE_LINES = 8
"""Maximum number of listed changes of one node."""

MAX_PLACES = 5
"""Maximum number of listed places of one change."""


def diff_model(
    old: OldModelArgument,
    new: NewModelArgument,
    report: ReportOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show which nodes of a model were added, removed and changed.

    Nodes are matched by their outputs, operators, attributes and names. Changes that differ only in names are
    shown once. --report out.html draws both graphs at each change.
    """
    from opshift.analysis.model_diff.diff import diff_model as find_differences
    from opshift.analysis.pages.write_report import report_suffix, write_report

    old, new = require_file(old), require_file(new)
    if report is not None:
        report_suffix(report)
    with show_progress(f"Comparing {old} and {new}", quiet=quiet or form is Format.JSON):
        diff = find_differences(model_input(old), model_input(new))
    if report is not None:
        write_report(diff, report, title=f"{old} -> {new}")
    data = {"old": old, "new": new, **diff.as_dict()}
    print_result(form, data, lambda page: _write_diff(page, f"{old} -> {new}", diff, report))


def _write_diff(page: Page, title: str, diff: ModelDiff, report: Path | None) -> None:
    page.title(title)
    page.line(str(diff))
    for container in diff.containers:
        page.heading(container.place)
        _write_properties(page, container.properties, MAX_LINES, "  ")
        groups = list(container.identical())
        for group in groups[:MAX_LINES]:
            _write_regions(page, group)
        _write_more(page, len(groups) - MAX_LINES, "place")
        if container.renamed:
            page.blank()
            page.line(f"  = {count_text(len(container.renamed), 'node')} with other names only")
    if report is not None:
        page.blank()
        page.line(f"wrote {report}")


def _write_properties(page: Page, changes: Sequence[PropertyChange], most: int, indent: str) -> None:
    for each in changes[:most]:
        page.line(f"{indent}{each}", style=STYLES[each.status])
    _write_more(page, len(changes) - most, "change", indent)


def _write_regions(page: Page, group: Sequence[Region]) -> None:
    """Print the changed nodes of the first of several identical regions, and the places of the others."""
    page.blank()
    page.line(f"  {group[0].title}{f', {len(group):,} times' if len(group) > 1 else ''}", style="bold")
    changed = list(group[0].changed)
    for each in changed[:MAX_LINES]:
        page.line(f"  {each.mark} {each.node.label}", style=STYLES[each.status])
        _write_properties(page, each.changes, MAX_NODE_LINES, "      ")
    _write_more(page, len(changed) - MAX_LINES, "node")
    if len(group) > 1:
        page.line(f"  the same at {_places_text(next(each.changed).node.place for each in group[1:])}")


def _places_text(places: Iterable[str]) -> str:
    listed = list(places)
    more = len(listed) - MAX_PLACES
    return ", ".join(listed[:MAX_PLACES]) + (f", and {more:,} more" if more > 0 else "")


def _write_more(page: Page, count: int, noun: str, indent: str = "  ") -> None:
    if count > 0:
        page.line(f"{indent}... and {count_text(count, f'more {noun}')}; --format json lists all")


def textconv(source: InputArgument, form: FormatOption = Format.TEXT) -> None:
    """Print a model as text for git diff.

    Each node, value and tensor is one line; weights are represented by digests. To let `git diff` compare
    these lines, run

    git config diff.onnx.textconv "opshift textconv"

    and add the line `*.onnx diff=onnx` to the file .gitattributes. For a file that is not a model, the text
    is the reason: a failure would end `git diff`.
    """
    from opshift.analysis.model_text import model_lines
    from opshift.converter.streaming.weights import open_without_weights
    from opshift.stores.source_file import open_source

    def print_lines(lines: Iterable[str]) -> None:
        if form is Format.JSON:
            lines = list(lines)
        print_result(form, {"input": source, "lines": lines}, lambda page: _write_lines(page, lines))

    source = require_file(source)
    try:
        with add_file_to_errors(source), open_without_weights(model_input(source)) as model:
            print_lines(model_lines(model))
    except InvalidModel as error:
        # print the reason without the path, because git passes the paths of temporary files
        digest = hashlib.sha256()
        with open_source(model_input(source)) as file:
            for start in range(0, file.size, file.copy_size):
                digest.update(file.read(start, min(start + file.copy_size, file.size)))
        print_lines([error.reason, f"sha256 {digest.hexdigest()}"])


def _write_lines(page: Page, lines: Iterable[str]) -> None:
    for line in lines:
        page.line(line)
