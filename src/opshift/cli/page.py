"""Text on stdout or stderr: bare columns here; tables and colour, in `terminal`, where somebody watches."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence

import typer

from opshift.cli.output import Column, visible

PROSE_WIDTH = 100
GAP = "  "
FORCING = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""What the environment may say of a stream that is no terminal."""


class Page:
    """One answer, part by part; a row of a table is one line, whatever is in it."""

    def __init__(self, *, on_stderr: bool = False) -> None:
        self._on_stderr = on_stderr

    def title(self, text: str) -> None:
        """What the whole page, or its first part, is about."""
        self.line(text, style="bold")

    def heading(self, text: str) -> None:
        """An empty line, and the title of what follows."""
        self.blank()
        self.title(text)

    def blank(self) -> None:
        """An empty line."""
        self._echo("")

    def line(self, text: str, style: str = "") -> None:
        """One line, however long."""
        self._echo(visible(text))

    def prose(self, text: str, indent: int = 0, style: str = "") -> None:
        """A paragraph, wrapped."""
        margin = " " * indent
        lines = textwrap.wrap(
            visible(text),
            PROSE_WIDTH,
            initial_indent=margin,
            subsequent_indent=margin,
            break_on_hyphens=False,
        )
        self._echo("\n".join(lines))

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
        """A table, with its headings if it has any."""
        headings = [column.heading for column in columns]
        cells = [[visible(str(cell)) for cell in row] for row in rows]
        self._columns([headings, *cells] if any(headings) else cells, [each.is_number for each in columns])

    def facts(self, facts: Mapping[str, object]) -> None:
        """Names and values, a line each."""
        self._columns([[visible(str(cell)) for cell in fact] for fact in facts.items()], [False, False])

    def _columns(self, rows: list[list[str]], are_numbers: Sequence[bool]) -> None:
        widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            fills = [" " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
            padded = [
                fill + cell if is_number else cell + fill
                for cell, fill, is_number in zip(row, fills, are_numbers, strict=True)
            ]
            lines.append(GAP.join(padded).rstrip())
        self._echo("\n".join(lines))

    def _echo(self, text: str) -> None:
        typer.echo(text, err=self._on_stderr)


def page_for(*, on_stderr: bool = False) -> Page:
    """The page for who is at the other end of a stream."""
    stream = sys.stderr if on_stderr else sys.stdout
    if stream.isatty() or any(each in os.environ for each in FORCING):
        from opshift.cli.terminal import TerminalPage, console_for

        console = console_for(on_stderr=on_stderr)
        if console.is_terminal:
            return TerminalPage(console)
    return Page(on_stderr=on_stderr)


def _width(text: str) -> int:
    """How many cells a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
