"""Plans, conversions and verifications as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from opshift.cli.output import count_text
from opshift.cli.page import Column, Page, number
from opshift.converter.errors import Refusal
from opshift.converter.report import Report

if TYPE_CHECKING:
    from opshift.analysis.verification.result import InputUsed, OutputCompared, Verification
    from opshift.cli.conversion import ConvertedFile

NODES_COLUMN = number("nodes")

OPERATOR_COLUMN = Column("operator", "cyan")

OUTPUT_COLUMNS = (
    Column("output", "cyan"),
    "type",
    "shape",
    number("elements"),
    number("max difference"),
    number("relative"),
    number("allowed"),
    "result",
)


def write_conversion(page: Page, converted: ConvertedFile) -> None:
    """Print the summary of a conversion."""
    source, out, report = converted.source, converted.out, converted.report
    before, after = converted.sizes
    page.line(f"{source} -> {out}" if source != out else str(source), style="bold")
    _write_versions(page, report, converted.imports, {"size": f"{before:,} -> {after:,} bytes"})
    write_warnings(page, (*report.unreleased, *report.repairs))
    if report.changed:
        page.blank()
        counts = report.operators().most_common()
        columns = (NODES_COLUMN, OPERATOR_COLUMN, Column("becomes", "green"))
        page.table(columns, [(count, operator, _joined(new)) for (operator, new), count in counts])
    _write_allowances(page, report)
    if converted.verification:
        write_verification(page, converted.verification)
    if converted.note:
        page.blank()
        page.prose(converted.note)


def write_plan(page: Page, source: Path, report: Report, imports: Mapping[str, int]) -> None:
    """Print a plan."""
    page.line(str(source), style="bold")
    _write_versions(page, report, imports, {})
    write_warnings(page, (*report.unreleased, *report.repairs))
    _write_changes(page, report)
    _write_allowances(page, report)
    if report.refusals:
        page.heading("Refusals")
        write_refusals(page, report.refusals)
    else:
        page.blank()
        page.line("All nodes can be converted.", style="green")


def _write_versions(page: Page, report: Report, imports: Mapping[str, int], extra: Mapping[str, str]) -> None:
    targets = {change.domain: change.target for change in report.opsets}
    opsets = {domain: _step(opset, targets.get(domain, opset)) for domain, opset in imports.items()}
    ir_version = "; ".join((_step(*report.ir_version), *report.ir_steps))
    bumped = {"model version": report.model_version} if report.model_version else {}
    page.facts({**opsets, "IR version": ir_version, **bumped, "nodes": _nodes(report), **extra})


def _write_changes(page: Page, report: Report) -> None:
    """Print the operators to replace, with numbers and steps, and the functions that get copies."""
    if report.changed:
        page.heading("Changes")
        groups = Counter((each.operator, each.becomes, each.steps) for each in report.changed)
        rows: list[tuple[object, ...]] = []
        for (operator, replacements, steps), count in groups.most_common():
            rows.append((count, operator, "becomes", _joined(replacements)))
            rows += [("", "", *_step_columns(step, operator)) for step in steps]
        page.table((NODES_COLUMN, OPERATOR_COLUMN, Column("", "dim"), ""), rows)
    if report.specialised:
        page.heading("Specialized functions")
        columns = (Column("function", "cyan"), Column("copies", "green"))
        page.table(columns, [(each.function, ", ".join(each.copies)) for each in report.specialised])


def write_warnings(page: Page, warnings: Iterable[str]) -> None:
    """Print warnings, such as repairs that precede a conversion."""
    for each in warnings:
        page.blank()
        page.prose(f"warning: {each}", style="yellow")


def _write_allowances(page: Page, report: Report) -> None:
    """Print the allowed deviations: inexact rewrites and dropped content."""
    if report.concessions:
        page.heading("Allowed")
        columns = (NODES_COLUMN, Column("kind", "yellow"), "reason")
        page.table(columns, [(count, *each) for each, count in Counter(report.concessions).items()])


def write_refusals(page: Page, refusals: Sequence[Refusal], most: int | None = None) -> None:
    """Print the refused nodes, at most `most` of them, grouped by reason and remedy."""
    shown = refusals[:most]
    groups: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in shown:
        groups.setdefault((refusal.reason, refusal.remedy), []).append(refusal)
    columns = ("", Column("", "cyan"), "")
    for (reason, remedy), members in groups.items():
        page.blank()
        page.prose(reason, style="red")
        if remedy:
            page.prose(f"help: {remedy}", indent=2)
        page.table(columns, [("", each.operator, each.place) for each in members])
    if len(shown) < len(refusals):
        page.blank()
        page.line(f"... and {len(refusals) - len(shown)} more nodes; `opshift plan` lists all")


def write_verification(page: Page, verification: Verification) -> None:
    """Print the differences of the outputs, the inputs and the runtimes."""
    page.heading("Comparison of outputs")
    if verification.outputs:
        page.table(OUTPUT_COLUMNS, map(_output_row, verification.outputs))
    inputs = ", ".join(map(_input, verification.inputs)) or "no inputs"
    page.line(f"{count_text(verification.samples, 'sample')} of {inputs}", style="dim")
    page.line(f"run with {' and '.join(dict.fromkeys(filter(None, verification.runtimes)))}", style="dim")


def _output_row(output: OutputCompared) -> tuple[object, ...]:
    finite = "" if output.finite == output.count else f" ({output.finite:,} finite)"
    tolerance = output.tolerance
    return (
        output.name,
        output.type,
        _shape(output.shape),
        f"{output.count:,}{finite}",
        f"{output.absolute:.2g}",
        f"{output.relative:.2g}",
        f"{tolerance.absolute:g} + {tolerance.relative:g} relative" if tolerance.relative else "none",
        "equal" if output.equal else output.reason,
    )


def _input(used: InputUsed) -> str:
    source = "given" if used.given else "generated"
    return f"{used.name} {used.type}{_shape(used.shape)} ({source})"


def _shape(shape: tuple[int, ...] | None) -> str:
    return "" if shape is None else f"[{', '.join(map(str, shape))}]"


def _step(before: int, after: int) -> str:
    return f"{before} -> {after}" if before != after else f"{before}, unchanged"


def _nodes(report: Report) -> str:
    parts = [f"{report.kept:,} kept", f"{len(report.changed):,} changed"]
    if report.refusals:
        parts.append(f"{len(report.refusals):,} refused")
    if report.added_nodes > 0:
        parts.append(f"{report.added_nodes:,} more")
    if report.constants:
        parts.append(f"{count_text(report.constants, 'constant')} of {report.added_bytes:,} bytes added")
    return ", ".join(parts)


def _joined(operators: Sequence[str]) -> str:
    """Join operators and count repeated ones: `a, 2 x b` for a, b, b."""
    parts = [(name, len(list(group))) for name, group in groupby(operators)]
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in parts) or "nothing"


def _step_columns(step: str, operator: str) -> tuple[str, str]:
    """Split a step into `6 -> 11` and its change; omit the name unless the step changes the operator."""
    versions, _, change = step.partition(": ")
    name = operator.rpartition(":")[0]
    return versions.removeprefix(f"{name}:"), change
