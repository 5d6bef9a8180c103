"""Text output in a terminal: tables, colours, and lines wrapped to its width."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import gt

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from opshift.cli.page import PROSE_WIDTH, Column, Columns, Page, displayable, with_properties

COLUMN_GAP = 2
"""Number of spaces between two columns."""

HANGING_INDENT = 4
"""Indentation of the second and later lines of a row that is printed as a paragraph."""


class TerminalPage(Page):
    """Output of a command in a terminal. Text from models and files is never interpreted as markup."""

    is_terminal = True

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console

    def blank(self) -> None:
        """Print an empty line."""
        self.console.print()

    def line(self, text: str, style: str = "") -> None:
        """Print one line; if the terminal is narrower than the text, fold the line."""
        self.console.print(_cell_text(text, style))

    def prose(self, text: str, indent: int = 0, style: str = "") -> None:
        """Print a wrapped paragraph."""
        width = min(PROSE_WIDTH, self.console.width)
        self.console.print(Padding(_cell_text(text, style), (0, 0, 0, indent), expand=False), width=width)

    def table(self, columns: Columns, rows: Iterable[Sequence[object]]) -> None:
        """Print a table; wrap cells at spaces, and print rows with too long words as paragraphs."""
        listed = with_properties(columns)
        cells = [[displayable(str(cell)) for cell in row] for row in rows]
        headings = [[column.heading for column in listed]] if any(column.heading for column in listed) else []
        available = self.console.width - COLUMN_GAP * (len(listed) - 1)
        aligned = cells
        while (widths := _column_widths(listed, aligned, available)) is None and aligned:
            aligned = _without_longest_words(aligned)
        if widths is None:
            self._paragraphs(listed, [*headings, *cells])
            return
        if headings:
            self.console.print(_table_grid(listed, widths, (), has_header=True))
        for is_wide, group in groupby(cells, lambda row: any(map(gt, map(_longest_word, row), widths))):
            if is_wide:
                self._paragraphs(listed, group)
            else:
                self.console.print(_table_grid(listed, widths, group))

    def _paragraphs(self, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
        for row in rows:
            last = max((position for position, cell in enumerate(row) if cell), default=0)
            # a dash marks an empty cell, so that the next cell is not read as this cell
            filled = [
                Text(cell or "-", column.style)
                for column, cell in zip(columns, row[: last + 1], strict=False)
                if cell or column.heading
            ]
            lines = Text("  ").join(filled).wrap(self.console, self.console.width - HANGING_INDENT)
            self.console.print(Text(f"\n{' ' * HANGING_INDENT}").join(lines))


def _table_grid(
    columns: Sequence[Column],
    widths: Sequence[int],
    rows: Iterable[Sequence[str]],
    *,
    has_header: bool = False,
) -> Table:
    padding = (0, COLUMN_GAP - 1, 0, 0)
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=has_header, padding=padding
    )
    for column, width in zip(columns, widths, strict=True):
        justify: JustifyMethod = "right" if column.is_number else "left"
        heading = (
            column.heading if _longest_word(column.heading) <= width else _broken_heading(column.heading)
        )
        table.add_column(heading, style=column.style, justify=justify, width=width, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _without_longest_words(rows: Sequence[list[str]]) -> list[list[str]]:
    """Return the rows without those that have the longest words, so that the columns may fit."""
    longest = [max(map(_longest_word, row)) for row in rows]
    # Each round shortens the longest word by at least an eighth, so the search ends after a few rounds.
    return [row for row, length in zip(rows, longest, strict=True) if length <= max(longest) * 7 // 8]


def _column_widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], available: int
) -> list[int] | None:
    """Return column widths at which no word or number is broken; `None` if the terminal is too narrow."""
    longest, least = [], []
    for position, column in enumerate(columns):
        texts = [row[position] for row in rows]
        words = max(
            (cell_len(each) if column.is_number else _longest_word(each) for each in texts), default=0
        )
        longest.append(max(map(cell_len, (column.heading, *texts))))
        least.append(max(words, _longest_word(_broken_heading(column.heading))))
    if sum(least) > available:
        return None
    widths, spare = least.copy(), available - sum(least)
    # Columns that need only little more space get all of it; the others share the rest.
    wanted = sorted(range(len(columns)), key=lambda each: longest[each] - least[each])
    for position, each in enumerate(wanted):
        added = min(longest[each] - least[each], spare // (len(columns) - position))
        widths[each] += added
        spare -= added
    return widths


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _broken_heading(heading: str) -> str:
    """Break a heading after its dots, because domains are long headings of narrow columns."""
    return heading.replace(".", ".\n")


def console_for(*, on_stderr: bool) -> Console:
    """Return a rich console on stdout or stderr that prints text literally."""
    return Console(stderr=on_stderr, markup=False, emoji=False, highlight=False)


def _cell_text(value: object, style: str = "") -> Text:
    return Text(displayable(str(value)), style=style)
