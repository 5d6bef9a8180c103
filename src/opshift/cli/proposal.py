"""`opshift proposal`: write, check, review and accept operator proposals."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from opshift.checker.findings import Level
from opshift.cli import completion
from opshift.cli.commands import HelpCommand, examples_text, subcommand_group
from opshift.cli.errors import EXIT_FINDINGS, LEVEL_STYLES
from opshift.cli.findings.formats import annotation
from opshift.cli.options import Format, FormatOption, LevelOption, QuietOption, local_path
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page, displayable
from opshift.cli.progress import show_progress
from opshift.cli.registry.revisions import unpacked
from opshift.model.atomic_files import write_files
from opshift.model.errors import UsageError
from opshift.model.message_text import count_text, did_you_mean
from opshift.opsets import OPSETS
from opshift.proposals.content.findings import NotAcceptable, ProposalFinding
from opshift.proposals.content.folder import ProposalFolder
from opshift.proposals.content.models import KINDS, Kind
from opshift.proposals.content.staged_registry import is_standard, registry_for, registry_of_tree
from opshift.registry.definition_files import REVIEWERS

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

    Runs the code of the proposal and of the folder of definitions. Exits with 1 if there are errors.
    """
    from opshift.proposals.check import check_proposal

    with (
        trusted_folder(trust, tree) as trusted,
        show_progress(f"Running {folder}", quiet=quiet or form != "text"),
    ):
        checked = check_proposal(folder, registry_for(folder, tree), trusted=trusted)
    shown = [each for each in checked.findings if level.includes(each.level)]
    if form == "github":
        for each in shown:
            typer.echo(_annotation(each))
    else:
        counts = Counter(str(each.level) for each in checked.findings)
        data = {"counts": counts, "findings": [each.as_dict() for each in shown]}
        verdict = "valid" if not checked.errors else "invalid"

        def write(page: Page) -> None:
            write_findings(page, shown, verdict)
            if not checked.errors:
                sign_command = _command_line("sign", folder, tree, "--name", "NAME")
                page.line(f"Two reviewers sign it off with `{sign_command}`.")

        print_result(Format(form), data, write, quiet=quiet and not shown)
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
    """Yield the folder with the trusted `reviewers.yaml`: `base`, or `tree` at the git revision `base`.

    Without `base`, yields `None`. `tree` is by default the built-in definitions.

    Raises:
        UsageError: the folder or the revision does not exist, or lacks `reviewers.yaml`.
    """
    if base is None:
        yield None
        return
    with ExitStack() as stack:
        folder = Path(base)
        if not folder.is_dir():
            folder = stack.enter_context(unpacked(base, tree or OPSETS))
        if not (folder / REVIEWERS).exists():
            raise UsageError(f"has no {REVIEWERS}", place=f"--trust {base}", remedy="name another base")
        yield folder


NEW_TREE = (
    "`opshift opset copy TREE` writes one; for a private domain it may be a folder that does not exist yet."
)

TreeOption = Annotated[
    Path | None,
    typer.Option(
        "--opsets",
        metavar="TREE",
        help=f"The tree of definitions to which the proposal applies (default: built-in). {NEW_TREE}",
    ),
]


KINDS_HELP = {
    "new-operator": "an operator that no existing operators express",
    "new-function": "one with a function body",
    "update": "a new version, or an edited version that is not released",
    "deprecation": "a new version that names replacements",
    "removal": "no version in later opsets",
    "promotion": "a preview or private operator that moves to the domain",
}

AUTHOR_PATTERN = re.compile(r"\s*(?P<name>[^<]*?)\s*<(?P<email>[^>]+)>\s*|(?P<bare>[^<]*)")

EXAMPLES = {
    "new": "squareplus --kind new-function --name Squareplus",
    "check": "squareplus --level info",
    "explain": "body.agrees",
    "render": "squareplus --out squareplus.html",
    "sign": "squareplus --name 'Grace Reviewer'",
    "status": "squareplus",
    "accept": "squareplus --opsets opsets",
}
"""Arguments of each subcommand, for its help."""

proposal = subcommand_group(
    """Write, check, review and accept operator proposals.

    The usual order: `opshift opset copy TREE`, then new, check, render, sign (by two people) and accept, each
    with --opsets TREE, and in the end `opshift opset release`. A proposal for a private domain needs no copy
    and no release. docs/proposals.md has all files and keys.
    """
)


def _command_line(name: str, folder: Path, tree: Path | None, *options: str) -> str:
    """Return the shell command line of a subcommand of `opshift proposal`."""
    chosen = () if tree is None else ("--opsets", str(tree))
    return shlex.join(("opshift", "proposal", name, str(folder), *options, *chosen))


def _examples_of_command(command: str) -> str | None:
    return examples_text(f"proposal {command}", [EXAMPLES[command]])


@proposal.command(
    cls=HelpCommand,
    epilog=examples_text("proposal new", ("squareplus --kind new-function --name Squareplus",)),
)
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to create.", parser=local_path)],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            "-k",
            metavar="KIND",
            help=f"One of {', '.join(f'{each} ({KINDS_HELP[each]})' for each in KINDS)}.",
        ),
    ],
    name: Annotated[str, typer.Option("--name", "-n", metavar="NAME", help="The operator, such as Conv.")],
    domain: Annotated[
        str, typer.Option("--domain", "-d", metavar="DOMAIN", help="The operator's domain.")
    ] = "ai.onnx",
    author: Annotated[str, typer.Option("--author", metavar="'NAME <EMAIL>'", help="The author.")] = "",
    tree: TreeOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Create a proposal: files with questions to answer."""
    from opshift.proposals.scaffold import ProposalRequest, scaffold

    found: Kind | None = next((each for each in KINDS if each == kind), None)
    if found is None:
        remedy = did_you_mean(kind, KINDS, f"choose one of {', '.join(KINDS)}")
        raise UsageError(f"unknown kind of proposal {kind!r}", remedy=remedy)
    match = AUTHOR_PATTERN.fullmatch(author)
    if match is None:
        raise UsageError(f"invalid author {author!r}", remedy="write --author 'Name <email>'")
    author_name = (match["name"] or match["bare"] or "").strip()
    request = ProposalRequest(found, domain, name, author_name, match["email"] or "")
    files = scaffold(folder, request, registry_of_tree(tree, domain))

    def write(page: Page) -> None:
        for each in files:
            page.line(f"wrote {each}")
        page.line(f"Answer the questions in them, then run `{_command_line('check', folder, tree)}`.")

    print_result(form, {"files": files}, write, quiet=quiet)


proposal.command("check", cls=HelpCommand, epilog=_examples_of_command("check"))(check)


@proposal.command(cls=HelpCommand, epilog=_examples_of_command("explain"))
def explain(
    rule: Annotated[
        str,
        typer.Argument(
            metavar="RULE",
            autocompletion=completion.complete_proposal_rule,
            help="The id of a rule, such as body.agrees.",
        ),
    ] = "",
    form: FormatOption = Format.TEXT,
) -> None:
    """Explain a rule, or list all rules."""
    from opshift.proposals.rules.rule_table import rule_table

    table = rule_table()
    if rule and rule not in table:
        remedy = did_you_mean(rule, table, "list the rules with `opshift proposal explain`")
        raise UsageError(f"unknown rule {rule!r}", remedy=remedy)
    rules = [table[rule]] if rule else list(table.values())
    keys = ("id", "level", "title", "about", "source", "remedy", "gate")
    data = {"rules": [{key: str(getattr(each, key)) for key in keys} for each in rules]}

    def write(page: Page) -> None:
        if not rule:
            rows = [(each.id, each.level, each.title) for each in rules]
            page.table((Column("rule", "cyan"), "level", "requirement"), rows)
            return
        page.title(f"{rules[0].id} ({rules[0].level})")
        for text in (rules[0].title, rules[0].about):
            page.prose(text) if text else None
        page.facts({"source": rules[0].source, "help": rules[0].remedy})

    print_result(form, data, write)


@proposal.command(
    cls=HelpCommand, epilog=examples_text("proposal render", ("squareplus --out squareplus.html",))
)
def render(
    folder: ProposalArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The page to write: .md or .html.", parser=local_path
        ),
    ],
    tree: TreeOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write the review page of a proposal.

    The page contains the signature, the formula, the examples with their values, and the evidence. Runs the
    proposal's code.
    """
    from opshift.proposals.page import review_page

    if output.suffix not in (".md", ".html"):
        remedy = "name a file that ends in .md or .html"
        raise UsageError("unsupported suffix", place=str(output), remedy=remedy)
    with show_progress(f"Running {folder}", quiet=quiet or form is Format.JSON):
        review = review_page(folder, registry_for(folder, tree))
    write_files({output: review.markdown if output.suffix == ".md" else review.html()})
    print_result(form, {"files": [output]}, lambda page: page.line(f"wrote {output}"), quiet=quiet)


@proposal.command(
    cls=HelpCommand, epilog=examples_text("proposal sign", ("squareplus --name 'Grace Reviewer'",))
)
def sign(
    folder: ProposalArgument,
    name: Annotated[str, typer.Option("--name", "-n", metavar="NAME", help="The name of the reviewer.")],
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="The SSH key to sign with, or its .pub file."),
    ] = None,
    tree: TreeOption = None,
    trust: TrustOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Sign off the current content of a proposal, which must pass its check.

    The sign-off contains a fingerprint of the content; any later change invalidates it. A file reviewers.yaml
    in TREE restricts the names, and can require signatures, which ssh-keygen writes with --key. Runs the
    proposal's code.
    """
    from opshift.proposals.check import check_proposal
    from opshift.proposals.content.reviewers import ReviewerList
    from opshift.proposals.content.sign_off import REQUIRED_SIGN_OFFS, valid_sign_offs
    from opshift.proposals.content.sign_off import sign as signed_by

    registry = registry_for(folder, tree)
    with trusted_folder(trust, tree) as trusted:
        with show_progress(f"Running {folder}", quiet=quiet or form is Format.JSON):
            errors = check_proposal(folder, registry, trusted=trusted).errors
        if errors:
            count = count_text(len(errors), "error")
            reason = f"the check of the content finds {count}, first {errors[0].place}: {errors[0].reason}"
            raise UsageError(reason, remedy=f"run opshift proposal check {folder}, and resolve them")
        reviewers = ReviewerList(trusted or registry.folders[-1])
        signed = signed_by(ProposalFolder(folder), name, reviewers, key=key)
        valid = len(valid_sign_offs(ProposalFolder(folder), reviewers))

    def write(page: Page) -> None:
        page.line(f"{signed.name} signed off {signed.fingerprint}")
        accept_command = _command_line("accept", folder, tree or Path("TREE"))
        missing = f"{valid} of {REQUIRED_SIGN_OFFS} sign-offs"
        page.line(missing if valid < REQUIRED_SIGN_OFFS else f"Accept it with `{accept_command}`.")

    print_result(form, signed.model_dump(), write, quiet=quiet)


@proposal.command(cls=HelpCommand, epilog=_examples_of_command("status"))
def status(
    folder: ProposalArgument,
    tree: TreeOption = None,
    trust: TrustOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show the status of a proposal.

    Lists its state, its sign-offs and the open findings. Does not run the proposal's code.
    """
    from opshift.proposals.check import status_of

    with trusted_folder(trust, tree) as trusted:
        found = status_of(folder, registry_for(folder, tree), trusted)

    def write(page: Page) -> None:
        page.title(found.title)
        page.facts(found.facts())
        for each in found.open:
            page.line(f"open: {each.place}: {each.reason} [{each.rule}]", style="bold magenta")

    print_result(form, found.as_dict(), write)


@proposal.command(cls=HelpCommand, epilog=_examples_of_command("accept"))
def accept(
    folder: ProposalArgument,
    tree: Annotated[
        Path,
        typer.Option(
            "--opsets",
            metavar="TREE",
            help=f"The tree of definitions to write to. {NEW_TREE}",
        ),
    ],
    adapters: Annotated[
        Path | None,
        typer.Option("--adapters", metavar="DIR", help="The folder for adapters (default: TREE/adapters)."),
    ] = None,
    shapes: Annotated[
        Path | None,
        typer.Option("--shapes", metavar="DIR", help="The folder for shape rules (default: like adapters)."),
    ] = None,
    cases: Annotated[
        Path | None,
        typer.Option("--cases", metavar="DIR", help="The folder for examples (default: TREE/cases)."),
    ] = None,
    trust: TrustOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Add a proposal to a tree of definitions.

    Refuses, and writes nothing, if there are errors. Runs the code of the proposal and of the folder
    of definitions.
    """
    from opshift.proposals.accept import accept as accepted_in

    try:
        with (
            trusted_folder(trust, tree) as trusted,
            show_progress(f"Running {folder}", quiet=quiet or form is Format.JSON),
        ):
            accepted = accepted_in(
                folder, tree, adapters=adapters, shapes=shapes, cases=cases, trusted=trusted
            )
    except NotAcceptable as error:
        findings = error.findings
        data = {**error.as_dict(), "findings": [each.as_dict() for each in findings]}
        print_result(form, data, lambda page: write_findings(page, findings, "not accepted"))
        raise typer.Exit(EXIT_FINDINGS) from error
    files = accepted.files

    def write(page: Page) -> None:
        page.title(f"accepted {accepted.operator} into opset {accepted.opset}")
        shown = (accepted.cases if each.is_relative_to(accepted.cases) else each for each in files)
        for each in dict.fromkeys(shown):
            page.line(f"wrote {each}")
        code = adapters or tree / "adapters"
        if any(each.is_relative_to(code) for each in files):
            page.line(f"Converting models runs this code only with --opsets {tree} --adapters {code}.")
        if is_standard(accepted.operator.domain):
            page.line(f"After all proposals for the opset: `opshift opset release --opsets {tree}`.")

    result = {"operator": str(accepted.operator), "opset": accepted.opset, "files": files}
    print_result(form, result, write, quiet=quiet)
