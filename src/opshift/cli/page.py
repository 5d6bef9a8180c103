"""Plain text output on stdout or stderr; `TerminalPage` adds colours and wraps tables."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import typer

from opshift.model.locations import json_without_secrets, without_secrets


class Column(NamedTuple):
    """Table column: its heading, its style in a terminal, and whether it contains numbers."""

    heading: str
    style: str = ""
    is_number: bool = False


def number(heading: str) -> Column:
    """Return a column of numbers."""
    return Column(heading, is_number=True)


Columns = Sequence[Column | str]
"""Columns of a table; a string is the heading of a column of text without a style."""


def with_properties(columns: Columns) -> list[Column]:
    """Return the columns, with a `Column` in place of each plain heading."""
    return [each if isinstance(each, Column) else Column(each) for each in columns]


# Start of a command that GitHub Actions or Azure Pipelines would execute: `::` at the start of a line, or
# `##[` or `##vso[` anywhere.
_LOG_COMMAND = re.compile(r"^(\s*+)::|##(?=(?:vso)?\[)")


def displayable(text: str) -> str:
    """Escape a text for one line of output: names in models may be malicious.

    Control characters, line breaks and characters that change the direction of text are escaped, so that a
    name cannot control the terminal. Commands of CI systems are escaped, too. Credentials in URLs are hidden.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return _LOG_COMMAND.sub(_escape_command, without_secrets(text))


def _escape_command(match: re.Match[str]) -> str:
    return r"#\x23" if match[0] == "##" else rf"{match[1]}\x3a:"


def displayable_json(
    data: object, *, indent: int | None = None, separators: tuple[str, str] | None = None
) -> str:
    """Return JSON in ASCII whose strings contain neither credentials in URLs nor commands of CI systems."""
    return json_without_secrets(data, indent=indent, separators=separators).replace("##", r"#\u0023")


PROSE_WIDTH = 100
"""Maximum width of paragraphs, in characters."""


class Page:
    """Plain text output of a command. Each row of a table is one line, so that other programs can read it."""

    is_terminal = False

    def __init__(self, *, on_stderr: bool = False) -> None:
        self._on_stderr = on_stderr

    def title(self, text: str) -> None:
        """Print the title of the page."""
        self.line(text, style="bold")

    def heading(self, text: str) -> None:
        """Print an empty line and the title of a section."""
        self.blank()
        self.title(text)

    def blank(self) -> None:
        """Print an empty line."""
        self._print_line("")

    def line(self, text: str, style: str = "") -> None:
        """Print one line without wrapping it."""
        self._print_line(displayable(text))

    def prose(self, text: str, indent: int = 0, style: str = "") -> None:
        """Print a wrapped paragraph."""
        margin = " " * indent
        lines = textwrap.wrap(
            displayable(text),
            PROSE_WIDTH,
            initial_indent=margin,
            subsequent_indent=margin,
            break_on_hyphens=False,
        )
        self._print_line("\n".join(lines))

    def table(self, columns: Columns, rows: Iterable[Sequence[object]]) -> None:
        """Print a table, with a heading row if any column has a heading."""
        lines = [[displayable(str(cell)) for cell in row] for row in rows]
        listed = with_properties(columns)
        headings = [column.heading for column in listed]
        if any(headings):
            lines.insert(0, headings)
        widths = [max(map(_width_in_cells, cells)) for cells in zip(*lines, strict=True)]
        for line in lines:
            padded = []
            for column, cell, width in zip(listed, line, widths, strict=True):
                fill = " " * (width - _width_in_cells(cell))
                padded.append(fill + cell if column.is_number else cell + fill)
            self._print_line("  ".join(padded).rstrip())

    def facts(self, facts: Mapping[str, object]) -> None:
        """Print pairs of names and values, one pair per line."""
        self.table(("", ""), facts.items())

    def _print_line(self, text: str) -> None:
        typer.echo(text, err=self._on_stderr)


def _width_in_cells(text: str) -> int:
    if text.isascii():  # the usual case, which avoids the slow import of rich
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
