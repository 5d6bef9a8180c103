"""`opshift proposal check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from opshift.checker.findings import Level
from opshift.cli.errors import EXIT_FINDINGS, LEVEL_STYLES
from opshift.cli.options import Format, LevelOption, QuietOption
from opshift.cli.output import print_result
from opshift.cli.page import Page, displayable
from opshift.cli.progress import show_progress
from opshift.model.errors import UsageError
from opshift.model.message_text import count_text
from opshift.opsets import OPSETS
from opshift.proposals.content.staged_registry import registry_of_tree
from opshift.registry.definition_files import REVIEWERS

if TYPE_CHECKING:
    from opshift.proposals.content.findings import ProposalFinding


_ANNOTATIONS = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "notice"}


def check(
    folder: ProposalArgument,
    level: LevelOption = Level.WARNING,
    tree: TreeOption = None,
    trust: TrustOption = None,
    quiet: QuietOption = False,
    form: Annotated[
        Literal["text", "json", "github"],
        typer.Option("--format", help="Text, one JSON document, or annotations for GitHub Actions."),
    ] = "text",
) -> None:
    """Check a proposal against every rule that can be checked automatically.

    Runs the proposal's code. Exits with 1 if there are errors.
    """
    from opshift.proposals.check import check_proposal

    with (
        trusted_folder(trust, tree) as trusted,
        show_progress(f"Running {folder}", quiet=quiet or form != "text"),
    ):
        checked = check_proposal(folder, registry_of_tree(tree), trusted=trusted)
    shown = [each for each in checked.findings if level.includes(each.level)]
    if form == "github":
        for each in shown:
            typer.echo(_annotation(each))
    else:
        counts = Counter(str(each.level) for each in checked.findings)
        data = {"counts": counts, "findings": [each.as_dict() for each in shown]}
        verdict = "valid" if not checked.errors else "invalid"
        print_result(
            Format(form), data, lambda page: write_findings(page, shown, verdict), quiet=quiet and not shown
        )
    if checked.errors:
        raise typer.Exit(EXIT_FINDINGS)


def write_findings(page: Page, findings: Sequence[ProposalFinding], verdict: str) -> None:
    """Print the findings, and a summary line that starts with `verdict`."""
    for each in findings:
        page.line(f"{each.place}: {each.level} {each.rule}: {each.reason}", style=LEVEL_STYLES[each.level])
        page.line(f"  help: {each.remedy}")
    counts = Counter(each.level for each in findings)
    numbers = ", ".join(count_text(counts[level], level) for level in Level if counts[level]) or "no findings"
    page.line(f"{verdict}: {numbers}", style="bold red" if counts[Level.ERROR] else "green")


def _annotation(finding: ProposalFinding) -> str:
    """Return a workflow command of GitHub Actions, which shows a finding at its line."""
    from opshift.cli.findings.github import annotation

    place = {"file": finding.place.file, "line": str(finding.place.line or 1)}
    text = displayable(f"{finding.reason} ({finding.remedy})")
    return annotation(_ANNOTATIONS[finding.level], {**place, "title": finding.rule}, text)


ProposalArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The proposal's folder.")]

TrustOption = Annotated[
    str | None,
    typer.Option(
        "--trust",
        metavar="BASE",
        help="Read reviewers.yaml and its keys from a git revision of TREE, or from another folder.",
    ),
]


@contextmanager
def trusted_folder(base: str | None, tree: Path | None) -> Iterator[Path | None]:
    """Yield the folder with the trusted `reviewers.yaml`: a folder, or TREE at a git revision.

    Raises:
        UsageError: there is no such folder or revision, or it has no `reviewers.yaml`.
    """
    if base is None:
        yield None
        return
    with ExitStack() as stack:
        folder = Path(base)
        if not folder.is_dir():
            from opshift.cli.registry.revisions import unpacked

            folder = stack.enter_context(unpacked(base, tree or OPSETS))
        if not (folder / REVIEWERS).exists():
            raise UsageError(f"has no {REVIEWERS}", place=f"--trust {base}", remedy="name another base")
        yield folder


TreeOption = Annotated[
    Path | None,
    typer.Option(
        "--opsets", metavar="TREE", help="The definitions to which the proposal applies (default: built-in)."
    ),
]
