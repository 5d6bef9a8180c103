"""`opshift compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.cli.failing import FINDINGS
from opshift.cli.options import Format, FormatOption
from opshift.cli.output import Column, emit, working
from opshift.cli.places import require_file

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.converter.comparison.result import Change, Comparison

OldArgument = Annotated[Path, typer.Argument(metavar="OLD", help="The model as it was.", show_default=False)]
NewArgument = Annotated[Path, typer.Argument(metavar="NEW", help="The model as it is.", show_default=False)]
COLUMNS = (
    Column("asks for", style="yellow"),
    Column("rule", style="cyan"),
    Column("where"),
    Column("change"),
    Column("why", style="dim"),
)


def compare(old: OldArgument, new: NewArgument, form: FormatOption = Format.TEXT) -> None:
    """Show what changed between two versions of a model.

    And whether model_version says so: breaking changes of inputs and outputs ask for a higher MAJOR, others
    that callers notice for a higher MINOR, all others for a higher PATCH. Exits with 1 if it does not rise
    enough.
    """
    from opshift.converter.comparison.compare import compare as compare_models

    for path in (old, new):
        require_file(path)
    with working(f"Comparing {old} and {new}"):
        found = compare_models(old, new)
    emit(form, {"old": old, "new": new, **found.as_dict()}, lambda page: _write(page, old, new, found))
    if not found.enough:
        raise typer.Exit(FINDINGS)


def _write(page: Page, old: Path, new: Path, found: Comparison) -> None:
    data = found.as_dict()
    page.line(f"{old} -> {new}", style="bold")
    risen = "sinks" if found.risen is None else f"rises by {data['risen']}" if found.risen else "stays"
    page.facts(
        {
            "version": f"{data['old_version']} -> {data['new_version']}, {risen}",
            "asked for": data["required"] if found.required else "nothing",
        }
    )
    if found.changes:
        page.blank()
        page.table(COLUMNS, map(_row, found.changes))
    page.blank()
    if found.enough:
        page.line("The version rises enough.", style="green")
    else:
        page.line(f"The version has to be {found.lowest} or higher.", style="red")


def _row(change: Change) -> tuple[object, ...]:
    told = change.as_dict()
    step = " -> ".join(filter(None, (change.before, change.after)))
    return (told["rise"], change.rule, change.place, step, told["why"])
