"""`opshift convert` (to another opset) and `opshift simplify` (fold at the same opset)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from opshift.batch.settings import Settings, nonempty_arguments
from opshift.cli import options
from opshift.cli.commands import HelpAllOption
from opshift.cli.conversion import convert_file, read_settings
from opshift.cli.conversion_text import write_conversion
from opshift.cli.gate import several
from opshift.cli.gate.several import GateOptions
from opshift.cli.options import ConversionOptions, Format, ResultOptions, expand_records, settings_of
from opshift.cli.output import print_result
from opshift.cli.paths import STDOUT, output_file, require_file
from opshift.cli.verification import ComparisonOptions, VerifyOption
from opshift.model.errors import UsageError
from opshift.stores.find_models import is_file_name


@expand_records
def convert(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="IN",
            help="The model to read: a file, a URL, or - for standard input.",
            parser=options.location,
        ),
    ] = None,
    more: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="OUT|IN...",
            help="The file or URL to write, - for standard output, or more models with --out.",
            parser=options.location,
        ),
    ] = None,
    *,
    conversion: ConversionOptions,
    folder: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            rich_help_panel=options.OUTPUT,
            metavar="DIR",
            help="Convert several models, and all models in folders, to DIR.",
            parser=options.location,
        ),
    ] = None,
    in_place: options.InPlaceOption = False,
    force: options.ForceOption = False,
    result: ResultOptions,
    comparison: ComparisonOptions,
    jobs: several.JobsOption = 1,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            rich_help_panel=several.SEVERAL,
            metavar="ADDRESS",
            help="With --out: convert on the Dask cluster with this scheduler, such as tcp://10.0.0.1:8786. "
            "Its workers need opshift, and the same paths.",
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            rich_help_panel=several.SEVERAL,
            metavar="FILE",
            help="With --out: the record of results; a later run skips models that are up to date "
            "according to it. By default opshift-ledger.jsonl in DIR, or opshift-ledger/ in a store.",
        ),
    ] = None,
    skip_existing: Annotated[
        bool,
        typer.Option(
            "--skip-existing",
            rich_help_panel=several.SEVERAL,
            help="With --out: skip models whose output exists and is not in the ledger.",
        ),
    ] = False,
    files_from: several.FilesFromOption = None,
    verbose: several.VerboseOption = False,
    external: options.ExternalOption = "copy",
    folders: options.DefinitionsOption = None,
    adapters: options.AdaptersOption = None,
    quiet: options.QuietOption = False,
    report: options.ReportOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", rich_help_panel=options.OUTPUT, help="Write nothing; print plans as `opshift plan`."
        ),
    ] = False,
    form: options.FindingsFormatOption = Format.TEXT,
    help_all: HelpAllOption = False,
) -> None:
    """Convert models to another opset.

    The result is written completely or not at all. The input file is not changed, except with --in-place.
    --out converts several models and all models in folders; failures do not stop the others.
    --help-all shows all options.
    """
    if form not in options.PLAIN_FORMATS and not dry_run:
        raise UsageError("requires --dry-run", place=f"--format {form}", remedy="add --dry-run")
    settings = comparison.settings(settings_of(conversion, result))._replace(
        external=external,
        force=force,
        opsets=tuple(folders or ()),
        adapters=tuple(adapters or ()),
    )
    sources = _named_sources(source, more, files_from)
    gate = GateOptions(
        "convert",
        folders,
        adapters,
        files_from=files_from,
        jobs=jobs,
        ledger=ledger,
        verbose=verbose,
        quiet=quiet,
        form=form,
    )
    conversion_options = read_settings(settings, report)  # report invalid options before any model is read
    if folder is not None and in_place:
        raise UsageError(
            "both --out and --in-place are given", place=folder, remedy="remove one of the options"
        )
    if dry_run:
        from opshift.cli.plan import show_plans

        conversion_only = {
            "--verify": comparison.verify,
            "--bump": result.bump,
            "--external": external != "copy",
            "--skip-existing": skip_existing,
            "--dask": dask,
        }
        options.refuse_options(conversion_only, "has no effect with --dry-run")
        if folder is None and not files_from and len(sources) == 2 and is_file_name(sources[0]):
            # check OUT in the same way as a conversion
            source = require_file(sources[0])
            output_file(source, sources.pop(), in_place=in_place, force=force, form=form)
        show_plans(sources, settings, gate._replace(command="plan"), report)
        return
    if folder is not None:
        from opshift.cli.run_batch import BatchOptions, run_batch

        run_batch(sources, settings, BatchOptions(folder, skip_existing, dask, report), gate)
        return
    if ledger or skip_existing or dask or files_from:
        reason = "--ledger, --skip-existing, --dask and --files-from require an output folder"
        raise UsageError(reason, remedy="name a folder with --out")
    source, named = _source_and_output(sources)
    path = output_file(source, named, in_place=in_place, force=force, form=form)
    is_quiet = quiet or form is Format.JSON
    converted = convert_file(source, path, settings, conversion_options, report=report, quiet=is_quiet)
    if report is not None:
        from opshift.cli.report_files import write_report_file

        title, data = f"{source} -> {path}", converted.as_dict()
        write_report_file(report, title, data, converted.report, converted.verification)
    print_result(
        form,
        converted.as_dict(),
        lambda page: write_conversion(page, converted),
        quiet=quiet,
        on_stderr=path == STDOUT,
    )


def _named_sources(source: str | None, more: list[str] | None, files_from: list[str] | None) -> list[str]:
    if source is None and not files_from:
        raise UsageError("IN is not given", remedy="name a model, or - for standard input")
    return [*([source] if source else []), *(more or ())]


def _source_and_output(names: list[str]) -> tuple[str, str | None]:
    if len(names) > 2:
        raise UsageError("several models require an output folder", remedy="name a folder with --out")
    source, out = names[0], names[1] if len(names) > 1 else None
    if os.path.isdir(source) and any(Path(source).rglob("*.onnx")):
        remedy = f"convert its models with --out {out or 'FOLDER'}, or name a file in it"
        raise UsageError("is a folder", place=source, remedy=remedy)
    return require_file(source), out


def simplify(
    source: options.InputArgument,
    out: options.OutputArgument = None,
    in_place: options.InPlaceOption = False,
    force: options.ForceOption = False,
    shape: options.ShapeOption = None,
    keep_initializer_inputs: options.KeepInitializerInputsOption = False,
    check: options.CheckOption = False,
    verify: VerifyOption = False,
    external: options.ExternalOption = "copy",
    folders: options.DefinitionsOption = None,
    quiet: options.QuietOption = False,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """Fold a model at its opset.

    Values that are the same in every run become constants. Nodes that return their input, nodes that compute
    the same as an earlier one, and unread values are removed. Outputs stay equal, bit by bit.
    Nothing is folded that callers can override.
    """
    arguments = {
        "fold": True,
        "shapes": shape,
        "keep_initializer_inputs": keep_initializer_inputs,
        "check": check,
    }
    settings = Settings(
        arguments=nonempty_arguments(arguments),
        external=external,
        force=force,
        opsets=tuple(folders or ()),
        verify=verify,
    )
    conversion_options = read_settings(settings)
    source = require_file(source)
    path = output_file(source, out, in_place=in_place, force=force, form=form)
    is_quiet = quiet or form is Format.JSON
    converted = convert_file(source, path, settings, conversion_options, quiet=is_quiet)
    print_result(
        form,
        converted.as_dict(),
        lambda page: write_conversion(page, converted),
        quiet=quiet,
        on_stderr=path == STDOUT,
    )
