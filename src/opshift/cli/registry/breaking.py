"""`opshift breaking`: breaking changes in a tree of definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.catalogue.type_texts import change_text
from opshift.cli.errors import EXIT_FINDINGS
from opshift.cli.findings.finding import Finding, Severity
from opshift.cli.findings.formats import findings_writer
from opshift.cli.options import FindingsFormatOption, Format, QuietOption
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page, number
from opshift.cli.registry import change_options
from opshift.cli.registry.revisions import unpacked
from opshift.model.errors import UsageError
from opshift.model.message_text import count_text
from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.policies import Mode, Policy

if TYPE_CHECKING:
    from opshift.registry.changes.findings import ChangeFinding, Waiver
    from opshift.registry.changes.trees import Tree

FINDING_COLUMNS = (
    Column("operator", "cyan"),
    "class",
    "rule",
    "change",
    "reason",
    Column("waiver", "bold magenta"),
)


def breaking(
    tree: Annotated[
        Path | None,
        typer.Argument(
            metavar="TREE",
            help="A folder with files <domain>/<operator>.yaml (default: the built-in definitions).",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="PATH|REF",
            help="Compare with another tree, or with TREE at a commit, branch or tag of git.",
        ),
    ] = None,
    policy: change_options.PolicyOption = "onnx-strict",
    mode: change_options.ModeOption = Mode.NONE,
    waivers: Annotated[
        Path | None,
        typer.Option(
            "--waivers",
            metavar="FILE",
            help="A YAML list of accepted findings, each with rule, operator, reason and until.",
        ),
    ] = None,
    rules: change_options.RulesOption = False,
    explain: change_options.ExplainOption = None,
    quiet: QuietOption = False,
    form: FindingsFormatOption = Format.TEXT,
) -> None:
    """Find changes that break models.

    With --against, reports published versions that were changed although the policy requires a new version,
    and new versions that the mode does not allow. Without --against, classifies every step in the history of
    TREE, and reports those that the mode does not allow. Exits with 1 if a finding is not waived.
    """
    from opshift.registry.changes.findings import apply_waivers, find_unused_waivers, load_waivers
    from opshift.registry.registry import default_registry

    if rules or explain:
        change_options.list_rules(form, explain)
        return
    chosen = change_options.policy_named(policy)
    accepted = load_waivers(waivers) if waivers else ()
    folder = tree or default_registry().folders[0]
    writer = findings_writer(form, "breaking")
    with writer or nullcontext():
        found, steps = _findings(folder, against, chosen, mode)
        findings = list(apply_waivers(found, accepted, date.today()))
        if writer:
            writer.add_all(_finding(each, folder) for each in findings)
    unused = find_unused_waivers(findings, accepted)
    open_findings = [each for each in findings if not each.is_waived]
    data = {
        "policy": chosen.name,
        "mode": str(mode),
        "classes": {str(each): steps[each] for each in ChangeClass},
        "counts": {"findings": len(open_findings), "waived": len(findings) - len(open_findings)},
        "findings": [each.as_dict() for each in findings],
        "unused_waivers": [each.model_dump(mode="json") for each in unused],
    }
    if not writer:
        is_silent = quiet and not findings
        print_result(form, data, lambda page: _write(page, findings, steps, unused), quiet=is_silent)
    if open_findings:
        raise typer.Exit(EXIT_FINDINGS)


def _findings(
    folder: Path, against: str | None, policy: Policy, mode: Mode
) -> tuple[list[ChangeFinding], Counter[ChangeClass]]:
    """Return the findings and, without another tree, the number of steps in the history per class."""
    from opshift.registry.changes.history import history_findings, history_steps
    from opshift.registry.changes.trees import compare_trees, read_tree

    if not folder.is_dir():
        raise UsageError("folder does not exist", place=str(folder), remedy="name a folder of definitions")
    tree = read_tree(folder)
    if against is not None:
        return list(compare_trees(_baseline_tree(against, folder), tree, policy, mode)), Counter()
    operators = list(tree.operators.values())
    steps = Counter(step.change_class for step in history_steps(operators))
    return list(history_findings(operators, mode)), steps


def _finding(found: ChangeFinding, folder: Path) -> Finding:
    from opshift.registry.changes.trees import version_place

    place = version_place(folder, found.operator)
    text = f"{change_text(found.change.change)}: {found.reason}"
    if found.is_waived and found.waiver:
        text += f"; waived until {found.waiver.until}: {found.waiver.reason}"
    level: Severity = "note" if found.is_waived else "error"
    rule = found.change.rule
    return Finding(rule, level, text, place.file, found.operator, found.remedy, line=place.line)


def _write(
    page: Page,
    findings: Sequence[ChangeFinding],
    steps: Counter[ChangeClass],
    unused_waivers: Sequence[Waiver],
) -> None:
    if steps:
        page.title(f"{count_text(steps.total(), 'step')} in the history")
        columns = (Column("class", "cyan"), number("steps"), "meaning")
        page.table(columns, [(each, steps[each], each.meaning) for each in ChangeClass])
        page.blank()
    if findings:
        page.table(FINDING_COLUMNS, map(_row, findings))
        for remedy in dict.fromkeys(each.remedy for each in findings if not each.is_waived):
            page.line(f"help: {remedy}")
    for waiver in unused_waivers:
        page.line(f"unused waiver: {waiver.rule} of {waiver.operator}", style="bold magenta")
    open_findings = sum(not each.is_waived for each in findings)
    summary = count_text(open_findings, "finding") if open_findings else "no breaking changes"
    waived = f", {len(findings) - open_findings} waived" if len(findings) > open_findings else ""
    page.line(f"{summary}{waived}", style="bold red" if open_findings else "green")


def _row(finding: ChangeFinding) -> tuple[object, ...]:
    change, waiver = finding.change, finding.waiver
    until = f"{'until' if finding.is_waived else 'expired on'} {waiver.until}" if waiver else ""
    text = change_text(change.change)
    return finding.operator, change.change_class, change.rule, text, finding.reason, until


def _baseline_tree(named: str, folder: Path) -> Tree:
    """Return the tree in folder `named` if it exists, else `folder` at the git revision `named`."""
    from opshift.registry.changes.trees import read_tree

    if Path(named).is_dir():
        return read_tree(Path(named))
    with unpacked(named, folder) as unpacked_folder:
        return read_tree(unpacked_folder)
