"""Conversion of one file: read, convert, compare with the original if requested, write."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opshift.batch.settings import Settings
from opshift.cli.errors import CommandLineError, add_file_to_errors
from opshift.cli.paths import STDIN, STDOUT, model_input, model_output
from opshift.cli.progress import BYTES, show_progress
from opshift.cli.verification import compare_with_source
from opshift.converter.refusals import ConversionRefused
from opshift.model.operator_ids import opset_imports
from opshift.registry.errors import ResolveError
from opshift.stores.locations import folder_location

if TYPE_CHECKING:
    from opshift.analysis.verification.result import Verification
    from opshift.converter.options import Options
    from opshift.converter.report import Report
    from opshift.converter.streaming.external_data import ExternalHandling
    from opshift.converter.streaming.weights import OutputFile
    from opshift.model.messages import ModelProto


def read_settings(settings: Settings, report: Path | None = None) -> Options:
    """Return the options for converting in place; raise an error for a wrong option or report suffix."""
    if report is not None:
        from opshift.analysis.pages.write_report import report_suffix

        report_suffix(report)
    try:
        return settings.read()
    except ResolveError as error:
        raise CommandLineError(error) from error


class ConvertedFile(NamedTuple):
    """Result of `convert_file`; `source` and `out` are the locations as given on the command line."""

    source: str
    out: str
    report: Report
    imports: dict[str, int]
    """Opset imports of the model before the conversion, by domain."""
    weights: tuple[str, ...]
    """External data files of the original model, relative to its folder."""
    external: ExternalHandling
    note: str
    """Result of `external_data_note`."""
    verification: Verification | None

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        compared = {"verification": self.verification.as_dict()} if self.verification else {}
        return {
            "input": self.source,
            "output": self.out,
            **self.report.as_dict(),
            "external_data": self.weights,
            "external": self.external,
            **compared,
        }


def external_data_note(source: str, out: str, written: OutputFile, external: ExternalHandling) -> str:
    """Return advice on data files that were kept or linked; empty without such files, or in the same folder.

    Call this after the conversion, because the files in the folder of `out` are examined.
    """
    # a new data file is in the folder of the model, and needs no advice
    names = () if written.data_file is not None else written.data
    old, new = (Path(folder_location(each)) for each in (source, out))
    is_same_folder = source != STDIN and out != STDOUT and old.resolve() == new.resolve()
    if not names or is_same_folder:
        return ""
    if external == "keep":
        return f"{out} has weights in separate files: copy {', '.join(names)} to its folder."
    # imported here: few models have external data
    from opshift.converter.streaming.external_data import is_same_file

    linked = [each for each in names if is_same_file(old / each, new / each)]
    if not linked:
        return ""
    return (
        f"{out} and {source} share {', '.join(linked)} by links. Current releases of the Python package onnx "
        "load no linked data files: for copies, repeat the command with --external copy --force."
    )


def convert_file(
    source: str,
    out: str,
    settings: Settings,
    options: Options,
    *,
    report: Path | None = None,
    quiet: bool = False,
) -> ConvertedFile:
    """Convert a model file. If an error is raised, nothing was written except a report of the failure."""
    from opshift.converter.convert import convert_with, plan_with
    from opshift.converter.report import Report, conversion_report
    from opshift.converter.streaming.convert_file import converting

    imports: dict[str, int] = {}
    reports: list[Report] = []

    def convert_in_place(model: ModelProto) -> Report:
        with add_file_to_errors(source):
            imports.update(opset_imports(model.opset_import, model.ir_version))
            try:
                result, plan = convert_with(model, options)
            except ConversionRefused:
                if report is not None:
                    reports.append(Report.of(plan_with(model, options)))
                raise
            reports.append(conversion_report(plan, result, options))
            return reports[-1]

    external, verification = "keep" if out == STDOUT else settings.external, None
    with ExitStack() as stack:
        if report is not None:
            from opshift.cli.report_files import failure_reported

            stack.enter_context(failure_reported(report, source, reports))
        with show_progress(f"Converting {source}", quiet=quiet, unit=BYTES) as progress:
            path = stack.enter_context(model_output(out))
            conversion = converting(
                model_input(source),
                path,
                convert_in_place,
                external,
                settings.force,
                progress,
                needs_file=settings.verify,
                rewrites_data=bool(options.types),
            )
            written = stack.enter_context(conversion)
        if settings.verify and written.path:
            # `written.path` is a temporary file, which replaces `out` only when the `with` block ends
            from opshift.model.files import read_model

            result = read_model(written.path)
            verification = compare_with_source(
                source, result, settings, options.registry, quiet=quiet, data_file=written.data_file
            )
    return ConvertedFile(
        source,
        out,
        written.report,
        imports,
        written.external,
        external,
        external_data_note(source, out, written, external),
        verification,
    )
