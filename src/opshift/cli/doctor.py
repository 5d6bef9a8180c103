"""`opshift doctor`: check, and with `--fix` correct, the declared opsets and IR version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from opshift.analysis.doctor.diagnosis import ranges_text
from opshift.batch.settings import Settings
from opshift.cli import options, verification
from opshift.cli.conversion import external_data_note
from opshift.cli.conversion_text import write_verification, write_warnings
from opshift.cli.errors import EXIT_FINDINGS, add_file_to_errors
from opshift.cli.findings.finding import FileFinding
from opshift.cli.gate.inspect_models import inspect_models
from opshift.cli.gate.several import GateOptions
from opshift.cli.options import PLAIN_FORMATS, Format, expand_records
from opshift.cli.output import page_for, print_result
from opshift.cli.page import Column, Page, number
from opshift.cli.paths import STDOUT, model_input, model_output, output_file, require_file
from opshift.cli.plan import PlannedModel, plan_file, plan_settings
from opshift.cli.progress import BYTES, show_progress
from opshift.converter.report import Report
from opshift.converter.streaming.external_data import open_with_data_files
from opshift.model.errors import OpshiftError, UsageError
from opshift.model.files import read_model
from opshift.model.locations import is_url
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import short_label
from opshift.registry.registry import load_registry

if TYPE_CHECKING:
    from opshift.analysis.doctor.diagnosis import Diagnosis, NodeValidity, Stamp
    from opshift.analysis.verification.result import Verification

COLUMNS = ("declared    ", "fitting     ")
"""Columns of the table of several models; trailing spaces widen a column."""

FIX = "correct the version with opshift doctor --fix"

FREE = "remove them from the inputs with opshift doctor --fix, unless callers override them"


GUESS = "declare the opset for which the model was written"


@expand_records
def doctor(
    sources: options.InputsArgument = None,
    target: options.TargetOption = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Write a model with correct versions to a second argument, or with --in-place to IN.",
        ),
    ] = False,
    keep_initializer_inputs: Annotated[
        bool,
        typer.Option("--keep-initializer-inputs", help="With --fix: keep initializers that are inputs, too."),
    ] = False,
    in_place: options.InPlaceOption = False,
    force: options.ForceOption = False,
    external: options.ExternalOption = "copy",
    *,
    comparison: verification.ComparisonOptions,
    gate: GateOptions,
) -> None:
    """Check models against their declared opsets and IR versions.

    The inputs, outputs, attributes and types of each node are compared with the operator's definition at
    every opset. --fix changes a wrong version to the nearest one that is valid for all nodes, and removes
    initializers from the inputs, so that they are constants. If no version is valid because operators were
    deprecated or removed, it replaces their nodes. It adds missing imports of known domains, and keeps one
    import of each domain. Exits with 1 if a version is wrong and not fixed. With --target, also plans the
    conversion of models with correct versions, and exits with 1 if one is refused.
    """
    names = sources or []
    fix_settings = comparison.settings(Settings(external=external, force=force))
    given = {
        "--in-place": in_place,
        "--external": external != "copy",
        "--verify": comparison.verify,
        "--keep-initializer-inputs": keep_initializer_inputs,
    }
    if not fix:
        options.refuse_options(given, "requires --fix", "add --fix")
        settings = plan_settings(target, gate)  # checked before any model is read
        inspect = partial(diagnose_file, settings=settings)
        found = inspect_models(names, gate, inspect, COLUMNS, "Reading {}")
        if found is None:
            return
        print_result(gate.form, found.as_dict(), found.write)
        if found.result != "correct":
            raise typer.Exit(EXIT_FINDINGS)
        return
    if gate.files_from or target or len(names) not in (1, 2):
        reason, remedy = "--fix corrects one model", "name IN and OUT, without --target and --files-from"
        raise UsageError(reason, remedy=remedy)
    for_several = {"--jobs": gate.jobs > 1, "--ledger": gate.ledger, "--sarif": gate.sarif}
    options.refuse_options(for_several, "has no effect with --fix")
    if gate.form not in PLAIN_FORMATS:
        reason, remedy = "the result has no findings", "use text or json"
        raise UsageError(reason, place=f"--format {gate.form}", remedy=remedy)
    source, out = require_file(names[0]), names[1] if names[1:] else None
    path = output_file(source, out, in_place=in_place, force=force, form=gate.form)
    if is_url(path):
        reason, remedy = "--fix writes local files only", "name a local file, and copy it to the store"
        raise UsageError(reason, place=path, remedy=remedy)
    _write_fixed_model(source, path, fix_settings, gate, keep_initializer_inputs)


def _write_fixed_model(
    source: str,
    path: str,
    settings: Settings,
    gate: GateOptions,
    keep_initializer_inputs: bool,
) -> None:
    """Write a model with corrected versions; with `--verify`, only if its outputs are the same."""
    from opshift.analysis.doctor.restamp import fix_model, require_fixable
    from opshift.converter.streaming.convert_file import converting

    settings.load_references()
    registry = load_registry(gate.folders or ())
    is_quiet = gate.quiet or gate.form is Format.JSON
    diagnosed: list[DiagnosedModel] = []

    def fix_in_place(model: ModelProto) -> Report:
        with add_file_to_errors(source):
            diagnosed.append(_diagnose(source, model, gate.folders or ()))
            diagnosis = diagnosed[0].diagnosis
            require_fixable(diagnosis)
            fix_model(diagnosis, model, registry, keep_initializer_inputs=keep_initializer_inputs)
        # `converting` requires a report as the result, which is not printed
        versions = diagnosis.ir_version.stated, diagnosis.ir_version.fitting
        return Report(opsets=(), ir_version=versions, kept=0, changed=(), constants=0, refusals=())

    def print_diagnosis(found: DiagnosedModel) -> None:
        data = {**found.as_dict(), "output": path}
        print_result(gate.form, data, found.write, quiet=gate.quiet, on_stderr=path == STDOUT)

    verified = None
    try:
        with ExitStack() as stack:
            with show_progress(f"Fixing {source}", quiet=is_quiet, unit=BYTES) as progress:
                place = stack.enter_context(model_output(path))
                conversion = converting(
                    model_input(source),
                    place,
                    fix_in_place,
                    "keep" if path == STDOUT else settings.external,
                    settings.force,
                    progress,
                    needs_file=settings.verify,
                )
                written = stack.enter_context(conversion)
            if settings.verify and written.path:
                result = read_model(written.path)
                verified = verification.compare_with_source(
                    source, result, settings, registry, quiet=is_quiet
                )
    except OpshiftError:
        if diagnosed and gate.form is not Format.JSON:  # the diagnosis explains the error
            print_diagnosis(diagnosed[0])
        raise
    note = external_data_note(source, path, written, "keep" if path == STDOUT else settings.external)
    found = diagnosed[0]._replace(verification=verified, note=note)
    print_diagnosis(found)
    if not is_quiet and path != STDOUT:
        page = page_for()
        page.blank()
        page.line(f"wrote {path}{_fixed_text(found.diagnosis)}", style="green")


def _fixed_text(diagnosis: Diagnosis) -> str:
    """Return the corrected versions as text, such as ` with ai.onnx 17`; empty if no version was wrong."""
    version = diagnosis.ir_version
    wrong = [f"{each.domain} {each.fitting}" for each in diagnosis.stamps if not each.fits]
    if not version.fits:
        wrong.append(f"IR version {version.fitting}")
    return f" with {', '.join(dict.fromkeys(wrong))}" if wrong else ""


class DiagnosedModel(NamedTuple):
    """Diagnosis of a model, and a plan and a comparison of outputs if requested."""

    source: str
    diagnosis: Diagnosis
    planned: PlannedModel | None = None
    verification: Verification | None = None
    note: str = ""
    """Result of `external_data_note`."""

    @property
    def result(self) -> str:
        """Verdict: `wrong` for wrong versions, `refused` for a refused conversion, or else `correct`."""
        if not self.diagnosis.fits:
            return "wrong"
        return "refused" if self.planned and self.planned.report.refusals else "correct"

    def findings(self) -> Iterator[FileFinding]:
        """Yield findings about wrong versions, initializers that are inputs, invalid nodes, and the plan."""
        file, version = self.source, self.diagnosis.ir_version
        for stamp in self.diagnosis.stamps:
            if not stamp.fits:
                message = f"{stamp.domain}: {_verdict_text(self.diagnosis, stamp)}"
                # without a valid import, --fix refuses the model with this remedy, too
                remedy = self.diagnosis.unfixable_reason(stamp)[1] if stamp.fitting is None else FIX
                yield FileFinding("declared.opset", "error", message, file, stamp.place, remedy)
        for each in self.diagnosis.guesses:
            yield FileFinding("declared.opset", "note", each, file, "model", GUESS)
        if not version.fits:
            message = f"IR version {version.stated} does not fit: use {version.fitting}"
            yield FileFinding("declared.ir-version", "error", message, file, "model", FIX)
        if self.diagnosis.overridable:
            message, place = overridable_text(self.diagnosis), "graph"
            yield FileFinding("declared.initializer-inputs", "note", message, file, place, FREE)
        for node in self.diagnosis.mismatches():
            message = f"{short_label(node.operator)}: {node.reason}"
            yield FileFinding("declared.node", "error", message, file, node.place)
        if self.planned:
            yield from self.planned.findings()

    def cells(self) -> dict[str, object]:
        """Return the declared and the fitting versions, for the table of several models."""
        version = self.diagnosis.ir_version
        opsets = [each for each in self.diagnosis.stamps if each.place == "model"]
        declared = ", ".join("-" if each.opset is None else str(each.opset) for each in opsets)
        fitting = ", ".join("-" if each.fitting is None else str(each.fitting) for each in opsets)
        return {"declared": f"{declared}, IR {version.stated}", "fitting": f"{fitting}, IR {version.fitting}"}

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        planned = {"plan": self.planned.as_dict()} if self.planned else {}
        compared = {"verification": self.verification.as_dict()} if self.verification else {}
        return {"input": self.source, "output": None, **self.diagnosis.as_dict(), **planned, **compared}

    def write(self, page: Page) -> None:
        """Print the diagnosis, the plan, the comparison of outputs, and the note."""
        _write_diagnosis(page, self.source, self.diagnosis)
        if self.planned:
            page.blank()
            self.planned.write(page)
        if self.verification:
            write_verification(page, self.verification)
        if self.note:
            page.blank()
            page.prose(self.note)


def diagnose_file(source: str, settings: Settings) -> DiagnosedModel:
    """Diagnose a model file; with a target, plan the conversion if the declared versions fit."""
    with add_file_to_errors(source), open_with_data_files(model_input(source)) as model:
        found = _diagnose(source, model, settings.opsets)
    if not (settings.target and found.diagnosis.fits):
        return found
    return found._replace(planned=plan_file(source, settings))


def _diagnose(source: str, model: ModelProto, folders: Sequence[Path]) -> DiagnosedModel:
    from opshift.analysis.doctor.diagnose import diagnose

    return DiagnosedModel(source, diagnose(model, registry=load_registry(folders)))


def _write_diagnosis(page: Page, source: str, diagnosis: Diagnosis) -> None:
    page.line(source, style="bold")
    facts = {}
    for stamp in diagnosis.stamps:
        place = "" if stamp.place == "model" else f" in {stamp.place}"
        facts[f"{stamp.domain}{place}"] = _verdict_text(diagnosis, stamp)
    version = diagnosis.ir_version
    needed = f"fits; the model needs at least {version.needed}"
    verdict = needed if version.fits else f"does not fit: use {version.fitting}"
    page.facts({**facts, "IR version": f"{version.stated}, {verdict}"})
    # --fix makes these repairs only if it also replaces nodes
    write_warnings(page, [f"a conversion repairs the model first: {each}" for each in diagnosis.repairs])
    for each in diagnosis.guesses:
        page.prose(f"note: {each}; {GUESS}")
    if diagnosis.overridable:
        page.line(f"note: {overridable_text(diagnosis)}; {FREE}")
    groups = Counter((short_label(each.operator), _opsets_text(each)) for each in diagnosis.nodes)
    if groups:
        page.blank()
        columns = (number("nodes"), Column("operator", "cyan"), "valid at opsets")
        page.table(columns, [(count, *group) for group, count in groups.items()])
    mismatches = diagnosis.mismatches()
    if mismatches:
        page.heading("Invalid at the declared opsets")
        rows = [(short_label(each.operator), each.place, each.reason) for each in mismatches]
        page.table((Column("operator", "cyan"), "node", Column("reason", "red")), rows)


def overridable_text(diagnosis: Diagnosis) -> str:
    """Return a sentence on initializers that are graph inputs."""
    count = len(diagnosis.overridable)
    if count == 1:
        return "1 initializer is also a graph input: callers can override it, so runtimes do not fold it"
    return f"{count:,} initializers are also graph inputs: callers can override them, so runtimes fold none"


def _opsets_text(node: NodeValidity) -> str:
    return "unknown" if node.is_undefined else ranges_text(node.opsets)


def _verdict_text(diagnosis: Diagnosis, stamp: Stamp) -> str:
    declared = "not imported" if stamp.opset is None else str(stamp.opset)
    if stamp.repeated:
        declared = f"imported as {', '.join(map(str, stamp.repeated))} and {stamp.opset}"
    if not stamp.fits:
        verb = "convert to" if stamp.converted else "use"
        unknown = "no opset is known" if diagnosis.is_unknown(stamp) else "no opset is valid for all nodes"
        advice = unknown if stamp.fitting is None else f"{verb} {stamp.fitting}"
        advice += f", with {', '.join(stamp.replaced)} replaced" if stamp.replaced else ""
        return f"{declared}, does not fit the nodes: {advice}"
    valid = f", fits; all nodes are valid at {ranges_text(stamp.opsets)}" if stamp.opsets else ""
    return f"{declared}{valid}"
