"""`opshift plan`: show the changes that a conversion would make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from opshift.batch.settings import Settings
from opshift.cli import options
from opshift.cli.conversion import read_settings
from opshift.cli.conversion_text import opsets_text, write_plan
from opshift.cli.errors import EXIT_FINDINGS, add_file_to_errors
from opshift.cli.findings.finding import FileFinding, report_findings
from opshift.cli.gate.inspect_models import inspect_models
from opshift.cli.gate.several import GateOptions, single_file
from opshift.cli.options import ConversionOptions, expand_records, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Page
from opshift.cli.paths import model_input
from opshift.converter.report import Report
from opshift.converter.streaming.weights import Weights
from opshift.model.errors import UsageError
from opshift.model.files import read_bytes
from opshift.model.locations import is_url
from opshift.model.operator_ids import opset_imports
from opshift.stores.source_file import open_source

COLUMNS = ("opsets    ", " changed")
"""Columns of the table of several models; a leading space right-aligns the column."""


@expand_records
def plan(
    sources: options.InputsArgument = None,
    *,
    conversion: ConversionOptions,
    explain: Annotated[
        bool, typer.Option("--explain", help="Describe each step, and list all operators.")
    ] = False,
    report: options.ReportOption = None,
    gate: GateOptions,
) -> None:
    """Show the changes that `convert` would make, and their cost.

    Lists every node that cannot be converted, and writes nothing. Exits with 1 if there are such nodes.
    Operators without a domain are those of ai.onnx. Several models get a row each, and a summary.
    """
    settings = options.settings_of(conversion)._replace(
        opsets=tuple(gate.folders or ()), adapters=tuple(gate.adapters or ())
    )
    show_plans(sources or [], settings, gate, report, explain=explain)


def plan_settings(target: list[str] | None, gate: GateOptions) -> Settings:
    """Return the settings of a command that plans only with `--target`; raise errors for invalid options."""
    folders, adapters = tuple(gate.folders or ()), tuple(gate.adapters or ())
    settings = Settings(target=tuple(target or ()), opsets=folders, adapters=adapters)
    if target:
        read_settings(settings)
    registry_with(gate.folders)
    return settings


def show_plans(
    names: list[str], settings: Settings, gate: GateOptions, report: Path | None, *, explain: bool = False
) -> None:
    """Print the plan of one model, or the results of several; exit with 1 after a refusal."""
    read_settings(settings, report)  # report invalid options before any model is read
    if report is not None and single_file(names, gate) is None:
        reason, remedy = "describes one model", "use --format json for several"
        raise UsageError(reason, place=f"--report {report}", remedy=remedy)
    planned = inspect_models(names, gate, partial(plan_file, settings=settings), COLUMNS)
    if planned is None:
        return
    if report is not None:
        from opshift.cli.report_files import write_report_file

        write_report_file(report, f"Plan for {planned.source}", planned.as_dict(), planned.report)
    print_result(gate.form, planned.as_dict(), lambda page: planned.write(page, explain=explain))
    if planned.report.refusals:
        raise typer.Exit(EXIT_FINDINGS)


class PlannedModel(NamedTuple):
    """Report of a planned conversion, and the opset imports of the model by domain."""

    source: str
    report: Report
    imports: Mapping[str, int]

    @property
    def result(self) -> str:
        """Verdict: `refused`; `unchanged` without new versions, nodes and repairs; or `convertible`."""
        if self.report.refusals:
            return "refused"
        before, after = self.report.ir_version
        is_changed = self.report.opsets or self.report.changed or self.report.repairs or before != after
        return "convertible" if is_changed else "unchanged"

    def findings(self) -> Iterator[FileFinding]:
        """Return a finding for each refusal, and for each target runtime that does not run the result."""
        return report_findings(self.report, self.source)

    def cells(self) -> dict[str, object]:
        """Return the changed opsets and the number of changed nodes, for the table of several models."""
        return {"opsets": opsets_text(self.report), "changed": f"{len(self.report.changed):,}"}

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {"input": self.source, "possible": not self.report.refusals, **self.report.as_dict()}

    def write(self, page: Page, *, explain: bool = False) -> None:
        """Print the plan."""
        write_plan(page, self.source, self.report, self.imports, explain)


def plan_file(source: str, settings: Settings) -> PlannedModel:
    """Plan the conversion of a model file; with the flag `check`, raise IllegalModel as a conversion does."""
    # imported here: only a command that plans needs the modules
    from opshift.converter.cost import plan_with_cost
    from opshift.converter.streaming.external_data import (
        external_files,
        require_files,
        types_need_local_files,
        unknown_folder,
    )
    from opshift.converter.streaming.external_weights import ExternalWeights

    with add_file_to_errors(source), ExitStack() as stack:
        file = stack.push(open_source(model_input(source)))
        message = stack.enter_context(Weights(file)).message()
        located = external_files(message, file.place)
        external, new_data = None, ""
        if file.path is not None:
            # Refuse missing data files, as a conversion does, because it copies them.
            require_files(located, file.path.parent)
        if located and settings.types:
            if file.path is None:
                if is_url(source):
                    raise types_need_local_files(file.place)
                raise unknown_folder(file.place, needs_weights=True)
            external, new_data = ExternalWeights(file.path.parent), f"{file.path.name}.data"
            stack.enter_context(external)
        model = read_bytes(message, file.place)
        imports = opset_imports(model.opset_import, model.ir_version)
        report = plan_with_cost(model, read_settings(settings), file.size, external, new_data)
        return PlannedModel(source, report, imports)
