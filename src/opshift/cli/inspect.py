"""`opshift inspect`: summary of a model."""

from collections.abc import Mapping
from dataclasses import asdict

import typer

from opshift.analysis.model_summary import ModelSummary, ValueSummary, summarize_model
from opshift.cli.errors import EXIT_FINDINGS, add_file_to_errors
from opshift.cli.options import (
    DefinitionsOption,
    Format,
    FormatOption,
    InputArgument,
    QuietOption,
    registry_with,
)
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page, number
from opshift.cli.paths import model_input, require_file
from opshift.cli.progress import show_progress
from opshift.model.files import read_bytes
from opshift.model.message_text import count_text
from opshift.model.operator_ids import short_label
from opshift.registry.registry import Registry
from opshift.stores.source_file import open_source

NAME_COLUMN = Column("name", "cyan")


def inspect(
    source: InputArgument,
    folders: DefinitionsOption = None,
    quiet: QuietOption = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show a model's opsets, operators, inputs and outputs.

    Each operator is listed with the version to which the model's opset imports resolve it. Exits with 1 if
    the operators of some nodes cannot be resolved.
    """
    from opshift.converter.streaming.weights import Weights

    source = require_file(source)
    registry = registry_with(folders)
    with (
        show_progress(f"Reading {source}", quiet=quiet or form is Format.JSON),
        add_file_to_errors(source),
        open_source(model_input(source)) as file,
        Weights(file) as weights,
    ):
        summary = summarize_model(read_bytes(weights.message(), file.place), registry)
    data = {"input": source, "size": file.size, **asdict(summary), "unresolved": summary.unresolved}
    print_result(form, data, lambda page: _write_summary(page, data, summary, registry))
    if summary.unresolved:
        raise typer.Exit(EXIT_FINDINGS)


def _write_summary(page: Page, data: Mapping[str, object], summary: ModelSummary, registry: Registry) -> None:
    page.title(str(data["input"]))
    optional = {"domain": summary.domain, "author": summary.author, "license": summary.license}
    page.facts(
        {
            "size": f"{data['size']:,} bytes",
            "IR version": summary.ir_version,
            "model version": summary.model_version,
            "producer": summary.producer or "unknown",
            **{name: text for name, text in optional.items() if text},
            "nodes": _node_counts_text(summary.nodes),
            "initializers": f"{summary.initializers:,}",
        }
    )
    page.heading("Opsets")
    opset_columns = (Column("domain", "cyan"), number("opset"), "introduced in")
    page.table(opset_columns, [(*each, _release_text(*each, registry)) for each in summary.opsets.items()])
    _write_values(page, "Inputs", summary.inputs)
    _write_values(page, "Outputs", summary.outputs)
    if summary.functions:
        page.heading("Functions")
        page.table(("",), [(each,) for each in summary.functions])
    page.heading("Operators")
    columns = (number("nodes"), Column("operator", "cyan"), Column("note", "bold magenta"))
    page.table(columns, [(use.count, short_label(use.operator), use.note) for use in summary.operators])
    if summary.unresolved:
        page.blank()
        page.line(f"{count_text(summary.unresolved, 'node')} unresolved", style="bold red")


def _write_values(page: Page, title: str, values: tuple[ValueSummary, ...]) -> None:
    if values:
        page.heading(title)
        rows = [(each.name, each.type or "unknown", each.shape or "unknown") for each in values]
        page.table((NAME_COLUMN, "type", "shape"), rows)


def _node_counts_text(nodes: dict[str, int]) -> str:
    """Format node counts, such as `12: 10 in the graph, 2 in subgraphs`."""
    total, parts = sum(nodes.values()), {place: count for place, count in nodes.items() if count}
    if set(parts) <= {"graph"}:
        return f"{total:,}"
    names = {"graph": "the graph"}
    texts = ", ".join(f"{count:,} in {names.get(place, place)}" for place, count in parts.items())
    return f"{total:,}: {texts}"


def _release_text(domain: str, opset: int, registry: Registry) -> str:
    """Return the first ONNX release with an opset; a remark for an unknown opset; empty for other domains."""
    if not registry.has_domain(domain):
        return ""
    newest = registry.newest_opset(domain)
    if not 1 <= opset <= newest:
        return f"unknown opset; the registry defines 1 to {newest}"
    releases = registry.releases.onnx.items()
    return next((f"onnx-{name}" for name, each in releases if each.opsets.get(domain, 0) >= opset), "")
