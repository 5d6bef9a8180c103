"""`opshift inspect`: summary of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from opshift.cli.failing import FINDINGS, about
from opshift.cli.options import FoldersOption, Format, FormatOption, InputArgument, registry_with
from opshift.cli.output import Column, counted, emit, working
from opshift.cli.places import require_file

if TYPE_CHECKING:
    from opshift.cli.contents import Contents, Value
    from opshift.cli.counting import Use
    from opshift.cli.page import Page
    from opshift.registry.catalogue import Registry

NAME = Column("name", style="cyan")


def inspect(source: InputArgument, folders: FoldersOption = None, form: FormatOption = Format.TEXT) -> None:
    """Show a model's opsets, operators, inputs and outputs.

    Each operator is listed with the version to which the model's opset imports resolve it. Exits with 1 if
    the operators of some nodes cannot be resolved.
    """
    from opshift.cli.contents import contents_of
    from opshift.converter.files import read_model

    require_file(source)
    registry = registry_with(folders)
    with working(f"Reading {source}"), about(source):
        summary = contents_of(read_model(source), registry)
    data = {
        "input": source,
        "size": source.stat().st_size,
        **summary.as_dict(),
        "unresolved": summary.unresolved,
    }
    emit(form, data, lambda page: _write(page, source, summary, registry))
    if summary.unresolved:
        raise typer.Exit(FINDINGS)


def _write(page: Page, source: Path, summary: Contents, registry: Registry) -> None:
    page.title(str(source))
    page.facts(
        {
            "size": f"{source.stat().st_size:,} bytes",
            "IR version": summary.ir_version,
            "producer": summary.producer or "unknown",
            "nodes": _nodes(summary.nodes),
            "initializers": f"{summary.initializers:,}",
        }
    )
    page.heading("Opsets")
    columns = (Column("domain", style="cyan"), Column("opset", is_number=True), Column("introduced in"))
    page.table(columns, [(*each, _release(*each, registry)) for each in summary.opsets.items()])
    _write_values(page, "Inputs", summary.inputs)
    _write_values(page, "Outputs", summary.outputs)
    if summary.functions:
        page.heading("Functions")
        page.table((Column(""),), [(each,) for each in summary.functions])
    page.heading("Operators")
    columns = (
        Column("nodes", is_number=True),
        Column("operator", style="cyan"),
        Column("note", style="yellow"),
    )
    page.table(columns, [(use.count, use.operator, _note(use)) for use in summary.operators])
    if summary.unresolved:
        page.blank()
        page.line(f"{counted(summary.unresolved, 'node')} unresolved", style="bold red")


def _write_values(page: Page, title: str, values: tuple[Value, ...]) -> None:
    if values:
        page.heading(title)
        rows = [(each.name, each.type or "unknown", each.shape or "unknown") for each in values]
        page.table((NAME, Column("type"), Column("shape")), rows)


def _nodes(nodes: dict[str, int]) -> str:
    """Format node counts: `12: 10 in the graph, 2 in subgraphs`."""
    total, parts = sum(nodes.values()), {place: count for place, count in nodes.items() if count}
    if set(parts) <= {"graph"}:
        return f"{total:,}"
    texts = [
        f"{count:,} {'in the graph' if place == 'graph' else f'in {place}'}" for place, count in parts.items()
    ]
    return f"{total:,}: {', '.join(texts)}"


def _release(domain: str, opset: int, registry: Registry) -> str:
    """Return the first ONNX release with an opset, or a remark if the registry does not define the opset."""
    if domain not in registry.domains():
        return ""
    newest = registry.newest_opset(domain)
    if not 1 <= opset <= newest:
        return f"unknown opset; the registry defines 1 to {newest}"
    releases = registry.releases.onnx.items()
    return next((f"onnx-{name}" for name, each in releases if each.opsets.get(domain, 0) >= opset), "")


def _note(use: Use) -> str:
    advice = f" ({use.remedy})" if use.remedy else ""
    return f"{'unresolved: ' if use.kind == 'unresolved' else ''}{use.reason}{advice}"
