"""What a command prints: text for people, plain where nobody watches, or one JSON document."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from opshift.cli.options import Format

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PROSE_WIDTH = 100
UNBOUNDED_WIDTH = 1_000_000
"""The width of text that no terminal shows: a row of a table is one line, whatever is in it."""


class Column(NamedTuple):
    """A column of a table: its heading, whether it holds numbers, and its style in a terminal."""

    heading: str
    is_number: bool = False
    style: str = ""


class Page:
    """Text on stdout or stderr; colours and rules in a terminal, bare columns elsewhere."""

    def __init__(self, *, on_stderr: bool = False) -> None:
        self._console = _console(on_stderr)
        self._on_stderr = on_stderr
        self._is_terminal = self._console.is_terminal

    def title(self, text: str) -> None:
        """What the whole page, or its first part, is about."""
        self.line(text, style="bold")

    def heading(self, text: str) -> None:
        """An empty line, and the title of what follows."""
        self.blank()
        self.line(text, style="bold")

    def blank(self) -> None:
        """An empty line."""
        self._print("")

    def line(self, text: str, style: str = "") -> None:
        """One line, however long."""
        from rich.text import Text

        self._print(Text(visible(text), style=style))

    def prose(self, text: str, indent: int = 0, style: str = "") -> None:
        """A paragraph, wrapped."""
        from rich.padding import Padding
        from rich.text import Text

        width = min(PROSE_WIDTH, self._console.width)
        self._print(Padding(Text(visible(text), style=style), (0, 0, 0, indent), expand=False), width)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
        """A table; names are folded if the terminal is narrow, never cut off."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(
            box=box.SIMPLE_HEAD if self._is_terminal else None,
            pad_edge=False,
            padding=(0, 2, 0, 0) if not self._is_terminal else (0, 1),
            show_edge=False,
            show_header=any(column.heading for column in columns),
        )
        for column in columns:
            justify: Any = "right" if column.is_number else "left"
            table.add_column(column.heading, justify=justify, style=column.style, overflow="fold")
        for row in rows:
            table.add_row(*(Text(visible(str(cell))) for cell in row))
        self._print(table)

    def facts(self, facts: Mapping[str, object]) -> None:
        """Names and values, a line each."""
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim")
        grid.add_column(overflow="fold")
        for name, value in facts.items():
            grid.add_row(Text(name), Text(visible(str(value))))
        self._print(grid)

    def _print(self, renderable: RenderableType, width: int | None = None) -> None:
        if self._is_terminal:
            self._console.print(renderable, width=width)
            return
        with self._console.capture() as captured:
            self._console.print(renderable, width=width)
        lines = captured.get().splitlines()
        typer.echo("\n".join(line.rstrip() for line in lines), err=self._on_stderr)


def emit(form: Format, data: Mapping[str, Any], write: Callable[[Page], None]) -> None:
    """Answer in the wanted form."""
    if form is Format.JSON:
        typer.echo(json.dumps(_plain(data), indent=2, allow_nan=False))
    else:
        write(Page())


@contextmanager
def working(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Say what is being done, on stderr, while it lasts and if somebody watches."""
    import sys

    if quiet or not sys.stderr.isatty():
        yield
        return
    with _console(on_stderr=True).status(visible(what)):
        yield


def visible(text: str) -> str:
    """The text with its control characters spelled out, so that a name cannot steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(count: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _console(on_stderr: bool) -> Console:
    from rich.console import Console

    console = Console(stderr=on_stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console = Console(
            stderr=on_stderr, markup=False, emoji=False, highlight=False, width=UNBOUNDED_WIDTH, no_color=True
        )
    return console


def _plain(value: Any) -> Any:
    """What JSON can hold; it has no number for infinity and NaN."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)
