"""`opshift node`: convert nodes that are given as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from opshift.batch.settings import Settings, nonempty_arguments
from opshift.cli import options
from opshift.cli.conversion import read_settings
from opshift.cli.conversion_text import write_plan
from opshift.cli.errors import EXIT_FINDINGS, names_in_arguments
from opshift.cli.options import Format
from opshift.cli.output import print_result
from opshift.cli.page import Page
from opshift.cli.paths import DASH, STDIN
from opshift.converter.refusals import Refusal
from opshift.converter.report import Report
from opshift.model.errors import UNKNOWN_ELEMENT_TYPE, InvalidModel
from opshift.model.operator_ids import opset_imports

SOURCE = "<text>"

TYPE_REMEDY = "write the type before the name of the value, such as float[N, 10] x"


def node(
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            help="A node, several nodes or a model: 'y = Softmax <axis = 1> (float[N, 10] x)', "
            "'Softmax(x, axis=1)', a call of make_node, text or JSON of protobuf, or - for standard input.",
        ),
    ],
    opset: options.OpsetOption = None,
    target: options.TargetOption = None,
    allow: options.AllowOption = None,
    shape: options.ShapeOption = None,
    infer_shapes: options.InferShapesOption = False,
    without: options.WithoutOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Describe each step.")] = False,
    folders: options.DefinitionsOption = None,
    adapters: options.AdaptersOption = None,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """Show what nodes, given as text, become at another opset.

    Values that no node produces are inputs. A type before their name, such as float[N, 10] x, helps the
    conversion. The text of a model has its own opset. Exits with 1 after a refusal.
    """
    from opshift.analysis.model_text import model_lines, model_of_text
    from opshift.converter.convert import try_convert

    arguments = {"allow": allow, "shapes": shape, "infer_shapes": infer_shapes, "without": without}
    settings = read_settings(
        Settings(
            target=tuple(target or ()),
            arguments=nonempty_arguments(arguments),
            opsets=tuple(folders or ()),
            adapters=tuple(adapters or ()),
        )
    )
    given = _standard_input() if text == DASH else text
    with names_in_arguments():
        chosen = settings.registry.newest_opset() if opset is None else opset
        model = model_of_text(given, chosen, settings.registry)
    imports = opset_imports(model.opset_import, model.ir_version)
    result, plan = try_convert(model, settings)
    report = Report.of(plan, result)
    report = replace(report, refusals=tuple(map(_with_advice_for_text, report.refusals)))
    lines = list(model_lines(result)) if result else []

    def write(page: Page) -> None:
        write_plan(page, SOURCE, report, imports, explain)
        if lines:
            page.heading("Result")
        for line in lines:
            page.line(f"  {line}")

    data = {"input": given, "possible": result is not None, **report.as_dict(), "lines": lines}
    print_result(form, data, write)
    if result is None:
        raise typer.Exit(EXIT_FINDINGS)


def _with_advice_for_text(refusal: Refusal) -> Refusal:
    """Return a refusal; for an unknown element type, replace its remedy by the syntax that declares types."""
    return replace(refusal, remedy=TYPE_REMEDY) if refusal.code == UNKNOWN_ELEMENT_TYPE else refusal


def _standard_input() -> str:
    try:
        return typer.get_binary_stream("stdin").read().decode()
    except UnicodeDecodeError as error:
        remedy = "use opshift plan for a model file"
        raise InvalidModel(f"is not text: {error}", place=STDIN, remedy=remedy) from error
