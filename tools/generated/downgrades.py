"""docs/downgrades.md: how every operator version goes down, or why it does not."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from opshift.adapters.table import Adapter, Pair, adapter_table
from opshift.cli.history import Answered, Entry, history
from opshift.registry.catalogue import default_registry

PAGE: Final = Path("docs", "downgrades.md")
HEAD: Final = """<!-- Written by tools/generate.py -->
# Downgrades

How a node of each operator version is expressed in the version before it, or, where the operator is
new, by others. Longer ways down are made of these steps; what a step emits takes steps of its own.

| how | meaning |
|---|---|
| derived | the versions differ by element types alone: a node stays as it is; types that the older version lacks are cast to wider ones where the result is the same, and refused otherwise |
| compatible | a node stays as it is |
| declared | a small rewrite that both definitions can check |
| adapter | a function rewrites the node, and refuses what has no exact form; where it *may be approximate*, that has to be allowed |
| refused | there is no way |

"""


def files() -> Mapping[Path, str]:
    """The page."""
    return {PAGE: _page()}


def _page() -> str:
    counts: Counter[str] = Counter()
    parts = []
    for domain in default_registry().domains():
        rows = [
            row
            for operator in default_registry().operators(domain)
            for row in _rows(history(operator), counts)
        ]
        if rows:
            table = ["| operator version | goes to | how | what happens |", "|---|---|---|---|", *rows]
            parts.append("\n".join([f"## {domain}", "", *table]))
    total = ", ".join(f"{count} {how}" for how, count in counts.most_common())
    return HEAD + f"{sum(counts.values())} steps: {total}.\n\n" + "\n\n".join(parts) + "\n"


def _rows(entries: Iterator[Entry], counts: Counter[str]) -> Iterator[str]:
    for entry in entries:
        version = entry.version
        if entry.down is not None and entry.before is not None:
            yield _row(str(version.id), str(entry.before.id), entry.down, _is_approximate(entry), counts)
        if entry.arriving is not None:
            to = f"others, at {version.since_version - 1}"
            yield _row(str(version.id), to, entry.arriving, _is_approximate(entry), counts)


def _row(version: str, to: str, answer: Answered, is_approximate: bool, counts: Counter[str]) -> str:
    counts[answer.how] += 1
    detail = answer.detail.partition(": ")[2] if answer.how == "adapter" else answer.detail
    detail = f"{detail} *May be approximate.*" if is_approximate else detail
    return f"| {version} | {to} | {answer.how} | {detail.replace('|', chr(92) + '|')} |"


def _is_approximate(entry: Entry) -> bool:
    version = entry.version
    opset = entry.before.since_version if entry.before else version.since_version - 1
    function = adapter_table().get(Pair(version.domain, version.name, version.since_version, opset))
    return function is not None and _concedes(function)


def _concedes(function: Adapter) -> bool:
    module = inspect.getmodule(function)
    return module is not None and 'concede("approximate"' in inspect.getsource(function)
