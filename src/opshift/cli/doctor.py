"""`opshift doctor`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.cli.conversion_text import write_warnings
from opshift.cli.errors import EXIT_FINDINGS, add_file_to_errors
from opshift.cli.options import (
    DefinitionsOption,
    ForceOption,
    Format,
    FormatOption,
    InPlaceOption,
    InputArgument,
    OutputArgument,
    QuietOption,
    registry_with,
)
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page, number
from opshift.cli.paths import output_file, require_file
from opshift.cli.progress import show_progress
from opshift.cli.streams import STDOUT, model_input, model_output
from opshift.model.errors import UsageError
from opshift.model.operator_ids import short_label

if TYPE_CHECKING:
    from opshift.analysis.doctor.diagnosis import Diagnosis, OpsetRanges, Stamp


def doctor(
    source: InputArgument,
    out: OutputArgument = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Write OUT, or IN with --in-place, with corrected versions.")
    ] = False,
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

    source = require_file(source)
    if not fix and (out is not None or in_place):
        raise UsageError("OUT and --in-place require --fix", remedy="add --fix")
    path = output_file(source, out, in_place=in_place, force=force, form=form) if fix else None
    progress = show_progress(f"Reading {source}", quiet=quiet or form is Format.JSON)
    with progress, add_file_to_errors(source):
        model = read_model(model_input(source))
        diagnosis = diagnose(model, registry=registry_with(folders))
    data = {"input": source, "output": out, **diagnosis.as_dict()}
    print_result(
        form, data, lambda page: _write(page, source, diagnosis), quiet=quiet, on_stderr=path == STDOUT
    )
    if path is not None:
        # only the locations of external data are needed, not the weights
        with open_without_weights(model_input(source)) as skeleton:
            files = external_files(skeleton.SerializeToString(), source)
            require_not_overwritten(files, Path(source).parent, Path(path))
        with add_file_to_errors(source):
            require_fixable(diagnosis)
        apply_stamps(diagnosis, model)
        with add_file_to_errors(path), model_output(path) as place:
            write_model(model, place)
    elif not diagnosis.fits:
        raise typer.Exit(EXIT_FINDINGS)


def _write(page: Page, source: str, diagnosis: Diagnosis) -> None:
    page.line(source, style="bold")
    facts = {}
    for stamp in diagnosis.stamps:
        place = "" if stamp.place == "model" else f" in {stamp.place}"
        facts[f"{stamp.domain}{place}"] = _verdict(stamp)
    version = diagnosis.ir_version
    needed = f"fits; the model needs at least {version.needed}"
    verdict = needed if version.fits else f"does not fit: use {version.fitting}"
    page.facts({**facts, "IR version": f"{version.stated}, {verdict}"})
    # --fix changes only opset imports and the IR version
    write_warnings(page, [f"a conversion repairs the model first: {each}" for each in diagnosis.repairs])
    groups = Counter((short_label(each.operator), _ranges_text(each.opsets)) for each in diagnosis.nodes)
    if groups:
        page.blank()
        columns = (number("nodes"), Column("operator", "cyan"), "valid at opsets")
        page.table(columns, [(count, *group) for group, count in groups.items()])
    mismatches = diagnosis.mismatches()
    if mismatches:
        page.heading("Invalid at the declared opsets")
        rows = [(short_label(each.operator), each.place, each.reason) for each in mismatches]
        page.table((Column("operator", "cyan"), "node", Column("reason", "red")), rows)


def _verdict(stamp: Stamp) -> str:
    declared = "not imported" if stamp.opset is None else str(stamp.opset)
    if not stamp.fits:
        advice = "no opset is valid for all nodes" if stamp.fitting is None else f"use {stamp.fitting}"
        return f"{declared}, does not fit: {advice}"
    valid = f", fits; all nodes are valid at {_ranges_text(stamp.opsets)}" if stamp.opsets else ""
    return f"{declared}{valid}"


def _ranges_text(opsets: OpsetRanges) -> str:
    """Format ranges of opsets: `1 to 12, 15`."""
    parts = (str(low) if low == high else f"{low} to {high}" for low, high in opsets)
    return ", ".join(parts) or "none"
