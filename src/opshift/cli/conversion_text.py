"""Print plans, conversions, refusals, missing kernels and verifications as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from opshift.cli.output import MAX_OPERATORS
from opshift.cli.page import Column, Page, number
from opshift.converter.recognition.result import Recognition
from opshift.converter.refusals import Refusal, RefusalGroup
from opshift.converter.report import RESTORED_PREFIX, ChangeGroup, Report
from opshift.model.message_text import count_text, counted_labels
from opshift.model.operator_ids import DEFAULT_DOMAIN, short_label
from opshift.model.plain_data import Json
from opshift.model.types import short_type

if TYPE_CHECKING:
    from opshift.analysis.verification.result import (
        DifferenceLocation,
        InputUsed,
        OutputCompared,
        Verification,
    )
    from opshift.cli.conversion import ConvertedFile
    from opshift.runtimes.check_support import UnsupportedGroup


QUOTED_NAMES = re.compile(r"'[^']*'(?:, '[^']*')*")

MAX_CAUSES = 10
"""Maximum number of printed causes of refusals or missing kernels; `--explain` prints all."""

MAX_NODES = 2
"""Maximum number of printed nodes per cause."""


def write_refusals(page: Page, groups: Sequence[RefusalGroup], *, explain: bool = False) -> None:
    """Print the first causes with remedies and a few nodes; with `explain`, print all causes and nodes."""
    shown = groups if explain else groups[:MAX_CAUSES]
    for group in shown:
        page.blank()
        page.prose(f"{group.code}: {group.summary}", style="red")
        if group.remedy:
            page.prose(f"help: {group.remedy}", indent=2)
        _write_nodes(page, group, None if explain else MAX_NODES)
    if len(shown) < len(groups):
        page.blank()
        page.prose(f"and {len(groups) - len(shown):,} more causes; `--format json` lists all")


def write_missing(page: Page, missing: Sequence[UnsupportedGroup]) -> None:
    """Print the first reasons why a runtime does not run a model, each with a few nodes."""
    for each in missing[:MAX_CAUSES]:
        page.blank()
        page.prose(each.reason, style="red")
        if each.remedy:
            page.prose(f"help: {each.remedy}", indent=2)
        rows = [("", short_label(each.operator), place) for place in each.places[:MAX_NODES]]
        page.table(("", Column("", "cyan"), ""), rows)
        if len(rows) < len(each.places):
            page.line(f"  and {len(each.places) - len(rows):,} more")
    if missing[MAX_CAUSES:]:
        page.blank()
        page.prose(f"and {len(missing) - MAX_CAUSES:,} more causes; `--format json` lists all")


def _write_nodes(page: Page, group: RefusalGroup, most: int | None) -> None:
    """Print the first `most` refused nodes, each below its reason: reasons are too long for a column."""
    members = group.refusals
    shown = sorted(members[:most], key=lambda each: _reason_detail(each, group))
    for detail, refusals in groupby(shown, lambda each: _reason_detail(each, group)):
        nodes = list(refusals)
        reasons = {each.reason for each in nodes}
        if detail:
            page.prose(detail if len(reasons) > 1 else reasons.pop(), indent=2)
        page.table(
            ("", Column("", "cyan"), ""), [("", short_label(each.operator), each.place) for each in nodes]
        )
    if len(shown) < len(members):
        page.line(f"  and {len(members) - len(shown):,} more")


def _reason_detail(refusal: Refusal, group: RefusalGroup) -> str:
    """Return the reason with quoted names replaced by '...'; empty if the group's summary contains it."""
    is_known = len(group.refusals) == 1 or refusal.subject in refusal.reason
    return "" if is_known else QUOTED_NAMES.sub("'...'", refusal.reason)


OUTPUT_COLUMNS = (Column("output", "cyan"), "type and shape", number("beyond tolerance"), "result")

ELEMENT_COLUMNS = (
    Column("output", "cyan"),
    "element",
    number("before"),
    number("after"),
    number("difference"),
    number("relative"),
    number("allowed"),
)

MAX_OUTPUTS, MAX_ELEMENTS, MAX_INPUTS = 10, 5, 4
"""Maximum numbers of outputs, of largest differences, and of inputs that are printed."""


def write_location(page: Page, location: DifferenceLocation) -> None:
    """Print the first node with a different value, the steps that changed the node, and the value."""
    page.heading("First different value")
    value, worst = location.value, location.value.worst
    counts = Counter(location.becomes).most_common()
    becomes = counted_labels(counts, MAX_OPERATORS) or "the same operator, with different results"
    facts = [("node", location.place)]
    facts += [("executed by", each) for each in reversed(location.enclosing)]
    facts.append(("operator", f"{short_label(location.operator)} becomes {becomes}"))
    # Print only the first sentence of each step of this operator; JSON contains the rest.
    steps = [each for each in location.steps if each.startswith(location.operator.partition(":")[0] + ":")]
    facts += [("step", each.partition(". ")[0]) for each in steps or location.steps[:1]]
    if worst is None:
        facts.append(("value", f"{value.name}, {_type_text(value)}: {value.reason}"))
    else:
        extent = "within the tolerance" if value.equal else f"{_beyond_text(value)} elements differ"
        facts.append(("value", f"{value.name}, {_type_text(value)}: {extent}"))
        difference = f"difference {worst.difference:.3g}, allowed {worst.allowed:.3g}"
        became = f"{_element_text(worst.original)} became {_element_text(worst.converted)}"
        facts.append(("largest", f"{became} at {worst.position or '[]'}, {difference}"))
    if location.exceeded_at:
        facts.append(("exceeded", f"the difference grows beyond the tolerance at {location.exceeded_at}"))
    page.table(("", ""), facts)


def write_verification(page: Page, verification: Verification) -> None:
    """Print the compared outputs, different ones first, then the inputs and the runtimes."""
    outputs = sorted(verification.outputs, key=lambda each: each.equal)
    page.heading("Comparison of outputs")
    page.table(OUTPUT_COLUMNS, map(_output_row, outputs[:MAX_OUTPUTS]))
    _write_rest(page, len(outputs) - MAX_OUTPUTS)
    # Outputs that differ are first: if there are any, omit the differences of equal outputs.
    measured = [each for each in outputs if each.worst and each.equal == outputs[0].equal]
    if measured:
        page.heading("Largest differences")
        page.table(ELEMENT_COLUMNS, map(_element_row, measured[:MAX_ELEMENTS]))
        _write_rest(page, len(measured) - MAX_ELEMENTS)
    page.blank()
    for each in outputs[:MAX_OUTPUTS]:
        if each.reason and not each.worst:
            page.prose(f"{each.name}: {each.reason}")
    inputs = list(map(_input_text, verification.inputs[:MAX_INPUTS])) or ["no inputs"]
    if verification.inputs[MAX_INPUTS:]:
        inputs.append(f"and {count_text(len(verification.inputs) - MAX_INPUTS, 'more input')}")
    page.prose(f"{count_text(verification.samples, 'sample')} of {', '.join(inputs)}")
    if verification.nonfinite:
        page.line(f"{count_text(verification.nonfinite, 'sample')} with infinities and NaN")
    for branch in verification.unreached:
        page.prose(f"{branch}: never executed, so not compared (provide --inputs)")
    runtimes = " and ".join(dict.fromkeys(filter(None, verification.runtimes)))
    page.line(f"run with {runtimes}")


def _write_rest(page: Page, count: int) -> None:
    if count > 0:
        page.line(f"... and {count_text(count, 'more output')}; `--format json` lists all")


def _output_row(output: OutputCompared) -> tuple[object, ...]:
    finite = "" if output.finite == output.count else f" ({output.finite:,} finite)"
    beyond = _beyond_text(output) + finite if output.equal or output.worst else ""
    return output.name, _type_text(output), beyond, "equal" if output.equal else "different"


def _element_row(output: OutputCompared) -> tuple[object, ...]:
    worst = output.worst
    assert worst is not None
    # Near 0, the ratio is meaningless if the absolute tolerance covers the difference.
    before = abs(worst.original) if isinstance(worst.original, int | float) else 0
    is_covered = output.equal and worst.difference <= worst.allowed - output.tolerance.relative * before
    return (
        output.name,
        worst.position,
        _element_text(worst.original),
        _element_text(worst.converted),
        f"{worst.difference:.2g}",
        f"{worst.difference / before:.2g}" if before and not is_covered else "",
        f"{worst.allowed:.2g}",
    )


def _element_text(element: Json) -> str:
    # nine significant digits distinguish all float32 values
    return f"{element:.9g}" if isinstance(element, float) else str(element)


def _type_text(output: OutputCompared) -> str:
    return output.type if output.shape is None else f"{output.type}[{', '.join(map(str, output.shape))}]"


def _beyond_text(output: OutputCompared) -> str:
    return f"{output.differing:,} of {output.count:,}"


def _input_text(used: InputUsed) -> str:
    source = "given" if used.given else "generated"
    shape = "" if used.shape is None else f"[{', '.join(map(str, used.shape))}]"
    return f"{used.name} {short_type(used.type)}{shape} ({source})"


NODES_COLUMN = number("nodes")

OPERATOR_COLUMN = Column("operator", "cyan")

MAX_GROUPS = 8
"""Maximum number of rows of changes, so that the plan of a small model fits one screen."""


def opsets_text(report: Report) -> str:
    """Format the changed opsets, such as `9 -> 17, ai.onnx.ml 1 -> 3`."""
    return ", ".join(
        f"{'' if each.domain == DEFAULT_DOMAIN else each.domain} {each.source} -> {each.target}".strip()
        for each in report.opsets
    )


def write_conversion(page: Page, converted: ConvertedFile) -> None:
    """Print the summary, the changes and the comparison of outputs of a conversion."""
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
    """Print refusals of a plan, or its changes if nothing is refused; with `explain`, both, and the steps."""
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
        else _step_text(opset, targets.get(domain, opset))
        for domain, opset in imports.items()
    }
    facts["IR version"] = "; ".join((_step_text(*report.ir_version), *report.ir_steps))
    if report.model_version:
        facts["model version"] = report.model_version
    facts["nodes"] = _nodes_text(report)
    if report.kept_operators and not report.refusals:
        facts["kept"] = counted_labels(list(report.kept_operators.items()), MAX_OPERATORS)
    if report.sizes:
        before, after = report.sizes
        facts["size"] = f"{before:,} -> {after:,} bytes"
    if report.constants and not report.refusals:
        facts["constants"] = f"{report.constants:,} added, {count_text(report.added_bytes, 'byte')}"
    page.facts(facts)
    for each in (*report.notes, *report.requested):
        page.prose(f"note: {each}")
    write_warnings(page, report.warnings)


def _write_changes(page: Page, report: Report, explain: bool = False) -> None:
    """Print changed and recognized operators and specialized functions; with `explain`, all, and steps."""
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
        _short_labels(group.operator),
        becomes,
        f"{group.constant_bytes:,} B" if group.constant_bytes else "",
    )


def _write_steps(page: Page, groups: Sequence[ChangeGroup]) -> None:
    """Print the conversion steps that have a description, grouped by operator."""
    by_operator: dict[str, dict[str, None]] = {}
    for group in groups:
        by_operator.setdefault(group.operator, {}).update(dict.fromkeys(group.steps))
    for operator, steps in by_operator.items():
        described = [each for each in steps if ": " in each]
        if described:
            page.heading(_short_labels(operator))
        for each in described:
            versions, _, change = each.partition(": ")
            page.prose(f"{short_label(versions)}: {change}", indent=2)


def write_warnings(page: Page, warnings: Iterable[str]) -> None:
    """Print warnings, such as repairs that precede a conversion."""
    for each in warnings:
        page.blank()
        page.prose(f"warning: {each}", style="bold magenta")


def _write_allowances(page: Page, report: Report) -> None:
    """Print each use of a kind that `--allow` permits, such as `approximate`, with the number of nodes."""
    if report.allowances:
        page.heading("Allowed")
        columns = (NODES_COLUMN, Column("kind", "bold magenta"), "reason")
        page.table(columns, [(count, *each) for each, count in Counter(report.allowances).items()])


def _step_text(before: int, after: int) -> str:
    return f"{before} -> {after}" if before != after else f"{before}, unchanged"


def _nodes_text(report: Report) -> str:
    before, after = report.nodes
    counts = {"kept": report.kept, "changed": len(report.changed), "refused": len(report.refusals)}
    parts = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"{before:,}: {parts}" if report.refusals else f"{before:,} -> {after:,}: {parts}"


def _short_labels(operators: str) -> str:
    """Return the short labels of a comma-separated list of operators: a restored node replaces several."""
    return counted_labels(list(Counter(operators.split(", ")).items()), None)
