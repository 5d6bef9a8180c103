"""`opshift diff`: changes between two versions of an operator, or two opsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.catalogue.type_texts import change_text
from opshift.cli import completion
from opshift.cli.errors import EXIT_FINDINGS, names_in_arguments
from opshift.cli.options import DefinitionsOption, DomainOption, Format, FormatOption, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page
from opshift.cli.registry import change_options
from opshift.cli.registry.operator_text import find_version, parse_operator
from opshift.model.errors import UsageError
from opshift.model.message_text import count_text
from opshift.registry.changes.classes import BACKWARD, FORWARD
from opshift.registry.changes.policies import Mode, Policy, needs_new_version

if TYPE_CHECKING:
    from opshift.registry.changes.classes import ChangeClass
    from opshift.registry.changes.classify import ClassifiedChange
    from opshift.registry.changes.history import Difference
    from opshift.registry.registry import Registry


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
    policy: change_options.PolicyOption = "onnx-strict",
    mode: change_options.ModeOption = Mode.NONE,
    rules: change_options.RulesOption = False,
    explain: change_options.ExplainOption = None,
    folders: DefinitionsOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show the changes between two operator versions or opsets.

    Each change is classified by a rule. Exits with 1 if the mode does not allow a change.
    """
    if rules or explain:
        change_options.list_rules(form, explain)
        return
    chosen = change_options.policy_named(policy)
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
        "differences": [_data(each, chosen, mode) for each in differences],
    }
    forbidden = sum(not mode.allows(change) for each in differences for change in each.changes)
    summary = f"not allowed by --mode {mode}: {count_text(forbidden, 'change')}" if forbidden else ""
    print_result(form, data, lambda page: _write(page, differences, chosen, summary))
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


def _data(each: Difference, policy: Policy, mode: Mode) -> dict[str, object]:
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


def _write(page: Page, differences: Sequence[Difference], policy: Policy, forbidden: str) -> None:
    for position, each in enumerate(differences):
        if position:
            page.blank()
        page.title(f"{each}: {each.change_class if each.changes else 'no change'}")
        if each.changes:
            rows = [(c.change_class, c.rule, change_text(c.change)) for c in each.changes]
            page.table((Column("class", "cyan"), "rule", "change"), rows)
            page.line(_summary(each, policy))
    if not differences:
        page.line("no operator changed")
    if forbidden:
        page.line(forbidden, style="bold red")


def _summary(each: Difference, policy: Policy) -> str:
    """Summarize a difference: `backward yes, forward no; onnx-strict requires a new version`."""
    backward, forward = (
        "yes" if _are_compatible(each.changes, classes) else "no" for classes in (BACKWARD, FORWARD)
    )
    requires = "requires" if needs_new_version(each.changes, policy) else "does not require"
    return f"backward {backward}, forward {forward}; {policy.name} {requires} a new version"


def _are_compatible(changes: Iterable[ClassifiedChange], classes: frozenset[ChangeClass]) -> bool:
    return all(each.change_class in classes for each in changes)
