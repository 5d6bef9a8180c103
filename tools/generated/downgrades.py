"""Generator of docs/downgrades.md: the downgrade of every operator version, or the reason for its refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from opshift.catalogue.history import METHODS, HistoryEntry, StepSummary, history_of
from opshift.registry.registry import default_registry

PAGE: Final = Path("docs", "downgrades.md")
HEAD: Final = """<!-- Written by tools/generate.py -->
# Downgrades

The downgrade of each operator version to the previous version or, for a new operator, to other operators. A
longer downgrade applies several of these steps; emitted nodes are downgraded further.

| how | meaning |
|---|---|
"""


PATHS: Final = (PAGE,)


def files() -> Mapping[Path, str]:
    """Return the page."""
    return {PAGE: _page_text()}


def _page_text() -> str:
    counts: Counter[str] = Counter()
    parts = []
    for domain in default_registry().domains():
        rows = [
            row
            for operator in default_registry().operators(domain)
            for row in _downgrade_rows(history_of(operator), counts)
        ]
        if rows:
            table = ["| operator version | target | how | rewrite |", "|---|---|---|---|", *rows]
            parts.append("\n".join([f"## {domain}", "", *table]))
    total = ", ".join(f"{count} {how}" for how, count in counts.most_common())
    methods = "".join(f"| {how} | {meaning} |\n" for how, meaning in METHODS.items())
    return HEAD + methods + f"\n{sum(counts.values())} steps: {total}.\n\n" + "\n\n".join(parts) + "\n"


def _downgrade_rows(entries: Iterator[HistoryEntry], counts: Counter[str]) -> Iterator[str]:
    for entry in entries:
        version = entry.version
        if entry.down is not None and entry.before is not None:
            yield _downgrade_row(str(version.id), str(entry.before.id), entry.down, counts)
        if entry.arriving is not None:
            opset = version.since_version - 1
            to = f"other operators, opset {opset}" if opset else "operators of other domains"
            yield _downgrade_row(str(version.id), to, entry.arriving, counts)


def _downgrade_row(version: str, to: str, answer: StepSummary, counts: Counter[str]) -> str:
    counts[answer.how] += 1
    bound = f" *May be approximate: the error is {answer.error}.*" if answer.error else ""
    detail = answer.description + bound
    return f"| {version} | {to} | {answer.how} | {detail.replace('|', chr(92) + '|')} |"
