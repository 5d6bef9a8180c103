"""`opshift reach`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opshift.cli.errors import add_file_to_errors
from opshift.cli.options import (
    AdaptersOption,
    AllowOption,
    DefinitionsOption,
    DomainOption,
    Format,
    FormatOption,
    InputArgument,
    registry_with,
)
from opshift.cli.output import print_result, show_progress
from opshift.cli.page import Column
from opshift.cli.paths import require_file

if TYPE_CHECKING:
    from opshift.analysis.reach import NodeReach, Reach
    from opshift.cli.page import Page

NODE_COLUMNS = (
    Column("lowest", is_number=True),
    Column("highest", is_number=True),
    Column("operator", style="cyan"),
    Column("node"),
    Column("limited by"),
)


def reach(
    source: InputArgument,
    domain: DomainOption = None,
    allow: AllowOption = None,
    folders: DefinitionsOption = None,
    adapters: AdaptersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show the opsets to which a model can be converted.

    Lists the lowest and highest opset of the model and of each node. Nodes that can be converted to every
    opset are omitted; nodes that limit the whole model are marked with *.
    """
    from opshift.analysis.reach import reach as reach_of
    from opshift.converter.options import read_allow

    require_file(source)
    allowed = read_allow(allow or ())
    with show_progress(f"Planning {source} for every opset"), add_file_to_errors(source):
        limits = reach_of(source, domain or "", allow=allowed, registry=registry_with(folders))
    print_result(form, {"input": source, **limits.as_dict()}, lambda page: _write(page, source, limits))


def _write(page: Page, path: Path, limits: Reach) -> None:
    page.line(str(path), style="bold")
    page.facts(
        {limits.domain: str(limits.opset), "lowest": str(limits.lowest), "highest": str(limits.highest)}
    )
    if not limits.nodes:
        page.blank()
        page.line("Every node can be converted to every opset.", style="green")
        return
    page.blank()
    binding = set(limits.binding())
    page.table(NODE_COLUMNS, [_row(each, each in binding) for each in limits.nodes])


def _row(node: NodeReach, limits_model: bool) -> tuple[object, ...]:
    reasons = " | ".join(dict.fromkeys(filter(None, (node.below, node.above))))
    return (node.lowest, node.highest, node.operator, f"{'* ' if limits_model else ''}{node.place}", reasons)
