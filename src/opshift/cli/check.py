"""`opshift check`: everything in a model that breaks a rule of ONNX's specification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.cli.failing import FINDINGS, about
from opshift.cli.options import FoldersOption, Format, FormatOption, registry_with
from opshift.cli.output import Column, counted, emit, working
from opshift.cli.places import require_file
from opshift.converter.errors import UsageError
from opshift.converter.legality.findings import Finding, Level

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.converter.legality.rules import Rule

RULES = (Column("rule", style="cyan"), Column("level"), Column("asks that"), Column("source", style="dim"))


SourcesArgument = Annotated[
    list[Path] | None, typer.Argument(metavar="IN", help="The models to check.", show_default=False)
]
LevelOption = Annotated[Level, typer.Option("--level", help="Show findings of this level and graver ones.")]
RulesOption = Annotated[bool, typer.Option("--rules", help="List the rules, and leave.")]


def check(
    sources: SourcesArgument = None,
    level: LevelOption = Level.WARNING,
    rules: RulesOption = False,
    folders: FoldersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Find what breaks a rule of ONNX's specification.

    A model without errors is legal. What is only a warning is forbidden too, but runtimes take it; an info
    is advice. Exits with 1 if there are errors.
    """
    from opshift.converter.legality.check import check as findings_of
    from opshift.converter.legality.rules import rule_table

    if rules:
        _list(form, rule_table().values())
        return
    if not sources:
        raise UsageError("IN is not given", remedy="name a model to check, or list the rules with --rules")
    for source in sources:
        require_file(source)
    registry = registry_with(folders)
    found = {}
    for source in sources:
        with working(f"Checking {source}"), about(source):
            found[source] = findings_of(source, registry=registry)
    _tell(form, found, level)
    if any(each.level is Level.ERROR for each in _all(found)):
        raise typer.Exit(FINDINGS)


def _tell(form: Format, found: dict[Path, tuple[Finding, ...]], least: Level) -> None:
    shown = {
        source: [each for each in findings if least.includes(each.level)]
        for source, findings in found.items()
    }
    models = [
        {
            "input": source,
            "counts": _counts(found[source]),
            "findings": [each.as_dict() for each in findings],
        }
        for source, findings in shown.items()
    ]

    def write(page: Page) -> None:
        for position, (source, findings) in enumerate(shown.items()):
            if position:
                page.blank()
            _write(page, source, findings, found[source])

    emit(form, {"counts": _counts(_all(found)), "models": models}, write)


def _write(page: Page, source: Path, shown: Sequence[Finding], findings: Sequence[Finding]) -> None:
    from opshift.cli.findings import write_findings

    page.title(str(source))
    write_findings(page, shown)
    if shown:
        page.blank()
    is_legal = not _counts(findings)["error"]
    page.line(_summary(findings, len(shown)), style="green" if is_legal else "bold red")


def _summary(findings: Sequence[Finding], shown: int) -> str:
    counts = _counts(findings)
    told = ", ".join(counted(count, level) for level, count in counts.items() if count) or "nothing found"
    hidden = "; --level info shows all of it" if shown < len(findings) else ""
    return f"{'not legal' if counts['error'] else 'legal'}: {told}{hidden}"


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    counts = Counter(each.level for each in findings)
    return {str(level): counts[level] for level in Level}


def _all(found: dict[Path, tuple[Finding, ...]]) -> list[Finding]:
    return [each for findings in found.values() for each in findings]


def _list(form: Format, rules: Iterable[Rule]) -> None:
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
    emit(form, {"rules": data}, lambda page: page.table(RULES, rows))
