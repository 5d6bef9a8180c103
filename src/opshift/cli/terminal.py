"""Text output in a terminal: tables, colours, and lines wrapped to its width."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from opshift.cli.page import PROSE_WIDTH, Columns, Page, escape_control_characters, with_properties


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
        """Print a table; long cells are folded, never truncated."""
        listed = with_properties(columns)
        has_header = any(column.heading for column in listed)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=has_header)
        for column in listed:
            justify: JustifyMethod = "right" if column.is_number else "left"
            table.add_column(column.heading, style=column.style, justify=justify, overflow="fold")
        for row in rows:
            table.add_row(*map(_cell, row))
        self._console.print(table)


def console_for(*, on_stderr: bool) -> Console:
    """Return a rich console on stdout or stderr that prints text literally."""
    return Console(stderr=on_stderr, markup=False, emoji=False, highlight=False)


def _cell(value: object, style: str = "") -> Text:
    return Text(escape_control_characters(str(value)), style=style)
