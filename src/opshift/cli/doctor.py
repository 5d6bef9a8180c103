"""`opshift doctor`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.cli.convert import ForceOption, InPlaceOption, OutputArgument, QuietOption
from opshift.cli.failing import FINDINGS, about
from opshift.cli.options import FoldersOption, Format, FormatOption, InputArgument, registry_with
from opshift.cli.output import Column, emit, working
from opshift.cli.places import destination, require_file
from opshift.converter.errors import UsageError

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.converter.doctor.diagnosis import Diagnosis, IrStamp, Ranges, Stamp

FixOption = Annotated[
    bool, typer.Option("--fix", help="Write OUT, or IN with --in-place, with the stamps that fit.")
]
NODES = (
    Column("nodes", is_number=True),
    Column("operator", style="cyan"),
    Column("legal at opsets"),
)
MISFITS = (Column("operator", style="cyan"), Column("node"), Column("why not", style="red"))


def doctor(
    source: InputArgument,
    out: OutputArgument = None,
    fix: FixOption = False,
    in_place: InPlaceOption = False,
    force: ForceOption = False,
    folders: FoldersOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Tell whether a model fits the opsets it states.

    And the IR version. Each node is looked up at every opset: whether it has the inputs, outputs, attributes
    and types that its operator has there. With --fix a wrong stamp is set to the nearest that fits all nodes,
    and nothing else is changed. Exits with 1 if a stamp is wrong and not fixed.
    """
    from opshift.converter.doctor.diagnose import diagnose
    from opshift.converter.doctor.restamp import apply_stamps, require_curable
    from opshift.converter.files import read_model, write_model
    from opshift.converter.streaming.external import external_files, require_spared
    from opshift.converter.streaming.weights import reading

    require_file(source)
    if not fix and (out is not None or in_place):
        raise UsageError("nothing is written without --fix", remedy="add --fix")
    path = destination(source, out, in_place=in_place, force=force) if fix else None
    with working(f"Reading {source}", quiet=quiet), about(source):
        model = read_model(source)
        found = diagnose(model, registry=registry_with(folders))
    if not quiet or form is Format.JSON:
        emit(
            form,
            {"input": source, "output": out, **found.as_dict()},
            lambda page: _write(page, source, found),
        )
    if path is not None:
        with reading(source) as light:
            require_spared(external_files(light.SerializeToString(), str(source)), source.parent, path)
        with about(source):
            require_curable(found)
        apply_stamps(found, model)
        with about(path):
            write_model(model, path)
    elif not found.fits:
        raise typer.Exit(FINDINGS)


def _write(page: Page, source: Path, found: Diagnosis) -> None:
    page.line(str(source), style="bold")
    stamps = {_name(each): _verdict(each) for each in found.stamps}
    page.facts({**stamps, "IR version": _ir_verdict(found.ir_version)})
    groups = Counter((each.operator, each.opsets) for each in found.nodes)
    if groups:
        page.blank()
        page.table(NODES, [(count, name, _spelled(opsets)) for (name, opsets), count in groups.items()])
    if found.misfits():
        page.heading("Not legal as stated")
        page.table(MISFITS, [(each.operator, each.place, each.reason) for each in found.misfits()])


def _name(stamp: Stamp) -> str:
    return stamp.domain if stamp.place == "model" else f"{stamp.domain} in {stamp.place}"


def _verdict(stamp: Stamp) -> str:
    stated = "not imported" if stamp.opset is None else str(stamp.opset)
    if stamp.fits:
        return f"{stated}, fits; all nodes are legal at {_spelled(stamp.opsets)}" if stamp.opsets else stated
    return f"{stated}, does not fit: " + (
        "no opset would" if stamp.fitting is None else f"{stamp.fitting} would"
    )


def _ir_verdict(stamp: IrStamp) -> str:
    if stamp.fits:
        return f"{stamp.stated}, fits; {stamp.needed} has all that is used"
    return f"{stamp.stated}, does not fit: {stamp.fitting} would"


def _spelled(opsets: Ranges) -> str:
    """`1 to 12, 15`."""
    parts = (str(low) if low == high else f"{low} to {high}" for low, high in opsets)
    return ", ".join(parts) or "none"
