"""Options of `opshift diff` and `opshift breaking`."""

from typing import Annotated

import typer

from opshift.cli import completion
from opshift.cli.options import Format
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page
from opshift.model.errors import UsageError
from opshift.registry.changes.policies import POLICIES, Mode, Policy

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
    """Return a policy by name."""
    if policy not in POLICIES:
        raise UsageError(f"unknown policy {policy!r}", remedy=f"choose one of {', '.join(POLICIES)}")
    return POLICIES[policy]


def list_rules(form: Format, explain: str | None) -> None:
    """Print all rules and policies, or explain one rule."""
    from opshift.registry.changes.rules import CHANGE_RULES

    if explain is not None:
        _explain(form, explain)
        return
    rows = [(rule.id, rule.change_class, rule.purpose) for rule in CHANGE_RULES.values()]
    rules = [dict(zip(("rule", "class", "purpose"), row, strict=True)) for row in rows]
    policies = {each.name: each.purpose for each in POLICIES.values()}

    def write(page: Page) -> None:
        page.table((Column("rule", "cyan"), "class", "purpose"), rows)
        page.heading("Policies")
        page.facts(policies)

    print_result(form, {"rules": rules, "policies": policies}, write)


def _explain(form: Format, name: str) -> None:
    from opshift.registry.changes.rules import CHANGE_RULES

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
