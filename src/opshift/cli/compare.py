"""`opshift compare`: report the changes between two versions of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from opshift.analysis.verification.result import VerificationFailed
from opshift.cli import options
from opshift.cli.errors import EXIT_FINDINGS
from opshift.cli.options import Format, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page
from opshift.cli.paths import model_input, require_file
from opshift.cli.progress import show_progress

if TYPE_CHECKING:
    from opshift.analysis.comparison.compare import Comparison
    from opshift.model.files import FileLike
    from opshift.registry.registry import Registry

CHANGE_COLUMNS = (
    Column("requires", "bold magenta"),
    Column("rule", "cyan"),
    "place",
    "change",
    "reason",
)


def compare(
    old: options.OldModelArgument,
    new: options.NewModelArgument,
    same_meaning: Annotated[
        bool,
        typer.Option(
            "--same-meaning",
            help="State that outputs mean the same, although operators changed: a higher MINOR version is "
            "enough.",
        ),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="If operators changed, run both models on the same inputs: with equal outputs, a higher "
            "MINOR version is enough.",
        ),
    ] = False,
    folders: options.DefinitionsOption = None,
    quiet: options.QuietOption = False,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """Show what changed between two versions of a model.

    Also checks model_version: breaking changes of inputs, outputs and computations require a higher MAJOR
    version, other changes that callers notice a higher MINOR version, all others a higher PATCH
    version. Exits with 1 if the version was not increased enough.
    """
    from opshift.analysis.comparison.compare import compare as compare_models

    old, new = require_file(old), require_file(new)
    with show_progress(f"Comparing {old} and {new}", quiet=quiet or form is Format.JSON):
        registry = registry_with(folders)
        result = compare_models(
            model_input(old), model_input(new), same_meaning=same_meaning, registry=registry
        )
        is_run = verify and _may_differ(result)
        failure = _difference_of_outputs(model_input(old), model_input(new), registry) if is_run else ""
        if verify and not failure:
            result = result.with_same_meaning()
    data = {"old": old, "new": new, **result.as_dict()}
    if verify:
        data["difference"] = failure
    print_result(form, data, lambda page: _write_comparison(page, data, result))
    if not result.enough:
        raise typer.Exit(EXIT_FINDINGS)


def _may_differ(result: Comparison) -> bool:
    return any(each.rule == "OPERATORS_CHANGED" for each in result.changes)


def _difference_of_outputs(old: FileLike, new: FileLike, registry: Registry) -> str:
    """Run two models on the same inputs, and return how the outputs differ; empty if they agree."""
    from opshift.analysis.verification.verify import verify

    try:
        verify(old, new, registry=registry)
    except VerificationFailed as error:
        return error.reason
    return ""


def _write_comparison(page: Page, data: Mapping[str, object], result: Comparison) -> None:
    page.line(f"{data['old']} -> {data['new']}", style="bold")
    change = f"{data['risen']} increment" if result.risen else "unchanged"
    versions = f"{data['old_version']} -> {data['new_version']}"
    page.facts(
        {
            "version": f"{versions}, {'decreased' if result.risen is None else change}",
            "required increment": data["required"] if result.required else "none",
        }
    )
    if result.changes:
        page.blank()
        rows = []
        for each in result.changes:
            fields = each.as_dict()
            difference = " -> ".join(filter(None, (each.before, each.after)))
            rows.append((fields["rise"], each.rule, each.place, difference, fields["why"]))
        page.table(CHANGE_COLUMNS, rows)
    if data.get("difference"):
        page.blank()
        page.prose(f"--verify: {data['difference']}")
    page.blank()
    if result.enough:
        page.line("The version increment is sufficient.", style="green")
    else:
        page.line(f"The version must be {result.lowest} or higher.", style="red")
