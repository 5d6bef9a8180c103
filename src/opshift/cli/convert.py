"""`opshift convert` and `opshift plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from opshift.cli.conversion import ConversionSettings, ConvertedFile, convert_file, open_model
from opshift.cli.errors import EXIT_FINDINGS
from opshift.cli.options import (
    AdaptersOption,
    AllowOption,
    DefinitionsOption,
    Format,
    FormatOption,
    InputArgument,
    IrVersionOption,
    TargetOption,
)
from opshift.cli.output import print_on_stderr, print_result, show_progress
from opshift.cli.paths import output_file, require_file
from opshift.model.errors import UsageError

if TYPE_CHECKING:
    from opshift.cli.page import Page

MoreArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="OUT|IN", help="The file to write, or more models with --out.", show_default=False
    ),
]

OutputArgument = Annotated[
    Path | None, typer.Argument(metavar="OUT", help="The file to write.", show_default=False)
]

InPlaceOption = Annotated[bool, typer.Option("--in-place", help="Overwrite IN with the result; omit OUT.")]

ForceOption = Annotated[bool, typer.Option("--force", "-f", help="Replace OUT if it exists.")]

CheckOption = Annotated[
    bool, typer.Option("--check", help="Check the model against ONNX's specification before and after.")
]

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Convert several models, and all models in folders, to DIR.",
    ),
]

JobsOption = Annotated[
    int,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="With --out: the number of parallel processes."),
]

ReversibleOption = Annotated[
    bool,
    typer.Option(
        "--reversible", help="Record replaced nodes in the model, so that converting back restores them."
    ),
]

VerifyOption = Annotated[
    bool,
    typer.Option(
        "--verify", help="Run both models on the same inputs, and write nothing unless the outputs agree."
    ),
]

InputsOption = Annotated[
    Path | None,
    typer.Option(
        "--inputs",
        metavar="FILE",
        help="With --verify: an .npz file of inputs; missing inputs are generated.",
    ),
]

ToleranceOption = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        metavar="X",
        min=0.0,
        help="With --verify: the maximum difference of floats, relative and absolute.",
    ),
]

ExternalOption = Annotated[
    Literal["copy", "link", "keep"],
    typer.Option(
        "--external",
        help="If OUT is in another folder: copy external data files to it, create hard links to them, or "
        "keep them where they are.",
    ),
]

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither summary nor progress.")]


def convert(
    source: InputArgument,
    more: MoreArgument = None,
    target: TargetOption = None,
    folder: FolderOption = None,
    in_place: InPlaceOption = False,
    force: ForceOption = False,
    ir_version: IrVersionOption = None,
    allow: AllowOption = None,
    reversible: ReversibleOption = False,
    check: CheckOption = False,
    verify: VerifyOption = False,
    inputs: InputsOption = None,
    tolerance: ToleranceOption = None,
    jobs: JobsOption = 1,
    external: ExternalOption = "copy",
    folders: DefinitionsOption = None,
    adapters: AdaptersOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Convert models to another opset.

    The result is written completely or not at all. The input file is not changed, except with --in-place.
    --out converts several models and all models in folders; failures do not stop the others.
    """
    if not verify and (inputs is not None or tolerance is not None):
        raise UsageError("--inputs and --tolerance require --verify", remedy="add --verify")
    settings = ConversionSettings(
        target,
        ir_version,
        allow or [],
        folders,
        check,
        reversible,
        verify,
        inputs,
        tolerance,
        external,
        force,
        adapters,
    )
    options = settings.read()  # before any model is read
    if folder is not None:
        if in_place:
            raise UsageError(
                "both --out and --in-place are given", place=str(folder), remedy="remove one of them"
            )
        _convert_all([source, *(more or ())], folder, settings, jobs, force=force, quiet=quiet, form=form)
        return
    out = _single_output(more or [])
    require_file(source)
    path = output_file(source, out, in_place=in_place, force=force)
    converted = convert_file(source, path, settings, options, quiet=quiet)
    if not quiet or form is Format.JSON:
        print_result(form, converted.as_dict(), lambda page: _write(page, converted))


def _single_output(more: list[Path]) -> Path | None:
    """Return OUT, if given.

    Raises:
        UsageError: more than one path is given.
    """
    if len(more) > 1:
        raise UsageError("several models require an output folder", remedy="name it with --out")
    return more[0] if more else None


def _convert_all(
    sources: list[Path],
    folder: Path,
    settings: ConversionSettings,
    workers: int,
    *,
    force: bool,
    quiet: bool,
    form: Format,
) -> None:
    from opshift.cli.batch import batch_data, failures, jobs_for, run_jobs, write_batch, write_failures

    jobs = jobs_for(sources, folder, force=force)
    outcomes = run_jobs(jobs, settings, workers, quiet=quiet)
    if not quiet or form is Format.JSON:
        print_result(form, batch_data(folder, outcomes), lambda page: write_batch(page, outcomes))
    elif failures(outcomes):
        print_on_stderr(lambda page: write_failures(page, outcomes))
    if failures(outcomes):
        raise typer.Exit(EXIT_FINDINGS)


def plan(
    source: InputArgument,
    target: TargetOption = None,
    ir_version: IrVersionOption = None,
    allow: AllowOption = None,
    folders: DefinitionsOption = None,
    adapters: AdaptersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show the changes that `convert` would make.

    Lists every node that cannot be converted, and writes nothing. Exits with 1 if there are such nodes.
    """
    from opshift.cli.conversion_text import write_plan
    from opshift.converter.convert import plan_with
    from opshift.converter.report import Report

    require_file(source)
    options = ConversionSettings(target, ir_version, allow or [], folders).read()
    with show_progress(f"Planning {source}"), open_model(source) as (model, imports):
        conversion_plan = plan_with(model, options)
    report = Report.of(conversion_plan)
    data = {"input": source, "possible": not report.refusals, **report.as_dict()}
    print_result(form, data, lambda page: write_plan(page, source, report, imports))
    if report.refusals:
        raise typer.Exit(EXIT_FINDINGS)


def _write(page: Page, converted: ConvertedFile) -> None:
    from opshift.cli.conversion_text import write_allowances, write_replacements, write_versions

    source, out = converted.source, converted.out
    before, after = converted.sizes
    page.line(f"{source} -> {out}" if source != out else str(source), style="bold")
    write_versions(page, converted.report, converted.imports, {"size": f"{before:,} -> {after:,} bytes"})
    write_replacements(page, converted.report)
    write_allowances(page, converted.report)
    if converted.verification:
        from opshift.cli.verification_text import write_verification

        write_verification(page, converted.verification)
    if converted.missing:
        page.blank()
        page.prose(f"{out} has weights in separate files: copy {', '.join(converted.missing)} to its folder.")
