"""Page about a plan or a conversion: versions, cost, changes, refusals and verification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from opshift.analysis.pages.document import (
    Document,
    anchor,
    code_block,
    code_span,
    escape_line,
    limited_table,
    table,
)
from opshift.converter.refusals import RefusalGroup
from opshift.converter.report import ChangeGroup, Report

if TYPE_CHECKING:
    # for type checkers only: the site's page for conversions lacks this module
    from opshift.analysis.verification.result import (
        DifferenceLocation,
        InputUsed,
        OutputCompared,
        Verification,
    )


def conversion_page(
    report: Report,
    title: str = "Report of a conversion",
    verification: Verification | None = None,
    location: DifferenceLocation | None = None,
    result: str = "",
) -> Document:
    """Return the page; long tables are cut, with a note. `result` is the text of the converted model."""
    sections = {
        "Resulting model": [code_block(result) if result else ""],
        "Refusals": _refusals_section(report.refusal_groups()),
        "Versions": _versions_section(report),
        "Changes": changes_section(report),
        "Recognized": _recognized_section(report),
        "Allowed": _allowed_section(report),
        "Notes": [_list_text((*report.notes, *report.requested, *report.warnings, *report.ir_steps))],
        "Verification": _verification_section(verification, location) if verification else [],
        "Steps": _steps_section(report.groups()),
        "Changed nodes": _changed_nodes_section(report),
    }
    texts = {name: "\n\n".join(filter(None, parts)) for name, parts in sections.items()}
    listed = [name for name, text in texts.items() if text]
    parts = [f"# {escape_line(title)}", _verdict_text(report, verification)]
    parts.append("\n".join(f"* [{name}](#{anchor(name)})" for name in listed))
    for name in listed:
        parts += [f"## {name}", texts[name]]
    return Document("\n\n".join(parts) + "\n")


def _verdict_text(report: Report, verification: Verification | None) -> str:
    if report.refusals:
        return f"**Refused.** Nodes and features that cannot be converted: {len(report.refusals):,}."
    if verification is None:
        return f"Changed nodes: {len(report.changed):,}. Kept nodes: {report.kept:,}. No node is refused."
    if verification.equal:
        return f"Changed nodes: {len(report.changed):,}. **The outputs agree.**"
    return "**The outputs of the converted model differ.** Nothing was written."


def _versions_section(report: Report) -> Iterator[str]:
    pairs: dict[str, tuple[object, object]] = {
        each.domain: (each.source, each.target) for each in report.opsets
    }
    pairs["IR version"] = report.ir_version
    if report.model_version:
        pairs["model version"] = "", report.model_version
    # a refused conversion has no result to count
    pairs["nodes"] = report.nodes[0], "" if report.refusals else report.nodes[1]
    if report.sizes:
        pairs["bytes of the file"] = report.sizes
    rows = [
        (escape_line(name), _cell_text(before), _cell_text(after)) for name, (before, after) in pairs.items()
    ]
    yield table(("property", "before", "after"), rows)
    if report.constants and not report.refusals:
        yield f"Added constants: {report.constants:,}, in bytes: {report.added_bytes:,}."


def _cell_text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else escape_line(value)


def changes_section(report: Report) -> Iterator[str]:
    """Yield Markdown about replaced operators, specialized functions and kept operators."""
    rows = []
    for group in report.groups():
        before, after = (f"{each:,}" for each in group.nodes)
        becomes = _counts_text(group.becomes) or "nothing"
        rows.append((before, code_span(group.operator), after, becomes, f"{group.constant_bytes:,}"))
    yield from limited_table(("nodes", "operator", "nodes after", "becomes", "bytes of constants"), rows)
    copies = [
        (code_span(each.function), ", ".join(map(code_span, each.copies))) for each in report.specialised
    ]
    yield from limited_table(("specialized function", "copies"), copies)
    if report.kept_operators:
        yield f"Kept: {_counts_text(report.kept_operators.items())}."


def _counts_text(operators: Iterable[tuple[str, int]]) -> str:
    return ", ".join(
        f"{count:,} x {code_span(name)}" if count > 1 else code_span(name) for name, count in operators
    )


def _steps_section(groups: Sequence[ChangeGroup]) -> Iterator[str]:
    steps = dict.fromkeys(step.partition(": ") for group in groups for step in group.steps)
    rows = [(code_span(versions), escape_line(change)) for versions, _, change in steps if change]
    yield from limited_table(("step", "change"), rows)


def _changed_nodes_section(report: Report) -> Iterator[str]:
    rows = [
        (escape_line(each.place), code_span(each.operator), f"{len(each.becomes):,}")
        for each in report.changed
    ]
    yield from limited_table(("node", "operator", "nodes after"), rows)


def _refusals_section(groups: Sequence[RefusalGroup]) -> Iterator[str]:
    for group in groups:
        yield f"### {escape_line(group.title)} ({code_span(group.code)})"
        summary = escape_line(group.summary)
        yield f"{summary[:1].upper()}{summary[1:]}."
        yield f"What to do: {escape_line(group.remedy)}." if group.remedy else ""
        is_common = all(group.summary.startswith(each.reason) for each in group.refusals)
        rows = [
            (
                escape_line(each.place),
                code_span(each.operator),
                *([] if is_common else [escape_line(each.reason)]),
            )
            for each in group.refusals
        ]
        yield from limited_table(("node", "operator", "reason")[: 2 if is_common else 3], rows)


def _recognized_section(report: Report) -> Iterator[str]:
    rows = [
        (escape_line(each.place), code_span(each.operator), f"{each.nodes:,}", escape_line(each.rounding))
        for each in report.recognized
    ]
    yield from limited_table(("node", "operator", "nodes before", "difference in rounding"), rows)
    misses = [
        (escape_line(each.place), code_span(each.operator), escape_line(each.reason))
        for each in report.near_misses
    ]
    yield from limited_table(("node that remains", "operator", "reason"), misses)


def _allowed_section(report: Report) -> Iterator[str]:
    counts = Counter(report.allowances).items()
    rows = [(f"{count:,}", escape_line(kind), escape_line(reason)) for (kind, reason), count in counts]
    yield from limited_table(("nodes", "kind", "reason"), rows)


def _list_text(texts: Sequence[str]) -> str:
    return "\n".join(f"* {escape_line(each)}" for each in texts)


def _verification_section(verification: Verification, location: DifferenceLocation | None) -> Iterator[str]:
    yield from limited_table(
        ("output", "type", "elements", "largest difference", "allowed", "result"),
        [_output_row(each) for each in verification.outputs],
    )
    if location is not None:
        becomes = ", ".join(map(code_span, location.becomes)) or "an unchanged node"
        yield f"First node with a different value: {escape_line(location)}, which becomes {becomes}."
        yield _list_text((*location.steps, f"{location.value.name}: {location.value.reason}"))
    inputs = [
        (code_span(each.name), _type_text(each), "given" if each.given else "generated")
        for each in verification.inputs
    ]
    yield from limited_table(("input", "type", "values"), inputs)
    runtimes = " and ".join(dict.fromkeys(filter(None, verification.runtimes)))
    yield escape_line(f"Samples: {verification.samples}, run with {runtimes}.")
    if verification.nonfinite:
        yield f"Further samples with infinities and NaN: {verification.nonfinite}."
    yield _list_text([f"{each}: never executed, so not compared" for each in verification.unreached])


def _type_text(value: InputUsed | OutputCompared) -> str:
    return escape_line(value.type if value.shape is None else f"{value.type}{list(value.shape)}")


def _output_row(output: OutputCompared) -> tuple[str, ...]:
    worst = output.worst
    difference = "none"
    if worst is not None:
        place = f" at {worst.position}" if worst.position else ""
        difference = f"{worst.difference:.2g}{place}: {worst.original} -> {worst.converted}"
    allowed = "" if worst is None else f"{worst.allowed:.2g}"
    result = "equal" if output.equal else output.reason
    texts = map(escape_line, (difference, allowed, result))
    return code_span(output.name), _type_text(output), f"{output.count:,}", *texts
