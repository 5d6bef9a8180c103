"""Results of a benchmark: tables of figures, some with limits, and curves for the plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Bar(NamedTuple):
    """A figure and its limit."""

    value: float
    limit: float
    unit: str = ""
    is_least: bool = False
    """Whether `limit` is a lower limit instead of an upper limit."""

    @property
    def is_met(self) -> bool:
        """Whether the figure is within the limit."""
        return self.value >= self.limit if self.is_least else self.value <= self.limit

    def __str__(self) -> str:
        sign, verdict = "≥" if self.is_least else "≤", "met" if self.is_met else "NOT met"
        return f"**{short(self.value)}{self.unit}** ({sign} {self.limit:g}{self.unit}: {verdict})"


def at_least(value: float, limit: float, unit: str = "") -> Bar:
    """Return a figure with a lower limit."""
    return Bar(value, limit, unit, is_least=True)


def at_most(value: float, limit: float, unit: str = "") -> Bar:
    """Return a figure with an upper limit."""
    return Bar(value, limit, unit)


Cell = str | Bar
NOTHING = "-"


@dataclass(frozen=True)
class Table:
    """Figures with one row for each measured case, and the most important column first."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def __str__(self) -> str:
        ruler = [":--", *["--:"] * (len(self.columns) - 1)]
        lines = [_table_row(self.columns), _table_row(ruler), *map(_table_row, self.rows)]
        return "\n".join([f"### {self.title}", "", *([self.note, ""] if self.note else []), *lines])

    def bars(self) -> Iterable[Bar]:
        """Return the figures that have a limit."""
        return (cell for row in self.rows for cell in row if isinstance(cell, Bar))


class Curve(NamedTuple):
    """Times of one tool and conversion by size, in a panel of the plot.

    A curve without a conversion is drawn as points.
    """

    panel: str
    x_label: str
    tool: str
    conversion: str
    x: Sequence[float]
    seconds: Sequence[float]


class BarChart(NamedTuple):
    """Panel of the plot with one time for each tool."""

    panel: str
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Findings:
    """Tables of one benchmark, and what the plot shows of it."""

    tables: Sequence[Table]
    plotted: Sequence[Curve | BarChart] = field(default=())


def _table_row(cells: Sequence[Cell]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def short(value: float) -> str:
    """Return a number with three significant digits, or as a whole number from 100."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def seconds(value: float | None) -> str:
    """Return a time in seconds or the largest smaller unit in which it is at least 1."""
    if value is None:
        return NOTHING
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1:
            return f"{short(value * factor)} {unit}"
    return f"{short(value * 1e9)} ns"


def mebibytes(value: float | None) -> str:
    """Return an amount of memory in MiB."""
    return NOTHING if value is None else f"{short(value)} MiB"
