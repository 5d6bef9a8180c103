"""`opshift diff` and `opshift breaking`: show changes of operators, and changes that break models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.catalogue.words import change_text
from opshift.cli import completion
from opshift.cli.errors import EXIT_FINDINGS, names_in_arguments
from opshift.cli.findings.finding import FileFinding, Severity
from opshift.cli.findings.formats import findings_writer
from opshift.cli.options import (
    DefinitionsOption,
    DomainOption,
    FindingsFormatOption,
    Format,
    FormatOption,
    QuietOption,
    registry_with,
)
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page, number
from opshift.cli.registry.operator_text import find_version, parse_operator
from opshift.cli.registry.revisions import unpacked
from opshift.model.errors import UsageError
from opshift.model.message_text import count_text
from opshift.registry.changes.classes import BACKWARD, CHANGE_RULES, FORWARD, ChangeClass
from opshift.registry.changes.policies import POLICIES, Mode, Policy, needs_new_version

if TYPE_CHECKING:
    from opshift.registry.changes.classify import ClassifiedChange
    from opshift.registry.changes.history import ChangeFinding, Difference, Waiver
    from opshift.registry.changes.trees import Tree
    from opshift.registry.registry import Registry


PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="POLICY",
        autocompletion=completion.complete_policy,
        help=f"The changes that a published version may have: {', '.join(POLICIES)}.",
    ),
]

ModeOption = Annotated[
    Mode, typer.Option("--mode", help="The direction in which models must stay compatible.")
]

RulesOption = Annotated[bool, typer.Option("--rules", help="List the rules and policies, and exit.")]

ExplainOption = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="RULE",
        autocompletion=completion.complete_change_rule,
        help="Explain a rule, and exit.",
    ),
]


def policy_named(policy: str) -> Policy:
    """Return the policy with this name; raise a UsageError if it does not exist."""
    if policy not in POLICIES:
        raise UsageError(f"unknown policy {policy!r}", remedy=f"choose one of {', '.join(POLICIES)}")
    return POLICIES[policy]


def list_rules(form: Format, explain: str | None) -> None:
    """Print all rules and policies, or explain one rule."""
    if explain is not None:
        _explain_rule(form, explain)
        return
    rows = [(rule.id, rule.change_class, rule.purpose) for rule in CHANGE_RULES.values()]
    rules = [dict(zip(("rule", "class", "purpose"), row, strict=True)) for row in rows]
    policies = {each.name: each.purpose for each in POLICIES.values()}

    def write(page: Page) -> None:
        page.table((Column("rule", "cyan"), "class", "purpose"), rows)
        page.heading("Policies")
        page.facts(policies)

    print_result(form, {"rules": rules, "policies": policies}, write)


def _explain_rule(form: Format, name: str) -> None:
    rule = CHANGE_RULES.get(name)
    if rule is None:
        raise UsageError(f"unknown rule {name!r}", remedy="list the rules with --rules")
    allowing = [each.name for each in POLICIES.values() if each.allows_rule(rule.id, rule.change_class)]
    data = {
        "rule": rule.id,
        "class": str(rule.change_class),
        "purpose": rule.purpose,
        "meaning": rule.change_class.meaning,
        "allowed_in_place_by": allowing,
    }

    def write(page: Page) -> None:
        page.title(rule.id)
        page.prose(rule.purpose)
        allowed = f"allowed by {', '.join(allowing)}" if allowing else "not allowed by any policy"
        page.facts({"class": f"{rule.change_class}: {rule.change_class.meaning}", "in place": allowed})

    print_result(form, data, write)


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
    policy: PolicyOption = "onnx-strict",
    mode: ModeOption = Mode.NONE,
    waivers: Annotated[
        Path | None,
        typer.Option(
            "--waivers",
            metavar="FILE",
            help="A YAML list of accepted findings, each with rule, operator, reason and until.",
        ),
    ] = None,
    rules: RulesOption = False,
    explain: ExplainOption = None,
    quiet: QuietOption = False,
    form: FindingsFormatOption = Format.TEXT,
) -> None:
    """Find changes that break models.

    With --against, reports published versions that were changed although the policy requires a new version,
    and new versions that the mode does not allow. Without --against, classifies every step in the history of
    TREE, and reports those that the mode does not allow. Exits with 1 if a finding is not waived.
    """
    from opshift.registry.changes.history import apply_waivers, find_unused_waivers, load_waivers
    from opshift.registry.registry import default_registry

    if rules or explain:
        list_rules(form, explain)
        return
    chosen = policy_named(policy)
    accepted = load_waivers(waivers) if waivers else ()
    folder = tree or default_registry().folders[0]
    writer = findings_writer(form, "breaking")
    with writer or nullcontext():
        found, steps = _find_changes(folder, against, chosen, mode)
        findings = list(apply_waivers(found, accepted, date.today()))
        if writer:
            writer.add_all(_file_finding(each, folder) for each in findings)
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
        print_result(form, data, lambda page: _write_breaking(page, findings, steps, unused), quiet=is_silent)
    if open_findings:
        raise typer.Exit(EXIT_FINDINGS)


def _find_changes(
    folder: Path, against: str | None, policy: Policy, mode: Mode
) -> tuple[list[ChangeFinding], Counter[ChangeClass]]:
    """Return the findings and, if `against` is `None`, the number of steps in the history per class."""
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


def _file_finding(found: ChangeFinding, folder: Path) -> FileFinding:
    from opshift.registry.changes.trees import version_place

    place = version_place(folder, found.operator)
    text = f"{change_text(found.change.change)}: {found.reason}"
    if found.is_waived and found.waiver:
        text += f"; waived until {found.waiver.until}: {found.waiver.reason}"
    level: Severity = "note" if found.is_waived else "error"
    rule = found.change.rule
    return FileFinding(rule, level, text, place.file, found.operator, found.remedy, line=place.line)


def _write_breaking(
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
        page.table(FINDING_COLUMNS, map(_finding_row, findings))
        for remedy in dict.fromkeys(each.remedy for each in findings if not each.is_waived):
            page.line(f"help: {remedy}")
    for waiver in unused_waivers:
        page.line(f"unused waiver: {waiver.rule} of {waiver.operator}", style="bold magenta")
    open_findings = sum(not each.is_waived for each in findings)
    summary = count_text(open_findings, "finding") if open_findings else "no breaking changes"
    waived = f", {len(findings) - open_findings} waived" if len(findings) > open_findings else ""
    page.line(f"{summary}{waived}", style="bold red" if open_findings else "green")


def _finding_row(finding: ChangeFinding) -> tuple[object, ...]:
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


@names_in_arguments()
def diff(
    operator: Annotated[
        str | None,
        typer.Argument(
            metavar="OPERATOR",
            autocompletion=completion.complete_operator,
            help="Conv or ai.onnx.ml.LabelEncoder.",
        ),
    ] = None,
    old: Annotated[
        int | None,
        typer.Argument(
            metavar="OLD", autocompletion=completion.complete_version, help="The old version or opset."
        ),
    ] = None,
    new: Annotated[
        int | None,
        typer.Argument(
            metavar="NEW",
            autocompletion=completion.complete_version,
            help="The new version or opset (default: newest).",
        ),
    ] = None,
    opset: Annotated[
        tuple[int, int] | None,
        typer.Option("--opset", metavar="OLD NEW", help="Compare two opsets of a domain."),
    ] = None,
    domain: DomainOption = None,
    policy: PolicyOption = "onnx-strict",
    mode: ModeOption = Mode.NONE,
    rules: RulesOption = False,
    explain: ExplainOption = None,
    folders: DefinitionsOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show the changes between two operator versions or opsets.

    Each change is classified by a rule. Exits with 1 if the mode does not allow a change.
    """
    if rules or explain:
        list_rules(form, explain)
        return
    chosen = policy_named(policy)
    registry = registry_with(folders)
    if opset is not None and operator is None:
        from opshift.registry.changes.history import opset_differences

        differences = tuple(opset_differences(registry, domain or "", *opset))
    elif opset is None and operator is not None and old is not None:
        differences = (_operator_difference(registry, operator, domain, old, new),)
    else:
        remedy = "name an operator and two versions, as in Clip 6 11, or two opsets, as in --opset 12 13"
        raise UsageError("expected either OPERATOR and OLD, or --opset", remedy=remedy)
    data = {
        "policy": chosen.name,
        "mode": str(mode),
        "differences": [_difference_data(each, chosen, mode) for each in differences],
    }
    forbidden = sum(not mode.allows(change) for each in differences for change in each.changes)
    summary = f"not allowed by --mode {mode}: {count_text(forbidden, 'change')}" if forbidden else ""
    print_result(form, data, lambda page: _write_differences(page, differences, chosen, summary))
    if forbidden:
        raise typer.Exit(EXIT_FINDINGS)


def _operator_difference(
    registry: Registry, operator: str, domain: str | None, old: int, new: int | None
) -> Difference:
    from opshift.registry.changes.history import operator_difference

    named = parse_operator(operator, domain, None)
    before, after = (find_version(named._replace(opset=each), registry) for each in (old, new))
    definition = registry.operator(before.name, before.domain)
    assert definition is not None
    return operator_difference(definition, before, after)


def _difference_data(each: Difference, policy: Policy, mode: Mode) -> dict[str, object]:
    return {
        "operator": f"{each.domain}.{each.op_type}",
        "old": each.old and str(each.old),
        "new": each.new and str(each.new),
        "class": str(each.change_class),
        "new_version_needed": needs_new_version(each.changes, policy),
        "backward": _are_compatible(each.changes, BACKWARD),
        "forward": _are_compatible(each.changes, FORWARD),
        "changes": [{**change.as_dict(), "allowed": mode.allows(change)} for change in each.changes],
    }


def _write_differences(page: Page, differences: Sequence[Difference], policy: Policy, forbidden: str) -> None:
    for position, each in enumerate(differences):
        if position:
            page.blank()
        page.title(f"{each}: {each.change_class if each.changes else 'no change'}")
        if each.changes:
            rows = [(c.change_class, c.rule, change_text(c.change)) for c in each.changes]
            page.table((Column("class", "cyan"), "rule", "change"), rows)
            page.line(_difference_summary(each, policy))
    if not differences:
        page.line("no operator changed")
    if forbidden:
        page.line(forbidden, style="bold red")


def _difference_summary(each: Difference, policy: Policy) -> str:
    """Summarize a difference, as in `backward yes, forward no; onnx-strict requires a new version`."""
    backward, forward = (
        "yes" if _are_compatible(each.changes, classes) else "no" for classes in (BACKWARD, FORWARD)
    )
    requires = "requires" if needs_new_version(each.changes, policy) else "does not require"
    return f"backward {backward}, forward {forward}; {policy.name} {requires} a new version"


def _are_compatible(changes: Iterable[ClassifiedChange], classes: frozenset[ChangeClass]) -> bool:
    return all(each.change_class in classes for each in changes)
