"""`opshift check`: report violations of ONNX's specification in models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, NamedTuple

import typer

from opshift.batch.settings import Settings
from opshift.checker.findings import Finding, Level
from opshift.checker.rule_table import rule_table
from opshift.cli import options
from opshift.cli.errors import EXIT_FINDINGS, add_file_to_errors, write_findings
from opshift.cli.findings.finding import SEVERITIES, FileFinding
from opshift.cli.gate.inspect_models import inspect_models
from opshift.cli.gate.several import GateOptions
from opshift.cli.options import Format, expand_records
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page
from opshift.cli.paths import model_input
from opshift.cli.plan import PlannedModel, plan_file, plan_settings
from opshift.converter.streaming.weights import open_without_weights
from opshift.model.errors import InvalidModel
from opshift.model.locations import folder_of
from opshift.model.message_text import count_text
from opshift.registry.registry import load_registry

COLUMNS = (" errors", " warnings")
"""Columns of the table of several models; a leading space right-aligns the column."""

UNDEFINED = "node.undefined"
"""Id of the rule for nodes without a definition. Its findings are advice: such nodes were not checked."""


@expand_records
def check(
    sources: options.InputsArgument = None,
    target: options.TargetOption = None,
    level: options.LevelOption = Level.WARNING,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules, and exit.")] = False,
    *,
    gate: GateOptions,
) -> None:
    """Check models against ONNX's specification.

    A model without errors is valid. Warnings are violations that runtimes accept; infos are advice. Exits
    with 1 if there are errors. With --target, also plans the conversion of valid models, and exits with 1 if
    one is refused.
    """
    if rules:
        _print_rules(gate.form)
        return
    settings = plan_settings(target, gate)  # Checked before any model is read.
    inspect = partial(check_file, level=level, settings=settings)
    checked = inspect_models(sources or [], gate, inspect, COLUMNS, "Checking {}")
    if checked is None:
        return
    data = {"counts": checked.counts, "models": [checked.as_dict()]}
    print_result(gate.form, data, checked.write, quiet=gate.quiet and not checked.shown)
    if checked.result != "valid":
        raise typer.Exit(EXIT_FINDINGS)


def _print_rules(form: Format) -> None:
    keys = ("id", "level", "title", "source", "remedy")
    rows = [tuple(getattr(each, key) for key in keys) for each in rule_table().values()]
    listed = [dict(zip(("rule", *keys[1:]), row, strict=True)) for row in rows]
    lines = [row[:-1] for row in rows]
    columns = (Column("rule", "cyan"), "level", "requirement", "source")
    print_result(form, {"rules": listed}, lambda page: page.table(columns, lines))


class CheckedFile(NamedTuple):
    """Result for one model: numbers of all findings by level, findings to show, and a plan if requested.

    Attributes:
        unchecked: sentences about nodes without a definition, from findings that `shown` does not contain.
    """

    source: str
    counts: dict[str, int]
    shown: Sequence[Finding]
    planned: PlannedModel | None
    unchecked: Sequence[str] = ()

    @property
    def is_valid(self) -> bool:
        """Whether the model breaks no rule of level `error`."""
        return not self.counts[Level.ERROR]

    @property
    def result(self) -> str:
        """Verdict: `invalid`, `refused` if the requested conversion is refused, or else `valid`."""
        if not self.is_valid:
            return "invalid"
        return "refused" if self.planned and self.planned.report.refusals else "valid"

    def findings(self) -> Iterator[FileFinding]:
        """Yield the findings to show, and the refusals of the plan."""
        for each in self.shown:
            severity = SEVERITIES[each.level]
            place = each.place if each.place != self.source else ""
            yield FileFinding(each.rule, severity, each.reason, self.source, place, each.remedy)
        if self.planned:
            yield from self.planned.findings()

    def cells(self) -> dict[str, object]:
        """Return the numbers of errors and warnings, for the table of several models."""
        return {"errors": self.counts[Level.ERROR], "warnings": self.counts[Level.WARNING]}

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        findings = [each.as_dict() for each in self.shown]
        planned = {"plan": self.planned.as_dict()} if self.planned else {}
        unchecked = {"unchecked": list(self.unchecked)} if self.unchecked else {}
        return {"input": self.source, "counts": self.counts, "findings": findings, **unchecked, **planned}

    def write(self, page: Page) -> None:
        """Print the findings and the plan."""
        page.title(self.source)
        write_findings(page, self.shown)
        if self.shown:
            page.blank()
        numbers = ", ".join(count_text(count, level) for level, count in self.counts.items() if count)
        hidden = "; --level info shows all" if len(self.shown) < sum(self.counts.values()) else ""
        verdict = f"{'valid' if self.is_valid else 'invalid'}: {numbers or 'no findings'}{hidden}"
        page.line(verdict, style="green" if self.is_valid else "bold red")
        for each in self.unchecked:
            page.line(each)
        if self.planned:
            page.blank()
            self.planned.write(page)


def check_file(source: str, level: Level, settings: Settings) -> CheckedFile:
    """Check a model file; with a target, plan the conversion if the model is valid."""
    from opshift.checker.check import check as findings_of

    registry = load_registry(settings.opsets)
    with add_file_to_errors(source):
        file = model_input(source)
        try:
            with open_without_weights(file) as model:
                # `folder_of` returns None for standard input and for objects in stores: their folder is
                # unknown
                findings = findings_of(model, registry=registry, folder=folder_of(file))
        except InvalidModel:  # a file that is not a model is reported as a finding, too
            findings = findings_of(model_input(source), registry=registry)
    numbers = Counter(each.level for each in findings)
    counts = {str(each): numbers[each] for each in Level}
    shown = [each for each in findings if level.includes(each.level)]
    unchecked = [each.reason for each in findings if each.rule == UNDEFINED and each not in shown]
    checked = CheckedFile(source, counts, shown, None, unchecked)
    if not (settings.target and checked.is_valid):
        return checked
    return checked._replace(planned=plan_file(source, settings))
