"""Text output in a terminal: tables, colours, and lines wrapped to its width."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from opshift.cli.page import PROSE_WIDTH, Column, Columns, Page, escape_control_characters, with_properties

COLUMN_GAP = 2
"""Number of spaces between two columns."""

HANGING_INDENT = 4
"""Indentation of the second and later lines of a row that is printed as a paragraph."""


class TerminalPage(Page):
    """Output of a command in a terminal. Text from models and files is never interpreted as markup."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def blank(self) -> None:
        """Print an empty line."""
        self._console.print()

    def line(self, text: str, style: str = "") -> None:
        """Print one line, folded if the terminal is narrower."""
        self._console.print(_cell(text, style))

    def prose(self, text: str, indent: int = 0, style: str = "") -> None:
        """Print a wrapped paragraph."""
        width = min(PROSE_WIDTH, self._console.width)
        self._console.print(Padding(_cell(text, style), (0, 0, 0, indent), expand=False), width=width)

    def table(self, columns: Columns, rows: Iterable[Sequence[object]]) -> None:
        """Print a table; long cells are wrapped at spaces, never truncated."""
        listed = with_properties(columns)
        headings = [column.heading for column in listed]
        cells = [[escape_control_characters(str(cell)) for cell in row] for row in rows]
        gaps = COLUMN_GAP * (len(listed) - 1)
        widths = _column_widths(listed, [headings, *cells], self._console.width - gaps)
        if widths is None:
            self._rows(listed, [headings, *cells] if any(headings) else cells)
            return
        table = Table(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_edge=False,
            show_header=any(headings),
            padding=(0, COLUMN_GAP - 1, 0, 0),
        )
        for column, width in zip(listed, widths, strict=True):
            justify: JustifyMethod = "right" if column.is_number else "left"
            table.add_column(
                column.heading, style=column.style, justify=justify, width=width, overflow="fold"
            )
        for row in cells:
            table.add_row(*map(Text, row))
        self._console.print(table)

    def _rows(self, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
        """Print each row as one paragraph: some words are too long for columns side by side."""
        for row in rows:
            filled = [Text(cell, column.style) for column, cell in zip(columns, row, strict=True) if cell]
            lines = Text("  ").join(filled).wrap(self._console, self._console.width - HANGING_INDENT)
            self._console.print(Text(f"\n{' ' * HANGING_INDENT}").join(lines))


def _column_widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], available: int
) -> list[int] | None:
    """Return widths of columns that break no word and no number; `None` if there are none."""
    longest = [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]
    least = [
        most if column.is_number else max(cell_len(word) for cell in cells for word in cell.split() or [""])
        for column, most, cells in zip(columns, longest, zip(*rows, strict=True), strict=True)
    ]
    if sum(least) > available:
        return None
    widths, spare = least.copy(), available - sum(least)
    # columns that need little get all of it, the others share the rest
    wanted = sorted(range(len(columns)), key=lambda each: longest[each] - least[each])
    for position, each in enumerate(wanted):
        added = min(longest[each] - least[each], spare // (len(columns) - position))
        widths[each] += added
        spare -= added
    return widths


def console_for(*, on_stderr: bool) -> Console:
    """Return a rich console on stdout or stderr that prints text literally."""
    return Console(stderr=on_stderr, markup=False, emoji=False, highlight=False)


def _cell(value: object, style: str = "") -> Text:
    return Text(escape_control_characters(str(value)), style=style)
