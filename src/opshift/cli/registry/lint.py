"""`opshift lint`: mistakes in definitions of operators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opshift.adapters.core.adapter_table import adapter_table
from opshift.cli.errors import EXIT_FINDINGS
from opshift.cli.findings.finding import FileFinding
from opshift.cli.findings.formats import findings_writer
from opshift.cli.options import AdaptersOption, FindingsFormatOption, Format, QuietOption
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page
from opshift.model.errors import UsageError
from opshift.model.message_text import count_text
from opshift.registry.errors import DefinitionFinding
from opshift.registry.lint.rule_table import rule_table


def lint(
    trees: Annotated[
        list[Path] | None,
        typer.Argument(metavar="TREE...", help="The folders with files <domain>/<operator>.yaml."),
    ] = None,
    adapters: AdaptersOption = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules, and exit.")] = False,
    quiet: QuietOption = False,
    form: FindingsFormatOption = Format.TEXT,
) -> None:
    """Find mistakes in definitions of operators.

    All findings are printed, each with its file, line and column, the rule and a remedy. Other commands
    refuse a definition with such mistakes. Exits with 1 if there are findings.
    """
    from opshift.registry.lint_tree import lint_tree

    if rules:
        rows = [(each.id, each.title, each.remedy) for each in rule_table().values()]
        listed = [dict(zip(("rule", "title", "remedy"), row, strict=True)) for row in rows]
        columns = (Column("rule", "cyan"), "requirement")
        print_result(form, {"rules": listed}, lambda page: page.table(columns, [row[:2] for row in rows]))
        return
    if not trees:
        raise UsageError("TREE is not given", remedy="name a folder, or list the rules with --rules")
    for tree in trees:
        if not tree.is_dir():
            raise UsageError("is not a folder", place=str(tree), remedy="name a folder with definitions")
    findings = [each for tree in trees for each in lint_tree(tree, adapter_table())]
    writer = findings_writer(form, "lint")
    if writer:
        with writer:
            writer.add_all(map(_file_finding, findings))
    else:
        data = {"findings": [each.as_dict() for each in findings]}
        print_result(form, data, lambda page: _write_findings(page, findings), quiet=quiet and not findings)
    if findings:
        raise typer.Exit(EXIT_FINDINGS)


def _file_finding(found: DefinitionFinding) -> FileFinding:
    place = found.place
    return FileFinding(
        found.rule, "error", found.reason, place.file, place.node, found.remedy, line=place.line
    )


def _write_findings(page: Page, findings: list[DefinitionFinding]) -> None:
    for each in findings:
        place = f"{each.place}:{each.place.column}" if each.place.column else each.place
        page.line(f"{place}: {each.rule}: {each.reason}")
        page.prose(f"help: {each.remedy}", indent=2)
    verdict = count_text(len(findings), "finding") if findings else "no findings"
    page.line(verdict, style="bold red" if findings else "green")
