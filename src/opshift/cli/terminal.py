"""Text in a terminal: tables, colour, and no line wider than it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from opshift.cli.output import Column, visible
from opshift.cli.page import PROSE_WIDTH, Page


class TerminalPage(Page):
    """One answer, part by part; what comes from models and files is never read as markup."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def blank(self) -> None:
        """An empty line."""
        self._console.print()

    def line(self, text: str, style: str = "") -> None:
        """One line, which is folded if the terminal is narrow."""
        self._console.print(_cell(text, style))

    def prose(self, text: str, indent: int = 0, style: str = "") -> None:
        """A paragraph, wrapped."""
        width = min(PROSE_WIDTH, self._console.width)
        self._console.print(Padding(_cell(text, style), (0, 0, 0, indent), expand=False), width=width)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
        """A table; text is folded if the terminal is narrow, never cut off."""
        table = Table(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_edge=False,
            show_header=any(column.heading for column in columns),
        )
        for column in columns:
            table.add_column(
                column.heading,
                justify="right" if column.is_number else "left",
                style=column.style,
                overflow="fold",
            )
        for row in rows:
            table.add_row(*map(_cell, row))
        self._console.print(table)

    def facts(self, facts: Mapping[str, object]) -> None:
        """Names and values, a line each."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim")
        grid.add_column(overflow="fold")
        for fact in facts.items():
            grid.add_row(*map(_cell, fact))
        self._console.print(grid)


def console_for(*, on_stderr: bool) -> Console:
    """The console of a stream."""
    return Console(stderr=on_stderr, markup=False, emoji=False, highlight=False)


def _cell(value: object, style: str = "") -> Text:
    return Text(visible(str(value)), style=style)
