"""`opshift breaking`: what a tree of definitions does to versions that are published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opshift.cli.change_options import (
    ExplainOption,
    ModeOption,
    PolicyOption,
    RulesOption,
    list_rules,
    policy_named,
)
from opshift.cli.failing import FINDINGS
from opshift.cli.options import Format, FormatOption
from opshift.cli.output import Column, counted, emit
from opshift.converter.errors import UsageError
from opshift.registry.changes.classes import ChangeClass
from opshift.registry.changes.policies import Mode, Policy

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.registry.changes.findings import Finding
    from opshift.registry.changes.waivers import Waiver

FINDING = (
    Column("operator", style="cyan"),
    Column("class"),
    Column("rule"),
    Column("change"),
    Column("why"),
    Column("waiver", style="yellow"),
)
CLASSES = (Column("class", style="cyan"), Column("steps", is_number=True), Column("meaning", style="dim"))
TreeArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="TREE",
        help="Definitions, laid out as <domain>/<operator>.yaml; by default the project's own.",
        show_default=False,
    ),
]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="PATH|REF",
        help="Compare with another tree, or with TREE as a commit, branch or tag of git has it.",
        show_default=False,
    ),
]
WaiversOption = Annotated[
    Path | None,
    typer.Option(
        "--waivers",
        metavar="FILE",
        help="A YAML list of findings that are accepted: rule, operator, reason, until.",
        show_default=False,
    ),
]


def breaking(
    tree: TreeArgument = None,
    against: AgainstOption = None,
    policy: PolicyOption = "onnx-strict",
    mode: ModeOption = Mode.NONE,
    waivers: WaiversOption = None,
    rules: RulesOption = False,
    explain: ExplainOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Find changes that break models.

    With --against: published versions that were changed in place where the policy asks for a new version,
    and new versions that the mode does not allow. Without: every step in the history of TREE is classified,
    and judged by the mode. Exits with 1 if something is found that no waiver covers.
    """
    from opshift.registry.changes.findings import unused, waive
    from opshift.registry.changes.waivers import load_waivers

    if rules or explain:
        list_rules(form, explain)
        return
    chosen = policy_named(policy)
    accepted = load_waivers(waivers) if waivers else ()
    found, steps = _found(tree or _ours(), against, chosen, mode)
    judged = list(waive(found, accepted, date.today()))
    open_findings = [each for each in judged if not each.is_waived]
    data = {
        "policy": chosen.name,
        "mode": str(mode),
        "classes": {str(each): steps[each] for each in ChangeClass},
        "counts": {"findings": len(open_findings), "waived": len(judged) - len(open_findings)},
        "findings": [each.as_dict() for each in judged],
        "unused_waivers": [each.model_dump(mode="json") for each in unused(judged, accepted)],
    }
    emit(form, data, lambda page: _write(page, judged, steps, unused(judged, accepted)))
    if open_findings:
        raise typer.Exit(FINDINGS)


def _ours() -> Path:
    from opshift.registry.catalogue import default_registry

    return default_registry().folders[0]


def _found(
    folder: Path, against: str | None, policy: Policy, mode: Mode
) -> tuple[list[Finding], Counter[ChangeClass]]:
    """The findings; and without another tree, the steps of the history by class."""
    from opshift.cli.git_trees import tree_against
    from opshift.registry.changes.history import history_findings, history_steps
    from opshift.registry.changes.trees import compare_trees, read_tree

    if not folder.is_dir():
        raise UsageError("there is no such folder", place=str(folder), remedy="name a tree of definitions")
    tree = read_tree(folder)
    if against is not None:
        return list(compare_trees(tree_against(against, folder), tree, policy, mode)), Counter()
    operators = list(tree.operators.values())
    steps = Counter(step.change_class for step in history_steps(operators))
    return list(history_findings(operators, mode)), steps


def _write(page: Page, found: Sequence[Finding], steps: Counter[ChangeClass], idle: Sequence[Waiver]) -> None:
    if steps:
        page.title(f"{counted(steps.total(), 'step')} in the history")
        page.table(CLASSES, [(each, steps[each], each.meaning) for each in ChangeClass])
        page.blank()
    if found:
        page.table(FINDING, [_row(each) for each in found])
        for remedy in dict.fromkeys(each.remedy for each in found if not each.is_waived):
            page.line(f"help: {remedy}")
    for waiver in idle:
        page.line(f"this waiver covers nothing: {waiver.rule} of {waiver.operator}", style="yellow")
    open_findings = sum(not each.is_waived for each in found)
    told = counted(open_findings, "finding") if open_findings else "nothing is broken"
    waived = f", {len(found) - open_findings} waived" if len(found) > open_findings else ""
    page.line(f"{told}{waived}", style="bold red" if open_findings else "green")


def _row(finding: Finding) -> tuple[Any, ...]:
    from opshift.cli.change_text import change_text

    change, waiver = finding.change, finding.waiver
    until = f"{'until' if finding.is_waived else 'expired on'} {waiver.until}" if waiver else ""
    return (
        finding.operator,
        change.change_class,
        change.rule,
        change_text(change.change),
        finding.reason,
        until,
    )
