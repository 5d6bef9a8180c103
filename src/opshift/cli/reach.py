"""`opshift reach`: show the opsets to which a model can be converted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opshift.cli import options
from opshift.cli.conversion_text import write_refusals
from opshift.cli.errors import add_file_to_errors
from opshift.cli.findings.finding import FileFinding
from opshift.cli.gate.inspect_models import inspect_models
from opshift.cli.gate.several import GateOptions
from opshift.cli.options import expand_records, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page, number
from opshift.cli.paths import model_input
from opshift.converter.options import read_allow
from opshift.converter.streaming.external_data import open_with_data_files
from opshift.registry.steps import Allow

if TYPE_CHECKING:
    from opshift.analysis.reach import Reach, ReachLimit

COLUMNS = (" opset", " lowest", " highest")
"""Columns of the table of several models; a leading space right-aligns the column."""


@expand_records
def reach(
    sources: options.InputsArgument = None,
    domain: options.DomainOption = None,
    allow: options.AllowOption = None,
    shape: options.ShapeOption = None,
    infer_shapes: options.InferShapesOption = False,
    *,
    gate: GateOptions,
) -> None:
    """Show the opsets to which a model can be converted.

    Prints the lowest and the highest opset, the refusals beyond these opsets, and the opsets at which further
    nodes are refused. `--format json` lists all nodes. Several models get a row each, and a summary.
    """
    registry_with(gate.folders)  # checked before any model is read
    inspect = partial(
        reach_of_file,
        domain=domain or "",
        allow=tuple(sorted(read_allow(allow or ()))),
        shapes=tuple(shape or ()),
        infer_shapes=infer_shapes,
        folders=gate.folders,
    )
    found = inspect_models(sources or [], gate, inspect, COLUMNS, "Planning {} for every opset")
    if found is not None:
        print_result(gate.form, found.as_dict(), found.write)


class ReachOfModel(NamedTuple):
    """Opsets to which a model can be converted."""

    source: str
    limits: Reach

    @property
    def result(self) -> str:
        """Verdict: `limited` if the conversion to some opset is refused, else `unlimited`."""
        return "limited" if self.limits.limits else "unlimited"

    def findings(self) -> Iterator[FileFinding]:
        """Yield a note for each cause of refusals next to the lowest and the highest opset."""
        for limit in self._nearest_limits():
            for group in limit.groups:
                place = group.refusals[0].place
                message = f"opset {limit.opset}: {group.summary}"
                yield FileFinding(group.code, "note", message, self.source, place, group.remedy)

    def _nearest_limits(self) -> list[ReachLimit]:
        ends = (self.limits.lowest - 1, self.limits.highest + 1)
        return [each for each in self.limits.limits if each.opset in ends]

    def cells(self) -> dict[str, object]:
        """Return the declared, lowest and highest opset, for the table of several models; `-` without one."""
        limits = self.limits
        lowest, highest = ("-", "-") if limits.is_empty else (limits.lowest, limits.highest)
        return {"opset": limits.opset, "lowest": lowest, "highest": highest}

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {"input": self.source, **self.limits.as_dict()}

    def write(self, page: Page) -> None:
        """Print the lowest and highest opset, and the causes of refusals at other opsets."""
        limits, ends = self.limits, self._nearest_limits()
        page.line(self.source, style="bold")
        bounds = {} if limits.is_empty else {"lowest": limits.lowest, "highest": limits.highest}
        page.facts({limits.domain: limits.opset, **bounds})
        if not limits.limits:
            page.blank()
            page.line("Every node can be converted to every opset.", style="green")
        for each in ends:
            page.heading(f"Refused at opset {each.opset}")
            write_refusals(page, each.groups)
        rows = [
            (each.opset, group.code, len(group.refusals))
            for each in limits.limits
            if each not in ends
            for group in each.groups
        ]
        if rows:
            page.heading("Further limits")
            page.table((number("opset"), Column("cause", "red"), number("nodes")), rows)


def reach_of_file(
    source: str,
    *,
    domain: str,
    allow: tuple[Allow, ...],
    shapes: tuple[str, ...],
    infer_shapes: bool,
    folders: list[Path] | None,
) -> ReachOfModel:
    """Return the opsets to which the model in a file can be converted."""
    from opshift.analysis.reach import reach as reach_of

    with add_file_to_errors(source), open_with_data_files(model_input(source)) as model:
        limits = reach_of(
            model,
            domain,
            allow=allow,
            shapes=shapes,
            infer_shapes=infer_shapes,
            registry=registry_with(folders),
        )
    return ReachOfModel(source, limits)
