"""Table of runtimes with the numbers of models that they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opshift.analysis.runs import group_releases
from opshift.cli.page import Column, Page, number
from opshift.model.message_text import counted_labels
from opshift.runtimes.check_support import VERSION, UnsupportedGroup
from opshift.runtimes.target_runtimes import missing_label
from opshift.runtimes.verdicts import AFTER_CONVERSION, DOES_NOT_RUN, MAY_RUN, RUNS, VERDICTS

OTHER_VERSION = "an older opset or IR version"

MAX_REASONS = 2
"""Maximum number of reasons in a row."""


@dataclass
class RuntimeCount:
    """Numbers of models by verdict on one runtime, and by reason for models that do not run unchanged."""

    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def cells(self) -> tuple[str, ...]:
        """The numbers by verdict, and the most frequent reasons of the worst verdict that has reasons."""
        numbers = [f"{self.verdicts[each]:,}" if self.verdicts[each] else "" for each in VERDICTS]
        worst = next((each for each in (DOES_NOT_RUN, AFTER_CONVERSION) if self.reasons.get(each)), "")
        reasons = self.reasons[worst].most_common() if worst else []
        return (*numbers, counted_labels(reasons, MAX_REASONS))


class _Row(NamedTuple):
    runtime: str
    cells: tuple[str, ...]


class RuntimeTable:
    """Counts for each runtime, in the order of its first result."""

    def __init__(self) -> None:
        self._counts: dict[str, RuntimeCount] = {}

    def add(self, data: Mapping[str, Any]) -> None:
        """Count the verdicts on one model; `data` is its result as JSON data."""
        for each in data.get("runtimes", ()):
            count = self._counts.setdefault(each["runtime"], RuntimeCount())
            verdict = each["verdict"]
            count.verdicts[verdict] += 1
            if verdict not in (RUNS, MAY_RUN):
                count.reasons.setdefault(verdict, Counter()).update(_reasons_of(each))

    def __bool__(self) -> bool:
        return bool(self._counts)

    def write(self, page: Page) -> None:
        """Print the table; consecutive releases of a runtime with the same numbers share a row."""
        found = (_Row(name, count.cells) for name, count in self._counts.items())
        rows = group_releases(found, lambda row: row.cells)
        columns: list[Column | str] = [
            Column("runtime", "cyan"),
            *(number(each) for each in VERDICTS),
            "missing in models",
        ]
        page.table(columns, [(name, *cells) for name, cells in rows])

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {
            name: {**count.verdicts, "reasons": {each: dict(found) for each, found in count.reasons.items()}}
            for name, count in self._counts.items()
        }


def _reasons_of(result: Mapping[str, Any]) -> list[str]:
    """Return why a runtime does not run a model: missing operators, versions, or refusals."""
    conversion = result.get("conversion") or {}
    support = conversion.get("support") if result["verdict"] == DOES_NOT_RUN else None
    if result["verdict"] == DOES_NOT_RUN and conversion.get("refusals"):
        return [*dict.fromkeys(conversion["refusals"])]
    found = (support or result["support"])["missing"]
    labels = (missing_label(UnsupportedGroup(**each)) for each in found)
    return [*dict.fromkeys(OTHER_VERSION if each == VERSION else each for each in labels)]
