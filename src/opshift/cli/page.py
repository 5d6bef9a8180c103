"""Text on stdout or stderr: tables and colour where somebody watches, bare columns elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from opshift.cli.output import Column, visible

PROSE_WIDTH = 100
UNBOUNDED_WIDTH = 1_000_000
"""The width of text that no terminal shows: a row of a table is one line, whatever is in it."""


class Page:
    """One answer, part by part; what comes from models and files is never read as markup."""

    def __init__(self, *, on_stderr: bool = False) -> None:
        self._console = console_for(on_stderr)
        self._on_stderr = on_stderr
        self._is_terminal = self._console.is_terminal

    def title(self, text: str) -> None:
        """What the whole page, or its first part, is about."""
        self.line(text, style="bold")

    def heading(self, text: str) -> None:
        """An empty line, and the title of what follows."""
        self.blank()
        self.title(text)

    def blank(self) -> None:
        """An empty line."""
        self._print("")

    def line(self, text: str, style: str = "") -> None:
        """One line, however long."""
        self._print(_cell(text, style))

    def prose(self, text: str, indent: int = 0, style: str = "") -> None:
        """A paragraph, wrapped."""
        width = min(PROSE_WIDTH, self._console.width)
        self._print(Padding(_cell(text, style), (0, 0, 0, indent), expand=False), width)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
        """A table; text is folded if the terminal is narrow, never cut off."""
        table = Table(
            box=box.SIMPLE_HEAD if self._is_terminal else None,
            padding=(0, 1) if self._is_terminal else (0, 2, 0, 0),
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
        self._print(table)

    def facts(self, facts: Mapping[str, object]) -> None:
        """Names and values, a line each."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim")
        grid.add_column(overflow="fold")
        for fact in facts.items():
            grid.add_row(*map(_cell, fact))
        self._print(grid)

    def _print(self, renderable: RenderableType, width: int | None = None) -> None:
        if self._is_terminal:
            self._console.print(renderable, width=width)
            return
        with self._console.capture() as captured:
            self._console.print(renderable, width=width)
        lines = captured.get().splitlines()
        typer.echo("\n".join(line.rstrip() for line in lines), err=self._on_stderr)


def console_for(on_stderr: bool) -> Console:
    """The console of a stream; without a terminal it is as wide as any text, and has no colours."""
    console = Console(stderr=on_stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = UNBOUNDED_WIDTH
        console.no_color = True
    return console


def _cell(value: object, style: str = "") -> Text:
    return Text(visible(str(value)), style=style)
