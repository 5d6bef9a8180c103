"""The options that `opshift diff` and `opshift breaking` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from opshift.cli.options import Format
from opshift.cli.output import Column, emit
from opshift.converter.errors import UsageError
from opshift.registry.changes.policies import POLICIES, Mode, Policy

if TYPE_CHECKING:
    from opshift.cli.page import Page

PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help=f"Which changes a published version may take in place: {', '.join(POLICIES)}.",
    ),
]
ModeOption = Annotated[
    Mode, typer.Option("--mode", help="Which way models have to pass from version to version.")
]
RulesOption = Annotated[bool, typer.Option("--rules", help="List the rules and policies, and leave.")]
ExplainOption = Annotated[
    str | None,
    typer.Option("--explain", metavar="RULE", help="Say what a rule is about, and leave."),
]
RULES = (Column("rule", style="cyan"), Column("class"), Column("what it says"))


def policy_named(policy: str) -> Policy:
    """What was chosen.

    Raises:
        UsageError: there is no such policy.
    """
    if policy not in POLICIES:
        raise UsageError(f"{policy!r} is no policy", remedy=f"there are {', '.join(POLICIES)}")
    return POLICIES[policy]


def list_rules(form: Format, explain: str | None) -> None:
    """All rules and policies, or one rule with what its class means.

    Raises:
        UsageError: there is no such rule.
    """
    from opshift.registry.changes.classify import change_rules

    if explain is not None:
        _explain(form, explain)
        return
    rows = [(rule.id, rule.change_class, rule.purpose) for rule in change_rules().values()]
    data = {
        "rules": [dict(zip(("rule", "class", "purpose"), map(str, row), strict=True)) for row in rows],
        "policies": {each.name: each.purpose for each in POLICIES.values()},
    }

    def write(page: Page) -> None:
        page.table(RULES, rows)
        page.heading("Policies")
        page.facts({each.name: each.purpose for each in POLICIES.values()})

    emit(form, data, write)


def _explain(form: Format, name: str) -> None:
    from opshift.registry.changes.classify import change_rules

    rule = change_rules().get(name)
    if rule is None:
        raise UsageError(f"there is no rule {name!r}", remedy="list them with --rules")
    free = [each.name for each in POLICIES.values() if each.frees(rule.id, rule.change_class)]
    data = {
        "rule": rule.id,
        "class": str(rule.change_class),
        "purpose": rule.purpose,
        "meaning": rule.change_class.meaning,
        "allowed_in_place_by": free,
    }

    def write(page: Page) -> None:
        page.title(rule.id)
        page.prose(rule.purpose)
        page.facts(
            {
                "class": f"{rule.change_class}: {rule.change_class.meaning}",
                "in place": f"allowed by {', '.join(free)}" if free else "allowed by no policy",
            }
        )

    emit(form, data, write)
