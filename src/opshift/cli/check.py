"""`opshift check`: violations of ONNX's specification in models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from opshift.checker.findings import Finding, Level
from opshift.cli.errors import EXIT_FINDINGS, add_file_to_errors, write_findings
from opshift.cli.options import (
    DefinitionsOption,
    Format,
    FormatOption,
    LevelOption,
    QuietOption,
    registry_with,
)
from opshift.cli.output import count_text, print_result
from opshift.cli.page import Column, Page
from opshift.cli.paths import require_file
from opshift.cli.progress import show_progress
from opshift.cli.streams import model_input
from opshift.model.errors import UsageError


def check(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="IN", help="The models to check; - for standard input.")
    ] = None,
    level: LevelOption = Level.WARNING,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules, and exit.")] = False,
    folders: DefinitionsOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Check models against ONNX's specification.

    A model without errors is valid. Warnings are violations that runtimes accept; infos are advice. Exits
    with 1 if there are errors.
    """
    from opshift.checker.check import check as findings_of
    from opshift.checker.rule_table import rule_table

    if rules:
        keys = ("id", "level", "title", "source", "remedy")
        rows = [tuple(getattr(each, key) for key in keys) for each in rule_table().values()]
        listed = [dict(zip(("rule", *keys[1:]), row, strict=True)) for row in rows]
        lines = [row[:-1] for row in rows]
        columns = (Column("rule", "cyan"), "level", "requirement", "source")
        print_result(form, {"rules": listed}, lambda page: page.table(columns, lines))
        return
    if not sources:
        raise UsageError("IN is not given", remedy="name a model to check, or list the rules with --rules")
    sources = [require_file(source) for source in sources]
    registry = registry_with(folders)
    checked = []
    with show_progress("Checking", quiet=quiet or form is Format.JSON, unit="models") as progress:
        progress.total = len(sources)
        for source in sources:
            progress.note = source
            with add_file_to_errors(source):
                findings = findings_of(model_input(source), registry=registry)
            progress.done += 1
            shown = [each for each in findings if level.includes(each.level)]
            levels = Counter(each.level for each in findings)
            checked.append(CheckedModel(source, {str(each): levels[each] for each in Level}, shown))
    counts = {str(each): sum(model.counts[each] for model in checked) for each in Level}
    models = [
        {"input": path, "counts": numbers, "findings": [each.as_dict() for each in shown]}
        for path, numbers, shown in checked
    ]
    data = {"counts": counts, "models": models}
    printed = [each for each in checked if each.shown or not quiet]
    print_result(form, data, lambda page: _write(page, printed))
    if counts[Level.ERROR]:
        raise typer.Exit(EXIT_FINDINGS)


class CheckedModel(NamedTuple):
    """Model with the number of all findings by level, and the findings to show."""

    source: str
    counts: dict[str, int]
    shown: Sequence[Finding]


def _write(page: Page, models: Sequence[CheckedModel]) -> None:
    for position, (source, counts, shown) in enumerate(models):
        if position:
            page.blank()
        page.title(source)
        write_findings(page, shown)
        if shown:
            page.blank()
        is_valid = not counts[Level.ERROR]
        numbers = ", ".join(count_text(count, level) for level, count in counts.items() if count)
        hidden = "; --level info shows all" if len(shown) < sum(counts.values()) else ""
        verdict = f"{'valid' if is_valid else 'invalid'}: {numbers or 'no findings'}{hidden}"
        page.line(verdict, style="green" if is_valid else "bold red")
