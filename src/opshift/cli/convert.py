"""`opshift convert` and `opshift plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opshift.cli.failing import FINDINGS, Misused, about
from opshift.cli.options import (
    AllowOption,
    FoldersOption,
    Format,
    FormatOption,
    InputArgument,
    TargetOption,
    registry_with,
)
from opshift.cli.output import emit, working
from opshift.cli.places import destination, external_files, require_file, require_no_weights
from opshift.registry.errors import ResolveError

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.converter.report import Report
    from opshift.registry.catalogue import Registry

OutputArgument = Annotated[
    Path | None, typer.Argument(metavar="OUT", help="The file to write.", show_default=False)
]
InPlaceOption = Annotated[bool, typer.Option("--in-place", help="Replace IN by the result; give no OUT.")]
ForceOption = Annotated[bool, typer.Option("--force", "-f", help="Replace OUT if it is there already.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary and no progress.")]


def convert(
    source: InputArgument,
    target: TargetOption,
    out: OutputArgument = None,
    in_place: InPlaceOption = False,
    force: ForceOption = False,
    allow: AllowOption = None,
    folders: FoldersOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Convert a model to another opset.

    The result is written whole or not at all. The input is left alone unless --in-place says otherwise.
    """
    from opshift.converter.convert import convert as convert_model
    from opshift.converter.files import write_model

    require_file(source)
    path = destination(source, out, in_place=in_place, force=force)
    registry = _registry_for(target, folders)
    size = source.stat().st_size
    model, imports = _read(source, quiet)
    weights = external_files(model)
    require_no_weights(source, weights, path)
    with working(f"Converting {source}", quiet=quiet), about(source):
        report = convert_model(model, target, inplace=True, allow=allow or (), registry=registry).report
    with working(f"Writing {path}", quiet=quiet), about(path):
        write_model(model, path)
    if not quiet or form is Format.JSON:
        _tell(form, report, imports, (source, out or source), size, weights)


def plan(
    source: InputArgument,
    target: TargetOption,
    allow: AllowOption = None,
    folders: FoldersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show what `convert` would do and what stands in its way.

    Nothing is written. Exits with 1 if some nodes cannot be converted.
    """
    from opshift.cli.summary import write_plan
    from opshift.converter.convert import plan_version
    from opshift.converter.report import Report

    require_file(source)
    registry = _registry_for(target, folders)
    model, imports = _read(source)
    with working(f"Planning {source}"), about(source):
        report = Report.of(plan_version(model, target, allow=allow or (), registry=registry))
    data = {"input": source, "possible": not report.refusals, **report.as_dict()}
    emit(form, data, lambda page: write_plan(page, source, report, imports))
    if report.refusals:
        raise typer.Exit(FINDINGS)


def _registry_for(target: list[str], folders: list[Path] | None) -> Registry:
    """The registry; the target is known to make sense in it.

    Raises:
        Misused, UsageError: it makes none.
    """
    from opshift.converter.target import read_target

    registry = registry_with(folders)
    try:
        read_target(target, registry)
    except ResolveError as error:
        raise Misused(error) from error
    return registry


def _read(source: Path, quiet: bool = False) -> tuple[Any, dict[str, int]]:
    """A model and its opset imports."""
    from opshift.converter.files import read_model
    from opshift.converter.opsets import opset_imports

    with working(f"Reading {source}", quiet=quiet), about(source):
        model = read_model(source)
        return model, opset_imports(model.opset_import, model.ir_version)


def _tell(
    form: Format,
    report: Report,
    imports: dict[str, int],
    paths: tuple[Path, Path],
    size: int,
    weights: tuple[str, ...],
) -> None:
    from opshift.cli.summary import write_concessions, write_replacements, write_versions

    source, out = paths
    sizes = (size, out.stat().st_size)
    are_elsewhere = weights and out.resolve().parent != source.resolve().parent

    def write(page: Page) -> None:
        page.line(f"{source} -> {out}" if source != out else str(source), style="bold")
        write_versions(page, report, imports, {"size": f"{sizes[0]:,} -> {sizes[1]:,} bytes"})
        write_replacements(page, report)
        write_concessions(page, report)
        if are_elsewhere:
            page.blank()
            page.prose(f"Its weights are in files of their own: copy {', '.join(weights)} beside {out}.")

    data = {"input": source, "output": out, **report.as_dict(), "sizes": sizes, "external_data": weights}
    emit(form, data, write)
