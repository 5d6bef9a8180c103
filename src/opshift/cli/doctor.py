"""`opshift doctor`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.cli.convert import ForceOption, InPlaceOption, OutputArgument, QuietOption
from opshift.cli.errors import EXIT_FINDINGS, add_file_to_errors
from opshift.cli.options import DefinitionsOption, Format, FormatOption, InputArgument, registry_with
from opshift.cli.output import print_result, show_progress
from opshift.cli.page import Column
from opshift.cli.paths import output_file, require_file
from opshift.model.errors import UsageError

if TYPE_CHECKING:
    from opshift.analysis.doctor.diagnosis import Diagnosis, IrStamp, OpsetRanges, Stamp
    from opshift.cli.page import Page

FixOption = Annotated[
    bool, typer.Option("--fix", help="Write OUT, or IN with --in-place, with corrected versions.")
]

NODE_COLUMNS = (
    Column("nodes", is_number=True),
    Column("operator", style="cyan"),
    Column("valid at opsets"),
)

MISFIT_COLUMNS = (Column("operator", style="cyan"), Column("node"), Column("reason", style="red"))


def doctor(
    source: InputArgument,
    out: OutputArgument = None,
    fix: FixOption = False,
    in_place: InPlaceOption = False,
    force: ForceOption = False,
    folders: DefinitionsOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Check a model against its declared opsets and IR version.

    The inputs, outputs, attributes and types of each node are compared with the operator's definition at
    every opset. --fix changes a wrong version to the nearest one that is valid for all nodes, and nothing
    else. Exits with 1 if a version is wrong and not fixed.
    """
    from opshift.analysis.doctor.diagnose import diagnose
    from opshift.analysis.doctor.restamp import apply_stamps, require_fixable
    from opshift.converter.streaming.external_data import external_files, require_not_overwritten
    from opshift.converter.streaming.weights import open_without_weights
    from opshift.model.files import read_model, write_model

    require_file(source)
    if not fix and (out is not None or in_place):
        raise UsageError("OUT and --in-place require --fix", remedy="add --fix")
    path = output_file(source, out, in_place=in_place, force=force) if fix else None
    with show_progress(f"Reading {source}", quiet=quiet), add_file_to_errors(source):
        model = read_model(source)
        diagnosis = diagnose(model, registry=registry_with(folders))
    if not quiet or form is Format.JSON:
        print_result(
            form,
            {"input": source, "output": out, **diagnosis.as_dict()},
            lambda page: _write(page, source, diagnosis),
        )
    if path is not None:
        with open_without_weights(source) as skeleton:  # needs external data locations only, not the weights
            require_not_overwritten(
                external_files(skeleton.SerializeToString(), str(source)), source.parent, path
            )
        with add_file_to_errors(source):
            require_fixable(diagnosis)
        apply_stamps(diagnosis, model)
        with add_file_to_errors(path):
            write_model(model, path)
    elif not diagnosis.fits:
        raise typer.Exit(EXIT_FINDINGS)


def _write(page: Page, source: Path, diagnosis: Diagnosis) -> None:
    page.line(str(source), style="bold")
    stamps = {_name(each): _verdict(each) for each in diagnosis.stamps}
    page.facts({**stamps, "IR version": _ir_verdict(diagnosis.ir_version)})
    groups = Counter((each.operator, each.opsets) for each in diagnosis.nodes)
    if groups:
        page.blank()
        page.table(
            NODE_COLUMNS, [(count, name, _ranges_text(opsets)) for (name, opsets), count in groups.items()]
        )
    if diagnosis.misfits():
        page.heading("Invalid at the declared opsets")
        page.table(MISFIT_COLUMNS, [(each.operator, each.place, each.reason) for each in diagnosis.misfits()])


def _name(stamp: Stamp) -> str:
    return stamp.domain if stamp.place == "model" else f"{stamp.domain} in {stamp.place}"


def _verdict(stamp: Stamp) -> str:
    declared = "not imported" if stamp.opset is None else str(stamp.opset)
    if stamp.fits:
        return (
            f"{declared}, fits; all nodes are valid at {_ranges_text(stamp.opsets)}"
            if stamp.opsets
            else declared
        )
    return f"{declared}, does not fit: " + (
        "no opset is valid for all nodes" if stamp.fitting is None else f"use {stamp.fitting}"
    )


def _ir_verdict(stamp: IrStamp) -> str:
    if stamp.fits:
        return f"{stamp.stated}, fits; the model needs at least {stamp.needed}"
    return f"{stamp.stated}, does not fit: use {stamp.fitting}"


def _ranges_text(opsets: OpsetRanges) -> str:
    """Format ranges of opsets: `1 to 12, 15`."""
    parts = (str(low) if low == high else f"{low} to {high}" for low, high in opsets)
    return ", ".join(parts) or "none"
