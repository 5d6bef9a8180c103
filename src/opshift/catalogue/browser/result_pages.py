"""Markdown pages with results of commands, and advice on refused conversions.

The advice names controls of the page instead of command-line options, and offers other conversions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypedDict

from opshift.analysis.model_summary import ModelSummary, ValueSummary
from opshift.analysis.pages.conversion_page import changes_section
from opshift.analysis.pages.document import Document, code_block, code_span, escape_line, limited_table, table
from opshift.analysis.reach import Reach
from opshift.analysis.runs import Runs, RuntimeResult, group_releases
from opshift.checker.findings import Finding
from opshift.converter.refusals import Refusal
from opshift.model.errors import OpshiftError
from opshift.model.operator_ids import DEFAULT_DOMAIN, short_label
from opshift.runtimes.check_support import UnsupportedGroup
from opshift.runtimes.verdicts import AFTER_CONVERSION, DOES_NOT_RUN, MAY_RUN, RUNS

if TYPE_CHECKING:
    from opshift.analysis.comparison.compare import Comparison
    from opshift.analysis.fit.result import DoesNotFit, FitReport


VERDICT_WORDS: Final = {
    RUNS: "run the unchanged model",
    MAY_RUN: "may run the model",
    AFTER_CONVERSION: "run the model after a conversion",
    DOES_NOT_RUN: "do not run the model",
}


def error_page(error: OpshiftError) -> Document:
    """Return the page about an error: the problem, its place and what to do."""
    remedy = f"What to do: {escape_line(error.remedy)}." if error.remedy else ""
    place = f"Place: {escape_line(error.place)}." if str(error.place) else ""
    return _page_of("Not possible", f"**{escape_line(error.reason)}.**", place, remedy)


def summary_page(name: str, size: int, summary: ModelSummary) -> Document:
    """Return the page about the content of a model."""
    facts = {
        "bytes": f"{size:,}",
        "IR version": summary.ir_version,
        "model version": summary.model_version,
        "producer": summary.producer,
        "nodes": f"{sum(summary.nodes.values()):,}",
        "initializers": f"{summary.initializers:,}",
        **{f"opset of {domain}": opset for domain, opset in summary.opsets.items()},
    }
    rows = [(escape_line(key), escape_line(value)) for key, value in facts.items()]
    uses = [
        (f"{each.count:,}", code_span(short_label(each.operator)), escape_line(each.note))
        for each in summary.operators
    ]
    functions = ", ".join(map(code_span, summary.functions))
    return _page_of(
        name,
        table(("property", "value"), rows),
        *_values_section("Inputs", summary.inputs),
        *_values_section("Outputs", summary.outputs),
        f"Functions: {functions}." if functions else "",
        "## Operators",
        *limited_table(("nodes", "operator", "note"), uses),
    )


def _values_section(title: str, values: Sequence[ValueSummary]) -> list[str]:
    rows = [(code_span(each.name), code_span(each.type), code_span(each.shape)) for each in values]
    return [f"## {title}", *limited_table(("name", "type", "shape"), rows)] if rows else []


def findings_page(name: str, findings: Sequence[Finding]) -> Document:
    """Return the page with the findings of a check."""
    rows = [
        (
            each.level.value,
            escape_line(each.place),
            escape_line(each.reason),
            escape_line(each.remedy),
            code_span(each.rule),
        )
        for each in findings
    ]
    verdict = f"Findings: {len(rows):,}." if rows else "No findings: the model follows all rules."
    heads = ("level", "place", "finding", "what to do", "rule")
    return _page_of(name, f"**{verdict}**", *limited_table(heads, rows))


def reach_page(name: str, found: Reach) -> Document:
    """Return the page about the opsets that a model can be converted to."""
    bounds = "No opset" if found.is_empty else f"From opset {found.lowest} to opset {found.highest}"
    parts = [f"**{bounds} of {escape_line(found.domain)}.** The model has opset {found.opset}."]
    for limit in found.limits:
        for group in limit.groups:
            parts += [
                f"## Opset {limit.opset}: {escape_line(group.title)}",
                f"{escape_line(group.summary)}.",
                f"What to do: {escape_line(group.remedy)}." if group.remedy else "",
            ]
            rows = [(escape_line(each.place), escape_line(each.reason)) for each in group.refusals]
            parts += limited_table(("node", "reason"), rows)
    return _page_of(name, *parts)


def runs_page(name: str, found: Runs) -> Document:
    """Return the page about the runtimes that run a model."""
    rows = [(code_span(name), *cells) for name, cells in group_releases(found.results, _runs_cells)]
    counts = Counter(each.verdict for each in found.results)
    heads = ("runtime", "verdict", "opsets to convert to", "reasons and notes")
    stated = ", ".join(f"{words}: {counts[verdict]:,}" for verdict, words in VERDICT_WORDS.items())
    verdict = f"**Of {len(found.results):,} runtimes: {stated}.**"
    return _page_of(name, verdict, *limited_table(heads, rows))


def _runs_cells(result: RuntimeResult) -> tuple[str, ...]:
    conversion, support = result.conversion, result.support
    opsets: Mapping[str, int] = {}
    if conversion and conversion.support and conversion.succeeds:
        opsets, support = conversion.opsets, conversion.support
    target = ", ".join(f"{domain} {opset}" for domain, opset in opsets.items())
    notes = "; ".join((*map(_missing_text, support.missing), *support.uncertain, *support.warnings))
    return result.verdict, escape_line(target), escape_line(notes)


def _missing_text(missing: UnsupportedGroup) -> str:
    return f"{missing.reason} ({missing.remedy})" if missing.remedy else missing.reason


def fit_page(name: str, report: FitReport, imports: Mapping[str, int], result: str) -> Document:
    """Return the page about a model that was converted for a runtime.

    `imports` has the opset imports before the conversion; `result` is the text of the converted model or "".
    """
    pairs: dict[str, tuple[object, object]] = {
        domain: (imports.get(domain, ""), report.opsets.get(domain, ""))
        for domain in {**imports, **report.opsets}
    }
    pairs["IR version"] = report.all_conversions[0].ir_version[0], report.ir_version
    pairs["nodes"] = report.nodes
    rows = [(escape_line(key), *map(escape_line, values)) for key, values in pairs.items()]
    parts = [f"**{escape_line(report.runtime)} implements all nodes of the converted model.**"]
    parts.append(table(("property", "before", "after"), rows))
    for title, sentences in report.notes.items():
        parts += [f"## {title}", "\n".join(f"* {escape_line(each)}" for each in sentences)]
    changes = [part for each in report.all_conversions for part in changes_section(each)]
    sections = {"Resulting model": [code_block(result) if result else ""], "Changes": changes}
    for title, section in sections.items():
        if any(section):
            parts += [f"## {title}", *section]
    return _page_of(name, *parts)


def does_not_fit_page(name: str, error: DoesNotFit) -> Document:
    """Return the page about a model that a runtime cannot run, even after a conversion."""
    rows = [
        (escape_line(place), code_span(each.operator), escape_line(_missing_text(each)))
        for each in error.missing
        for place in each.places
    ]
    verdict = f"**No conversion makes {escape_line(error.runtime)} run the model.**"
    nearest = f"Nodes that prevent it at opset {error.opset}, which has the fewest:"
    heads = ("node", "operator", "reason and what to do")
    return _page_of(name, verdict, nearest, *limited_table(heads, rows))


def comparison_page(name: str, result: Comparison) -> Document:
    """Return the page about the changes between two versions of a model."""
    rows = []
    for each in result.changes:
        texts = each.as_dict()
        cells = (texts["rise"], each.place, each.before, each.after, texts["why"])
        rows.append(tuple(map(escape_line, cells)))
    advice = "is sufficient" if result.enough else f"must be {result.lowest} or higher"
    return _page_of(
        name,
        f"**{len(rows):,} changes. The model version {escape_line(advice)}.**",
        *limited_table(("requires", "place", "before", "after", "reason"), rows),
    )


def _page_of(title: str, *parts: str) -> Document:
    return Document("\n\n".join(filter(None, (f"# {escape_line(title)}", *parts))) + "\n")


OPTIONS: Final = '<a href="#convert-options">Options</a>'

REMEDIES: Final = (
    (r"pass <code>--allow</code> with the named deviation", f"choose the named deviation under {OPTIONS}"),
    (
        r"(?:pass |with |drop it with )?(?:<code>)?--allow ([\w-]+)(?:</code>)?(?: \(allow= in Python\))?",
        rf"choose <code>\1</code> under {OPTIONS}",
    ),
    # The name of a value may contain spaces and brackets; the limited length keeps the search linear.
    (
        r"with (?:<code>)?--shape [^<\n]{1,300}?(?:</code>)? \((?:<code>)?shapes=(?:</code>)? in Python\)"
        r"(?: of <code>opshift convert</code> or <code>opshift fit</code>)?",
        f"under {OPTIONS}",
    ),
    (r",? ?(?:or )?try (?:<code>)?--infer-shapes(?:</code>)?(?: \(infer_shapes=True\))?", ""),
)
"""Patterns of command-line options in the HTML of a report, each with the HTML that replaces them."""

CAUSE: Final = re.compile(r"<h3>(.*?)</h3>\n(.*?)(?=<h[23]|\Z)", re.DOTALL)

ALLOW: Final = re.compile(r"--allow ([\w-]+)")

MAX_ATTEMPTS: Final = 4


class Offer(TypedDict, total=False):
    """Conversion that a button of the page starts: to another target, or with allowed deviations."""

    label: str
    target: str
    allow: Sequence[str]


def with_controls(html: str) -> str:
    """Replace command-line options in a report by links to controls; fold all causes but the first."""
    for pattern, words in REMEDIES:
        html = re.sub(pattern, words, html)
    html = CAUSE.sub(r"<details><summary>\1</summary>\n\2</details>\n", html)
    return html.replace("<details>", "<details open>", 1)


def offers(
    refusals: Sequence[Refusal],
    source: int,
    allowed: Collection[str],
    refused_at: Callable[[int], Sequence[Refusal]],
) -> Iterator[Offer]:
    """Yield other conversions that may succeed after a refusal.

    Args:
        refusals: refusals of a conversion.
        source: opset of ai.onnx that the model imports.
        allowed: deviations that the refused conversion allowed.
        refused_at: returns the refusals at another opset of ai.onnx.
    """
    found = refusals
    for _ in range(MAX_ATTEMPTS):
        opset = _nearest_possible_opset(found)
        if opset in (0, source):
            break
        found = refused_at(opset)
        if not found:
            yield {"label": f"Convert to opset {opset} instead", "target": str(opset)}
            break
    deviations = sorted({name for each in refusals for name in ALLOW.findall(each.remedy)} - {*allowed})
    if deviations and all(ALLOW.search(each.remedy) for each in refusals):
        yield {"label": f"Allow {', '.join(deviations)}", "allow": deviations}


def _nearest_possible_opset(refusals: Sequence[Refusal]) -> int:
    """Return the opset nearest to the target to which all refused nodes may be converted; 0 if unknown."""
    if not all(each.nearest and each.domain == DEFAULT_DOMAIN for each in refusals):
        return 0
    numbers = [each.nearest for each in refusals]
    return max(numbers) if min(numbers) > refusals[0].target else min(numbers)
