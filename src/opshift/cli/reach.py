"""`opshift reach`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opshift.cli.failing import about
from opshift.cli.options import (
    AdaptersOption,
    AllowOption,
    DomainOption,
    FoldersOption,
    Format,
    FormatOption,
    InputArgument,
    registry_with,
)
from opshift.cli.output import Column, emit, working
from opshift.cli.places import require_file

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.converter.reach import NodeReach, Reach

COLUMNS = (
    Column("lowest", is_number=True),
    Column("highest", is_number=True),
    Column("operator", style="cyan"),
    Column("node"),
    Column("stopped by"),
)


def reach(
    source: InputArgument,
    domain: DomainOption = None,
    allow: AllowOption = None,
    folders: FoldersOption = None,
    adapters: AdaptersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show how far a model and its nodes can be moved.

    That is the lowest and highest opset of each. Nodes that can go everywhere are left out; those that
    bind the model are marked with *.
    """
    from opshift.converter.reach import reach as reach_of

    require_file(source)
    with working(f"Planning {source} for every opset"), about(source):
        found = reach_of(source, domain or "", allow=allow or (), registry=registry_with(folders))
    emit(form, {"input": source, **found.as_dict()}, lambda page: _write(page, source, found))


def _write(page: Page, path: Path, found: Reach) -> None:
    page.line(str(path), style="bold")
    page.facts({found.domain: str(found.opset), "lowest": str(found.lowest), "highest": str(found.highest)})
    if not found.nodes:
        page.blank()
        page.line("Every node can go to every opset.", style="green")
        return
    page.blank()
    binding = set(found.binding())
    page.table(COLUMNS, [_row(each, each in binding) for each in found.nodes])


def _row(node: NodeReach, binds: bool) -> tuple[object, ...]:
    reasons = " | ".join(dict.fromkeys(filter(None, (node.below, node.above))))
    return (node.lowest, node.highest, node.operator, f"{'* ' if binds else ''}{node.place}", reasons)
