"""Refusals as text, by cause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from opshift.cli.page import Column, Page
from opshift.converter.refusals import Refusal, RefusalGroup
from opshift.model.operator_ids import short_label

if TYPE_CHECKING:
    from opshift.runtimes.check_support import MissingKernel

QUOTED_NAME = re.compile(r"'[^']*'")

MAX_GROUPS = 10
"""Maximum number of causes in a message; `opshift plan --explain` prints all."""

MAX_NODES = 2
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


def write_missing(page: Page, missing: Sequence[MissingKernel]) -> None:
    """Print each cause that prevents that a runtime runs a model, with a few of its nodes."""
    for each in missing[:MAX_GROUPS]:
        page.blank()
        page.prose(each.reason, style="red")
        if each.remedy:
            page.prose(f"help: {each.remedy}", indent=2)
        rows = [("", short_label(each.operator), place) for place in each.places[:MAX_NODES]]
        page.table(("", Column("", "cyan"), ""), rows)
        if len(rows) < len(each.places):
            page.line(f"  and {len(each.places) - len(rows):,} more")
    if missing[MAX_GROUPS:]:
        page.blank()
        page.prose(f"and {len(missing) - MAX_GROUPS:,} more causes; `opshift runs --explain` lists all")


def _write_nodes(page: Page, group: RefusalGroup, most: int | None) -> None:
    """Print nodes below their reasons, which are too long for a column."""
    members = group.refusals
    shown = sorted(members[:most], key=lambda each: _detail(each, group))
    for detail, refusals in groupby(shown, lambda each: _detail(each, group)):
        nodes = list(refusals)
        reasons = {each.reason for each in nodes}
        if detail:
            page.prose(detail if len(reasons) > 1 else reasons.pop(), indent=2)
        page.table(
            ("", Column("", "cyan"), ""), [("", short_label(each.operator), each.place) for each in nodes]
        )
    if len(shown) < len(members):
        page.line(f"  and {len(members) - len(shown):,} more")


def _detail(refusal: Refusal, group: RefusalGroup) -> str:
    """Return the reason without quoted names if the summary of the group does not contain it."""
    is_known = len(group.refusals) == 1 or refusal.subject in refusal.reason
    return "" if is_known else QUOTED_NAME.sub("'...'", refusal.reason)
