"""`opshift fit`: convert a model so that a runtime implements all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from opshift.cli import completion, options, verification
from opshift.cli.conversion import external_data_note
from opshift.cli.conversion_text import write_verification
from opshift.cli.errors import add_file_to_errors
from opshift.cli.options import Format, expand_records, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Page
from opshift.cli.paths import STDOUT, model_input, model_output, output_file, require_file
from opshift.cli.progress import BYTES, show_progress
from opshift.converter.options import read_allow
from opshift.converter.report import Report
from opshift.model.files import read_model
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, opset_imports

if TYPE_CHECKING:
    from opshift.analysis.fit.result import FitReport
    from opshift.analysis.verification.result import Verification


@expand_records
def fit(
    source: options.InputArgument,
    runtime: Annotated[
        str,
        typer.Option(
            "--runtime",
            "-r",
            rich_help_panel=options.TARGET,
            metavar="RUNTIME",
            autocompletion=completion.complete_runtime,
            help="A name such as onnxruntime-1.20.1, which `opshift runtimes` lists, or a YAML file.",
        ),
    ],
    out: options.OutputArgument = None,
    *,
    in_place: options.InPlaceOption = False,
    force: options.ForceOption = False,
    provider_only: Annotated[
        bool,
        typer.Option(
            "--provider-only",
            rich_help_panel=options.TARGET,
            help="For an execution provider such as onnxruntime-coreml: it has to implement all nodes, and "
            "none may fall back to the CPU.",
        ),
    ] = False,
    allow: options.AllowOption = None,
    shapes: options.ShapeOption = None,
    infer_shapes: options.InferShapesOption = False,
    recognize: Annotated[
        list[str] | None,
        typer.Option(
            "--recognize",
            rich_help_panel=options.TARGET,
            metavar="OPERATOR",
            help="First, recognize an operator with a kernel, such as Gelu: one node of it replaces the "
            "nodes that compute the same. `all` recognizes every such operator, except for those with slow "
            "kernels. May be repeated. --allow approximate accepts nodes that round differently, too.",
        ),
    ] = None,
    fold: Annotated[
        bool,
        typer.Option(
            "--fold",
            rich_help_panel=options.TARGET,
            help="First replace values that are the same in every run by constants, and remove nodes without "
            "an effect, as `opshift simplify` does: nodes that compute constants need no kernels.",
        ),
    ] = False,
    external: options.ExternalOption = "copy",
    comparison: verification.ComparisonOptions,
    folders: options.DefinitionsOption = None,
    adapters: options.AdaptersOption = None,
    quiet: options.QuietOption = False,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """Convert a model so that a runtime implements all of its nodes.

    Chooses the opset, replaced operators and element types with the lowest cost: few added nodes, and no
    inexact conversion unless --allow permits it. If no conversion helps, lists the nodes that prevent it, and
    writes nothing; --fold, --shape or --infer-shapes may help then.
    """
    from opshift.analysis.fit.fit import fit_message, fit_options
    from opshift.converter.streaming.convert_file import converting
    from opshift.registry.runtimes.files import get_runtime, without_fallback

    names = recognize or []
    compared = comparison.settings()
    compared.load_references()
    found = get_runtime(runtime)
    if provider_only:
        found = without_fallback(found)
    settings = fit_options(
        registry_with(folders),
        read_allow(allow or ()),
        "all" in names or names,
        shapes or (),
        fold=fold,
        infer_shapes=infer_shapes,
    )
    source = require_file(source)
    written = output_file(source, out, in_place=in_place, force=force, form=form)
    reports: list[FitReport] = []
    imports: dict[str, int] = {}

    def fit_in_place(model: ModelProto) -> Report:
        with add_file_to_errors(source):
            imports.update(opset_imports(model.opset_import, model.ir_version))
            result, report = fit_message(model, found, settings)
            model.CopyFrom(result)
            reports.append(report)
            return report.conversions[-1]

    verified: Verification | None = None
    handling = "keep" if written == STDOUT else external
    is_quiet = quiet or form is Format.JSON
    with (
        show_progress(f"Fitting {source}", quiet=is_quiet, unit=BYTES) as progress,
        model_output(written) as path,
        converting(
            model_input(source), path, fit_in_place, handling, force, progress, needs_file=compared.verify
        ) as conversion,
    ):
        if compared.verify and conversion.path:
            result = read_model(conversion.path)
            verified = verification.compare_with_source(
                source, result, compared, settings.registry, quiet=is_quiet
            )
    note = external_data_note(source, written, conversion, handling)
    fitted = FittedFile(source, written, imports, reports[0], note, verified)
    print_result(form, fitted.as_dict(), fitted.write, quiet=quiet, on_stderr=written == STDOUT)


class FittedFile(NamedTuple):
    """Result of fitting a model file; `imports` maps domains to opsets before the conversion."""

    source: str
    out: str
    imports: dict[str, int]
    report: FitReport
    note: str
    """Result of `external_data_note`."""
    verification: Verification | None = None

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        compared = {"verification": self.verification.as_dict()} if self.verification else {}
        return {"input": self.source, "output": self.out, **self.report.as_dict(), **compared}

    def write(self, page: Page) -> None:
        """Print the changed versions, the numbers of nodes, the notes and the comparison of outputs."""
        report = self.report
        page.line(f"{self.source} -> {self.out}" if self.source != self.out else self.source, style="bold")
        facts = {"runtime": report.runtime}
        for domain in {**self.imports, **report.opsets}:
            versions = [each.get(domain) for each in (self.imports, report.opsets)]
            facts["opset" if domain == DEFAULT_DOMAIN else domain] = _change_text(*versions)
        facts["IR version"] = _change_text(report.all_conversions[0].ir_version[0], report.ir_version)
        facts["nodes"] = _change_text(*report.nodes)
        page.facts(facts)
        for title, sentences in report.notes.items():
            page.heading(title)
            for each in sentences:
                page.prose(each, indent=2)
        if self.verification:
            write_verification(page, self.verification)
        if self.note:
            page.blank()
            page.prose(self.note)


def _change_text(before: object, after: object) -> str:
    values = ["none" if each is None else f"{each:,}" for each in (before, after)]
    return values[0] if before == after else " -> ".join(values)
