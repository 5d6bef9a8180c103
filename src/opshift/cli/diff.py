"""`opshift diff`: what changed between two versions of an operator, or two opsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from opshift.cli.naming import find, read_name
from opshift.cli.options import DomainOption, FoldersOption, Format, FormatOption, registry_with
from opshift.cli.output import Column, counted, emit
from opshift.converter.errors import UsageError
from opshift.registry.changes.classes import BACKWARD, FORWARD
from opshift.registry.changes.policies import Mode, Policy, needs_new_version

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.registry.catalogue import Registry
    from opshift.registry.changes.between import Difference
    from opshift.registry.changes.classify import Classified

CHANGES = (Column("class", style="cyan"), Column("rule"), Column("change"))
OperatorArgument = Annotated[
    str | None,
    typer.Argument(metavar="OPERATOR", help="Conv or ai.onnx.ml.LabelEncoder.", show_default=False),
]
OldArgument = Annotated[
    int | None, typer.Argument(metavar="OLD", help="A version, or an opset.", show_default=False)
]
NewArgument = Annotated[
    int | None, typer.Argument(metavar="NEW", help="Another; by default the newest.", show_default=False)
]
OpsetsOption = Annotated[
    tuple[int, int] | None,
    typer.Option("--opset", metavar="OLD NEW", help="Compare two opsets of a domain.", show_default=False),
]


def diff(
    operator: OperatorArgument = None,
    old: OldArgument = None,
    new: NewArgument = None,
    opset: OpsetsOption = None,
    domain: DomainOption = None,
    policy: PolicyOption = "onnx-strict",
    mode: ModeOption = Mode.NONE,
    rules: RulesOption = False,
    explain: ExplainOption = None,
    folders: FoldersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show what changed between two versions of an operator or set.

    Each change is classified by a rule. Exits with 1 if the mode does not allow one of them.
    """
    if rules or explain:
        list_rules(form, explain)
        return
    chosen = policy_named(policy)
    registry = registry_with(folders)
    found = _differences(registry, operator, old, new, opset, domain)
    data = {
        "policy": chosen.name,
        "mode": str(mode),
        "differences": [_data(each, chosen, mode) for each in found],
    }
    emit(form, data, lambda page: _write(page, found, chosen, mode))
    if any(not mode.allows(change) for each in found for change in each.changes):
        raise typer.Exit(FINDINGS)


def _differences(
    registry: Registry,
    operator: str | None,
    old: int | None,
    new: int | None,
    opset: tuple[int, int] | None,
    domain: str | None,
) -> Sequence[Difference]:
    """What is asked for.

    Raises:
        UsageError: neither one operator and a version, nor two opsets.
        ResolveError: there are no such.
    """
    from opshift.registry.changes.between import operator_difference, opset_differences

    if (operator is None) == (opset is None) or (operator is not None and old is None):
        remedy = "name an operator and two versions, as in Clip 6 11, or two opsets, as in --opset 12 13"
        raise UsageError("it is not said what to compare", remedy=remedy)
    if opset is not None:
        return tuple(opset_differences(registry, domain or "", *opset))
    named = read_name(operator or "", domain, None)
    before, after = find(named._replace(opset=old), registry), find(named._replace(opset=new), registry)
    whole = registry.operator(before.name, before.domain)
    assert whole is not None
    return (operator_difference(whole, before, after),)


def _data(each: Difference, policy: Policy, mode: Mode) -> dict[str, Any]:
    return {
        "operator": f"{each.domain}.{each.op_type}",
        "old": each.old and str(each.old),
        "new": each.new and str(each.new),
        "class": str(each.change_class),
        "new_version_needed": needs_new_version(each.changes, policy),
        "backward": _passes(each.changes, BACKWARD),
        "forward": _passes(each.changes, FORWARD),
        "changes": [{**change.as_dict(), "allowed": mode.allows(change)} for change in each.changes],
    }


def _write(page: Page, found: Sequence[Difference], policy: Policy, mode: Mode) -> None:
    from opshift.cli.change_text import change_text

    for position, each in enumerate(found):
        if position:
            page.blank()
        page.title(f"{each}: {each.change_class if each.changes else 'no change'}")
        if each.changes:
            rows = [(c.change_class, c.rule, change_text(c.change)) for c in each.changes]
            page.table(CHANGES, rows)
            page.line(_summary(each, policy), style="dim")
    if not found:
        page.line("no operator changed")
    forbidden = sum(not mode.allows(change) for each in found for change in each.changes)
    if forbidden:
        page.line(f"not {mode}: {counted(forbidden, 'change')}", style="bold red")


def _summary(each: Difference, policy: Policy) -> str:
    """`backward yes, forward no; onnx-strict asks for a new version`."""
    ways = [
        f"{way} {'yes' if _passes(each.changes, classes) else 'no'}"
        for way, classes in (("backward", BACKWARD), ("forward", FORWARD))
    ]
    asks = "asks" if needs_new_version(each.changes, policy) else "does not ask"
    return f"{', '.join(ways)}; {policy.name} {asks} for a new version"


def _passes(changes: Iterable[Classified], classes: frozenset[Any]) -> bool:
    return all(each.change_class in classes for each in changes)
