"""Plans and conversions as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from opshift.cli.output import MAX_OPERATORS
from opshift.cli.page import Column, Page, number
from opshift.cli.refusal_text import write_refusals
from opshift.cli.verification_text import write_verification
from opshift.converter.recognition.result import Recognition
from opshift.converter.report import RESTORED_PREFIX, ChangeGroup, Report
from opshift.model.message_text import count_text, counted_labels
from opshift.model.operator_ids import DEFAULT_DOMAIN, short_label

if TYPE_CHECKING:
    from opshift.cli.conversion import ConvertedFile

NODES_COLUMN = number("nodes")

OPERATOR_COLUMN = Column("operator", "cyan")

MAX_GROUPS = 8
"""Maximum number of rows of changes, so that the plan of a small model fits one screen."""


def opsets_text(report: Report) -> str:
    """Format the changed opsets: `9 -> 17, ai.onnx.ml 1 -> 3`."""
    return ", ".join(
        f"{'' if each.domain == DEFAULT_DOMAIN else each.domain} {each.source} -> {each.target}".strip()
        for each in report.opsets
    )


def write_conversion(page: Page, converted: ConvertedFile) -> None:
    """Print the summary of a conversion."""
    source, out, report = converted.source, converted.out, converted.report
    page.line(f"{source} -> {out}" if source != out else str(source), style="bold")
    _write_summary(page, report, converted.imports)
    _write_changes(page, report)
    _write_allowances(page, report)
    if converted.verification:
        write_verification(page, converted.verification)
    if converted.note:
        page.blank()
        page.prose(converted.note)


def write_plan(page: Page, source: str, report: Report, imports: Mapping[str, int], explain: bool) -> None:
    """Print a plan: its changes or refusals; with `explain`, print all of both, and describe the steps."""
    page.line(str(source), style="bold")
    _write_summary(page, report, imports)
    if explain or not report.refusals:
        _write_changes(page, report, explain)
        _write_allowances(page, report)
    if report.refusals:
        write_refusals(page, report.refusal_groups(), explain=explain)
    else:
        page.blank()
        hint = " --explain describes the changes." if report.changed and not explain else ""
        page.line(f"All nodes can be converted.{hint}", style="green")


def _write_summary(page: Page, report: Report, imports: Mapping[str, int]) -> None:
    targets = {change.domain: change.target for change in report.opsets}
    facts = {
        domain: f"{opset}, removed"
        if domain in report.removed_imports
        else _step(opset, targets.get(domain, opset))
        for domain, opset in imports.items()
    }
    facts["IR version"] = "; ".join((_step(*report.ir_version), *report.ir_steps))
    if report.model_version:
        facts["model version"] = report.model_version
    facts["nodes"] = _nodes(report)
    if report.kept_operators and not report.refusals:
        facts["kept"] = counted_labels(list(report.kept_operators.items()), MAX_OPERATORS)
    if report.sizes:
        before, after = report.sizes
        facts["size"] = f"{before:,} -> {after:,} bytes"
    if report.constants and not report.refusals:
        facts["constants"] = f"{report.constants:,} added, {count_text(report.added_bytes, 'byte')}"
    page.facts(facts)
    for each in report.notes:
        page.prose(f"note: {each}")
    write_warnings(page, report.warnings)


def _write_changes(page: Page, report: Report, explain: bool = False) -> None:
    """Print the operators to replace with their numbers of nodes, and the functions that get copies."""
    groups = report.groups()
    shown = groups if explain else groups[:MAX_GROUPS]
    if groups:
        page.heading("Changes")
        rows = [_change_row(each, None if explain else MAX_OPERATORS) for each in shown]
        page.table((NODES_COLUMN, OPERATOR_COLUMN, Column("becomes", "green"), number("constants")), rows)
    if len(shown) < len(groups):
        nodes = count_text(sum(each.nodes[0] for each in groups[MAX_GROUPS:]), "node")
        page.prose(f"and {len(groups) - len(shown)} more ({nodes}); `opshift plan --explain` lists all")
    if report.recognized:
        page.heading("Recognized")
        recognized = Recognition(report.recognized).groups()
        columns = (NODES_COLUMN, Column("operator", "green"))
        page.table(
            columns, [(f"{nodes:,} -> {count:,}", short_label(name)) for name, count, nodes in recognized]
        )
    if explain and report.near_misses:
        page.heading("Not recognized")
        misses = Counter((short_label(each.operator), each.reason) for each in report.near_misses)
        page.table((number("count"), OPERATOR_COLUMN, "reason"), [(n, *each) for each, n in misses.items()])
    if explain:
        _write_steps(page, groups)
    if report.specialised:
        page.heading("Specialized functions")
        copies = [(each.function, ", ".join(each.copies)) for each in report.specialised]
        page.table((Column("function", "cyan"), Column("copies", "green")), copies)


def _change_row(group: ChangeGroup, most: int | None) -> tuple[str, str, str, str]:
    before, after = group.nodes
    nodes = f"{before:,}" if before == after else f"{before:,} -> {after:,}"
    becomes = counted_labels(group.becomes, most) or "nothing"
    if any(step.startswith(RESTORED_PREFIX) for step in group.steps):
        becomes += ", restored"
    return (
        nodes,
        _label(group.operator),
        becomes,
        f"{group.constant_bytes:,} B" if group.constant_bytes else "",
    )


def _write_steps(page: Page, groups: Sequence[ChangeGroup]) -> None:
    """Print the steps with a description, by operator."""
    by_operator: dict[str, dict[str, None]] = {}
    for group in groups:
        by_operator.setdefault(group.operator, {}).update(dict.fromkeys(group.steps))
    for operator, steps in by_operator.items():
        described = [each for each in steps if ": " in each]
        if described:
            page.heading(_label(operator))
        for each in described:
            versions, _, change = each.partition(": ")
            page.prose(f"{short_label(versions)}: {change}", indent=2)


def write_warnings(page: Page, warnings: Iterable[str]) -> None:
    """Print warnings, such as repairs that precede a conversion."""
    for each in warnings:
        page.blank()
        page.prose(f"warning: {each}", style="bold magenta")


def _write_allowances(page: Page, report: Report) -> None:
    """Print the allowed deviations: inexact rewrites and dropped content."""
    if report.concessions:
        page.heading("Allowed")
        columns = (NODES_COLUMN, Column("kind", "bold magenta"), "reason")
        page.table(columns, [(count, *each) for each, count in Counter(report.concessions).items()])


def _step(before: int, after: int) -> str:
    return f"{before} -> {after}" if before != after else f"{before}, unchanged"


def _nodes(report: Report) -> str:
    before, after = report.nodes
    counts = {"kept": report.kept, "changed": len(report.changed), "refused": len(report.refusals)}
    parts = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"{before:,}: {parts}" if report.refusals else f"{before:,} -> {after:,}: {parts}"


def _label(operators: str) -> str:
    """Return the short labels of operators: a restored node replaces several."""
    return counted_labels(list(Counter(operators.split(", ")).items()), None)
