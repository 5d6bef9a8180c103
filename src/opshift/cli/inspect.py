"""`opshift inspect`: what a model is made of."""

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

    Each operator is listed with the version that it resolves to under the model's opset imports. Exits
    with 1 if some nodes name no operator.
    """
    from opshift.cli.contents import contents_of
    from opshift.converter.files import read_model

    require_file(source)
    registry = registry_with(folders)
    with working(f"Reading {source}"), about(source):
        found = contents_of(read_model(source), registry)
    data = {"input": source, "size": source.stat().st_size, **found.as_dict(), "unresolved": found.unresolved}
    emit(form, data, lambda page: _write(page, source, found, registry))
    if found.unresolved:
        raise typer.Exit(FINDINGS)


def _write(page: Page, source: Path, found: Contents, registry: Registry) -> None:
    page.title(str(source))
    page.facts(
        {
            "size": f"{source.stat().st_size:,} bytes",
            "IR version": found.ir_version,
            "producer": found.producer or "not said",
            "nodes": _nodes(found.nodes),
            "initializers": f"{found.initializers:,}",
        }
    )
    page.heading("Opsets")
    columns = (Column("domain", style="cyan"), Column("opset", is_number=True), Column("came with"))
    page.table(columns, [(*each, _release(*each, registry)) for each in found.opsets.items()])
    _write_values(page, "Inputs", found.inputs)
    _write_values(page, "Outputs", found.outputs)
    if found.functions:
        page.heading("Functions")
        page.table((Column(""),), [(each,) for each in found.functions])
    page.heading("Operators")
    columns = (
        Column("nodes", is_number=True),
        Column("operator", style="cyan"),
        Column("note", style="yellow"),
    )
    page.table(columns, [(use.count, use.operator, _note(use)) for use in found.operators])
    if found.unresolved:
        page.blank()
        page.line(f"{counted(found.unresolved, 'node')} unresolved", style="bold red")


def _write_values(page: Page, title: str, values: tuple[Value, ...]) -> None:
    if values:
        page.heading(title)
        rows = [(each.name, each.type or "not said", each.shape or "not said") for each in values]
        page.table((NAME, Column("type"), Column("shape")), rows)


def _nodes(nodes: dict[str, int]) -> str:
    """`12: 10 in the graph, 2 in subgraphs`."""
    total, parts = sum(nodes.values()), {place: count for place, count in nodes.items() if count}
    if set(parts) <= {"graph"}:
        return f"{total:,}"
    told = [
        f"{count:,} {'in the graph' if place == 'graph' else f'in {place}'}" for place, count in parts.items()
    ]
    return f"{total:,}: {', '.join(told)}"


def _release(domain: str, opset: int, registry: Registry) -> str:
    """The first ONNX release that has the opset, and whether there is such an opset at all."""
    if domain not in registry.domains():
        return ""
    newest = registry.newest_opset(domain)
    if not 1 <= opset <= newest:
        return f"no such opset: the registry knows 1 to {newest}"
    known = registry.releases.onnx.items()
    return next((f"onnx-{name}" for name, each in known if each.opsets.get(domain, 0) >= opset), "")


def _note(use: Use) -> str:
    advice = f" ({use.remedy})" if use.remedy else ""
    return f"{'unresolved: ' if use.kind == 'unresolved' else ''}{use.reason}{advice}"
