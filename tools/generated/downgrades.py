"""Generator of docs/downgrades.md: the downgrade of every operator version, or the reason for its refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from opshift.adapters.core.adapter_table import StepKey, error_bound
from opshift.cli.registry.operator_history import HistoryEntry, StepSummary, history_of
from opshift.registry.registry import default_registry

PAGE: Final = Path("docs", "downgrades.md")
HEAD: Final = """<!-- Written by tools/generate.py -->
# Downgrades

The downgrade of each operator version to the previous version or, for a new operator, to other operators. A
longer downgrade applies several of these steps; emitted nodes are downgraded further.

| how | meaning |
|---|---|
| derived | the versions differ only in element types, and the node is unchanged; if the older version lacks the type of a value, the node computes in a wider type if the result is the same, and is refused otherwise |
| compatible | the node is unchanged; missing types are handled as above |
| declared | a small rewrite in the definition, which is validated against both versions |
| adapter | a function rewrites the node, and refuses nodes without an exact equivalent; rewrites that *may be approximate* require `--allow approximate`, and have an error of at most the stated bound |
| refused | the node has no equivalent, for the reason in the last column |

"""


def files() -> Mapping[Path, str]:
    """Return the page."""
    return {PAGE: _page()}


def _page() -> str:
    counts: Counter[str] = Counter()
    parts = []
    for domain in default_registry().domains():
        rows = [
            row
            for operator in default_registry().operators(domain)
            for row in _rows(history_of(operator), counts)
        ]
        if rows:
            table = ["| operator version | target | how | rewrite |", "|---|---|---|---|", *rows]
            parts.append("\n".join([f"## {domain}", "", *table]))
    total = ", ".join(f"{count} {how}" for how, count in counts.most_common())
    return HEAD + f"{sum(counts.values())} steps: {total}.\n\n" + "\n\n".join(parts) + "\n"


def _rows(entries: Iterator[HistoryEntry], counts: Counter[str]) -> Iterator[str]:
    for entry in entries:
        version = entry.version
        if entry.down is not None and entry.before is not None:
            yield _row(str(version.id), str(entry.before.id), entry.down, _error(entry), counts)
        if entry.arriving is not None:
            to = f"other operators, opset {version.since_version - 1}"
            yield _row(str(version.id), to, entry.arriving, _error(entry), counts)


def _row(version: str, to: str, answer: StepSummary, error: str, counts: Counter[str]) -> str:
    counts[answer.how] += 1
    detail = answer.detail.partition(": ")[2] if answer.how == "adapter" else answer.detail
    detail = f"{detail} *May be approximate: the error is {error}.*" if error else detail
    return f"| {version} | {to} | {answer.how} | {detail.replace('|', chr(92) + '|')} |"


def _error(entry: HistoryEntry) -> str:
    version = entry.version
    opset = entry.before.since_version if entry.before else version.since_version - 1
    return error_bound(StepKey(version.domain, version.name, version.since_version, opset))
