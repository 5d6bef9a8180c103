"""What a benchmark found: tables of figures, some held against a bar, and curves for the plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Bar(NamedTuple):
    """A figure and the bar that it is held against."""

    value: float
    limit: float
    unit: str = ""
    is_least: bool = False
    """Whether the figure is to be no less; otherwise it is to be no more."""

    @property
    def is_met(self) -> bool:
        """Whether it is."""
        return self.value >= self.limit if self.is_least else self.value <= self.limit

    def __str__(self) -> str:
        sign, verdict = "≥" if self.is_least else "≤", "met" if self.is_met else "NOT met"
        return f"**{short(self.value)}{self.unit}** ({sign} {self.limit:g}{self.unit}: {verdict})"


def at_least(value: float, limit: float, unit: str = "") -> Bar:
    """A figure that is to be `limit` or more."""
    return Bar(value, limit, unit, is_least=True)


def at_most(value: float, limit: float, unit: str = "") -> Bar:
    """A figure that is to be `limit` or less."""
    return Bar(value, limit, unit)


Cell = str | Bar
NOTHING = "-"


@dataclass(frozen=True)
class Table:
    """Figures, a row for each thing that was measured, the most telling column first."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def __str__(self) -> str:
        ruler = [":--", *["--:"] * (len(self.columns) - 1)]
        lines = [_line(self.columns), _line(ruler), *map(_line, self.rows)]
        return "\n".join([f"### {self.title}", "", *([self.note, ""] if self.note else []), *lines])

    def bars(self) -> Iterable[Bar]:
        """The figures that have a bar."""
        return (cell for row in self.rows for cell in row if isinstance(cell, Bar))


class Curve(NamedTuple):
    """One line of one panel of the plot."""

    panel: str
    x_label: str
    y_label: str
    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Findings:
    """All that one benchmark found."""

    tables: Sequence[Table]
    curves: Sequence[Curve] = field(default=())


def _line(cells: Sequence[Cell]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def short(value: float) -> str:
    """Three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if value is None:
        return NOTHING
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1:
            return f"{short(value * factor)} {unit}"
    return f"{short(value * 1e9)} ns"


def mebibytes(value: float | None) -> str:
    """An amount of memory in MiB."""
    return NOTHING if value is None else f"{short(value)} MiB"
