"""`opshift check`: violations of ONNX's specification in models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.checker.findings import Finding, Level
from opshift.cli.errors import EXIT_FINDINGS, add_file_to_errors
from opshift.cli.options import DefinitionsOption, Format, FormatOption, registry_with
from opshift.cli.output import count_text, print_result, show_progress
from opshift.cli.page import Column
from opshift.cli.paths import require_file
from opshift.model.errors import UsageError

if TYPE_CHECKING:
    from opshift.checker.rule_table import Rule
    from opshift.cli.page import Page

RULE_COLUMNS = (
    Column("rule", style="cyan"),
    Column("level"),
    Column("requirement"),
    Column("source", style="dim"),
)

SourcesArgument = Annotated[
    list[Path] | None, typer.Argument(metavar="IN", help="The models to check.", show_default=False)
]

LevelOption = Annotated[
    Level, typer.Option("--level", help="Show findings of this level and more severe ones.")
]

RulesOption = Annotated[bool, typer.Option("--rules", help="List the rules, and exit.")]


def check(
    sources: SourcesArgument = None,
    level: LevelOption = Level.WARNING,
    rules: RulesOption = False,
    folders: DefinitionsOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Check models against ONNX's specification.

    A model without errors is valid. Warnings are violations that runtimes accept; infos are advice. Exits
    with 1 if there are errors.
    """
    from opshift.checker.check import check as findings_of
    from opshift.checker.rule_table import rule_table

    if rules:
        _list_rules(form, rule_table().values())
        return
    if not sources:
        raise UsageError("IN is not given", remedy="name a model to check, or list the rules with --rules")
    for source in sources:
        require_file(source)
    registry = registry_with(folders)
    findings_by_model = {}
    for source in sources:
        with show_progress(f"Checking {source}"), add_file_to_errors(source):
            findings_by_model[source] = findings_of(source, registry=registry)
    _report(form, findings_by_model, level)
    if any(each.level is Level.ERROR for each in _all_findings(findings_by_model)):
        raise typer.Exit(EXIT_FINDINGS)


def _report(form: Format, findings_by_model: dict[Path, tuple[Finding, ...]], lowest_level: Level) -> None:
    shown = {
        source: [each for each in findings if lowest_level.includes(each.level)]
        for source, findings in findings_by_model.items()
    }
    models = [
        {
            "input": source,
            "counts": _counts(findings_by_model[source]),
            "findings": [each.as_dict() for each in findings],
        }
        for source, findings in shown.items()
    ]

    def write(page: Page) -> None:
        for position, (source, findings) in enumerate(shown.items()):
            if position:
                page.blank()
            _write(page, source, findings, findings_by_model[source])

    print_result(form, {"counts": _counts(_all_findings(findings_by_model)), "models": models}, write)


def _write(page: Page, source: Path, shown: Sequence[Finding], findings: Sequence[Finding]) -> None:
    from opshift.cli.errors import write_findings

    page.title(str(source))
    write_findings(page, shown)
    if shown:
        page.blank()
    is_valid = not _counts(findings)["error"]
    page.line(_summary(findings, len(shown)), style="green" if is_valid else "bold red")


def _summary(findings: Sequence[Finding], shown: int) -> str:
    counts = _counts(findings)
    numbers = ", ".join(count_text(count, level) for level, count in counts.items() if count) or "no findings"
    hidden = "; --level info shows all" if shown < len(findings) else ""
    return f"{'invalid' if counts['error'] else 'valid'}: {numbers}{hidden}"


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    counts = Counter(each.level for each in findings)
    return {str(level): counts[level] for level in Level}


def _all_findings(findings_by_model: dict[Path, tuple[Finding, ...]]) -> list[Finding]:
    return [each for findings in findings_by_model.values() for each in findings]


def _list_rules(form: Format, rules: Iterable[Rule]) -> None:
    listed = list(rules)
    data = [
        {
            "rule": each.id,
            "level": each.level,
            "title": each.title,
            "source": each.source,
            "remedy": each.remedy,
        }
        for each in listed
    ]
    rows = [(each.id, each.level, each.title, each.source) for each in listed]
    print_result(form, {"rules": data}, lambda page: page.table(RULE_COLUMNS, rows))
