"""Refusals as text, by cause."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.cli.page import Column, Page
from opshift.converter.refusals import Refusal, RefusalGroup

MAX_GROUPS = 10
"""Maximum number of causes in a message; `opshift plan --explain` prints all."""

MAX_NODES = 3
"""Maximum number of nodes of one cause in a message."""


def write_refusals(page: Page, groups: Sequence[RefusalGroup], *, explain: bool = False) -> None:
    """Print each cause with its remedy and a few of its nodes; with `explain`, print all nodes."""
    shown = groups if explain else groups[:MAX_GROUPS]
    for group in shown:
        page.blank()
        page.prose(f"{group.code}: {group.summary}", style="red")
        if group.remedy:
            page.prose(f"help: {group.remedy}", indent=2)
        _write_nodes(page, group, None if explain else MAX_NODES)
    if len(shown) < len(groups):
        page.blank()
        page.prose(f"and {len(groups) - len(shown):,} more causes; `opshift plan --explain` lists all")


def _write_nodes(page: Page, group: RefusalGroup, most: int | None) -> None:
    members = group.refusals
    rows = [("", each.operator, each.place, _detail(each, group)) for each in members[:most]]
    page.table(("", Column("", "cyan"), "", Column("", "dim")), rows)
    if len(rows) < len(members):
        page.line(f"  and {len(members) - len(rows):,} more", style="dim")


def _detail(refusal: Refusal, group: RefusalGroup) -> str:
    """Return the reason if the summary of the group does not contain it."""
    is_known = len(group.refusals) == 1 or refusal.subject in refusal.reason
    return "" if is_known else refusal.reason
