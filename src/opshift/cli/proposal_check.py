"""`opshift proposal check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.cli.failing import FINDINGS
from opshift.cli.findings import STYLES
from opshift.cli.options import Format
from opshift.cli.output import counted, emit, visible, working
from opshift.cli.proposal_options import ProposalArgument, TreeOption, registry_of
from opshift.converter.legality.findings import Level

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.proposals.findings import Finding


class CheckFormat(StrEnum):
    """How findings are told."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "notice"}


def check(
    folder: ProposalArgument,
    level: Annotated[
        Level, typer.Option("--level", help="Show findings of this level and graver ones.")
    ] = Level.WARNING,
    tree: TreeOption = None,
    form: Annotated[
        CheckFormat, typer.Option("--format", help="Text, one JSON document, or GitHub's annotations.")
    ] = CheckFormat.TEXT,
) -> None:
    """Judge a proposal by every rule that a machine can.

    Runs the proposal's code. Exits with 1 if there are errors.
    """
    from opshift.proposals.check import check_proposal

    with working(f"Running {folder}", quiet=form is not CheckFormat.TEXT):
        checked = check_proposal(folder, registry_of(tree))
    shown = [each for each in checked.findings if level.includes(each.level)]
    if form is CheckFormat.GITHUB:
        for each in shown:
            typer.echo(_annotation(each))
    else:
        counts = Counter(str(each.level) for each in checked.findings)
        data = {"counts": counts, "findings": [each.as_dict() for each in shown]}
        verdict = "in order" if not checked.errors else "not in order"
        emit(Format(form), data, lambda page: write_findings(page, shown, verdict))
    if checked.errors:
        raise typer.Exit(FINDINGS)


def write_findings(page: Page, findings: Sequence[Finding], verdict: str) -> None:
    """Each finding, and a line that counts them."""
    for each in findings:
        page.line(f"{each.place}: {each.level} {each.rule}: {each.reason}", style=STYLES[each.level])
        page.line(f"  help: {each.remedy}")
    counts = Counter(each.level for each in findings)
    told = ", ".join(counted(counts[level], level) for level in Level if counts[level]) or "nothing found"
    page.line(f"{verdict}: {told}", style="bold red" if counts[Level.ERROR] else "green")


def _annotation(finding: Finding) -> str:
    """A workflow command of GitHub Actions, which shows the finding at its line."""
    place = f"file={_property(finding.place.file)},line={finding.place.line or 1}"
    command = f"{_COMMANDS[finding.level]} {place},title={_property(finding.rule)}"
    return f"::{command}::{_escaped(visible(f'{finding.reason} ({finding.remedy})'))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
