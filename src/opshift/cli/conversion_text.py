"""Plans and conversions as text: versions, replaced operators and refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from opshift.cli.output import count_text
from opshift.cli.page import Column, Page
from opshift.converter.errors import Refusal
from opshift.converter.report import Report

NODES_COLUMN = Column("nodes", is_number=True)

OPERATOR_COLUMN = Column("operator", style="cyan")

REPLACEMENT_COLUMN = Column("becomes", style="green")

ALLOWANCE_COLUMNS = (NODES_COLUMN, Column("kind", style="yellow"), Column("reason"))

SPECIALIZATION_COLUMNS = (Column("function", style="cyan"), Column("copies", style="green"))

REFUSAL_COLUMNS = (Column(""), Column("", style="cyan"), Column(""))


def write_plan(page: Page, source: Path, report: Report, imports: Mapping[str, int]) -> None:
    """Print a plan."""
    page.line(str(source), style="bold")
    write_versions(page, report, imports, {})
    write_changes(page, report)
    write_allowances(page, report)
    if report.refusals:
        page.heading("Refusals")
        write_refusals(page, report.refusals)
    else:
        page.blank()
        page.line("All nodes can be converted.", style="green")


def write_versions(page: Page, report: Report, imports: Mapping[str, int], extra: Mapping[str, str]) -> None:
    """Print opset imports and IR version before and after, the number of nodes, and `extra` pairs."""
    targets = {change.domain: change.target for change in report.opsets}
    opsets = {domain: _step(opset, targets.get(domain, opset)) for domain, opset in imports.items()}
    ir_version = "; ".join((_step(*report.ir_version), *report.ir_steps))
    page.facts({**opsets, "IR version": ir_version, "nodes": _nodes(report), **extra})


def write_replacements(page: Page, report: Report) -> None:
    """Print the replaced operators with their replacements and numbers."""
    if report.changed:
        page.blank()
        rows = [
            (count, operator, _joined(replacements))
            for (operator, replacements), count in report.operators().most_common()
        ]
        page.table((NODES_COLUMN, OPERATOR_COLUMN, REPLACEMENT_COLUMN), rows)


def write_changes(page: Page, report: Report) -> None:
    """Print the operators to replace with their replacements, numbers and steps."""
    if report.changed:
        page.heading("Changes")
        groups = Counter((each.operator, each.becomes, each.steps) for each in report.changed)
        rows: list[tuple[object, ...]] = []
        for (operator, replacements, steps), count in groups.most_common():
            rows.append((count, operator, "becomes", _joined(replacements)))
            rows += [("", "", *_step_columns(step, operator)) for step in steps]
        page.table((NODES_COLUMN, OPERATOR_COLUMN, Column("", style="dim"), Column("")), rows)
    write_specializations(page, report)


def write_specializations(page: Page, report: Report) -> None:
    """Print the functions that get copies for some of their calls."""
    if report.specialised:
        page.heading("Specialized functions")
        page.table(
            SPECIALIZATION_COLUMNS, [(each.function, ", ".join(each.copies)) for each in report.specialised]
        )


def write_allowances(page: Page, report: Report) -> None:
    """Print the allowed deviations: inexact rewrites and dropped content."""
    if report.concessions:
        page.heading("Allowed")
        page.table(ALLOWANCE_COLUMNS, [(count, *each) for each, count in Counter(report.concessions).items()])


def write_refusals(page: Page, refusals: Sequence[Refusal], most: int | None = None) -> None:
    """Print the refused nodes, at most `most` of them, grouped by reason and remedy."""
    groups: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault((refusal.reason, refusal.remedy), []).append(refusal)
    remaining = len(refusals) if most is None else most
    for (reason, remedy), members in groups.items():
        if remaining <= 0:
            break
        page.blank()
        page.prose(reason, style="red")
        if remedy:
            page.prose(f"help: {remedy}", indent=2)
        page.table(REFUSAL_COLUMNS, [("", each.operator, each.place) for each in members[:remaining]])
        remaining -= len(members)
    shown = min(len(refusals), len(refusals) if most is None else most)
    if shown < len(refusals):
        page.blank()
        page.line(f"... and {len(refusals) - shown} more nodes; `opshift plan` lists all")


def _step(before: int, after: int) -> str:
    return f"{before} -> {after}" if before != after else f"{before}, unchanged"


def _nodes(report: Report) -> str:
    parts = [f"{report.kept:,} kept", f"{len(report.changed):,} changed"]
    if report.refusals:
        parts.append(f"{len(report.refusals):,} refused")
    if report.constants:
        parts.append(f"{count_text(report.constants, 'constant')} added")
    return ", ".join(parts)


def _joined(operators: Sequence[str]) -> str:
    """Join operators and count repeated ones: `a, 2 x b` for a, b, b."""
    parts: list[tuple[str, int]] = []
    for each in operators:
        if parts and parts[-1][0] == each:
            parts[-1] = (each, parts[-1][1] + 1)
        else:
            parts.append((each, 1))
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in parts) or "nothing"


def _step_columns(step: str, operator: str) -> tuple[str, str]:
    """Split a step into `6 -> 11` and its change; the name of another operator is kept."""
    versions, _, change = step.partition(": ")
    name = operator.rpartition(":")[0]
    return versions.removeprefix(f"{name}:"), change
