"""Findings of a check as text, grouped by rule."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.cli.output import Column
from opshift.cli.page import Page
from opshift.converter.legality.findings import Finding, Level

MOST = 10
"""Maximum number of findings that are printed per rule."""
STYLES = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.INFO: "cyan"}
"""Terminal style of each level, most severe level first."""
PLACES = (Column("", style="cyan"), Column(""))


def write_findings(page: Page, findings: Sequence[Finding]) -> None:
    """Print the violated rules, most severe first, with the first findings and remedies of each."""
    groups: dict[str, list[Finding]] = {}
    for each in sorted(findings, key=lambda each: tuple(STYLES).index(each.level)):
        groups.setdefault(each.rule, []).append(each)
    for members in groups.values():
        page.blank()
        _write_rule(page, members)


def _write_rule(page: Page, members: Sequence[Finding]) -> None:
    from opshift.converter.legality.rules import rule_table

    rule, shown = rule_table()[members[0].rule], members[:MOST]
    page.line(f"{rule.level} {rule.id}: {rule.title}", style=STYLES[rule.level])
    page.table(PLACES, [(f"  {each.place}", each.reason) for each in shown])
    if len(members) > MOST:
        page.line(f"  ... and {len(members) - MOST:,} more; `opshift check --format json` lists all")
    for remedy in dict.fromkeys(each.remedy for each in shown):
        page.prose(f"help: {remedy}", indent=2)
