"""`opshift reach`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opshift.cli import options
from opshift.cli.errors import add_file_to_errors
from opshift.cli.options import Format, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page, number
from opshift.cli.paths import require_file
from opshift.cli.progress import show_progress
from opshift.cli.refusal_text import write_refusals
from opshift.cli.streams import model_input

if TYPE_CHECKING:
    from opshift.analysis.reach import Reach


def reach(
    source: options.InputArgument,
    domain: options.DomainOption = None,
    allow: options.AllowOption = None,
    shape: options.ShapeOption = None,
    infer_shapes: options.InferShapesOption = False,
    folders: options.DefinitionsOption = None,
    adapters: options.AdaptersOption = None,
    quiet: options.QuietOption = False,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """Show the opsets to which a model can be converted.

    Prints the lowest and highest opset of the model, why it goes no further, and the opsets at which other
    nodes are refused. `--format json` lists all nodes.
    """
    from opshift.analysis.reach import reach as reach_of
    from opshift.converter.options import read_allow

    source = require_file(source)
    allowed = read_allow(allow or ())
    progress = show_progress(f"Planning {source} for every opset", quiet=quiet or form is Format.JSON)
    with progress, add_file_to_errors(source):
        limits = reach_of(
            model_input(source),
            domain or "",
            allow=allowed,
            shapes=shape or (),
            infer_shapes=infer_shapes,
            registry=registry_with(folders),
        )
    print_result(form, {"input": source, **limits.as_dict()}, lambda page: write_reach(page, source, limits))


def write_reach(page: Page, path: str, limits: Reach) -> None:
    """Print the limits of a model, and the causes of each."""
    page.line(path, style="bold")
    page.facts({limits.domain: limits.opset, "lowest": limits.lowest, "highest": limits.highest})
    if not limits.limits:
        page.blank()
        page.line("Every node can be converted to every opset.", style="green")
    ends = (limits.lowest - 1, limits.highest + 1)
    for each in limits.limits:
        if each.opset in ends:
            page.heading(f"Refused at opset {each.opset}")
            write_refusals(page, each.groups)
    rows = [
        (each.opset, group.code, len(group.refusals))
        for each in limits.limits
        if each.opset not in ends
        for group in each.groups
    ]
    if rows:
        page.heading("Further limits")
        page.table((number("opset"), Column("cause", "red"), number("nodes")), rows)
