"""Output of the commands: text or one JSON document."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import typer

from opshift.cli.options import PLAIN_FORMATS, Format
from opshift.cli.page import Page, displayable_json
from opshift.cli.paths import DASH
from opshift.model.atomic_files import write_destination, write_files
from opshift.model.errors import UsageError
from opshift.model.plain_data import json_values

MAX_OPERATORS = 3
"""Maximum number of operators in one cell of a table."""

FORCE_TERMINAL_VARIABLES = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Environment variables that make rich treat any stream as a terminal."""


def page_for(*, on_stderr: bool = False) -> Page:
    """Return a `TerminalPage` if the stream is a terminal, else a `Page`."""
    stream = sys.stderr if on_stderr else sys.stdout
    # rich determines this, but is slow to import: ask rich only if the stream may be a terminal
    if stream.isatty() or any(each in os.environ for each in FORCE_TERMINAL_VARIABLES):
        from opshift.cli.terminal import TerminalPage, console_for

        console = console_for(on_stderr=on_stderr)
        if console.is_terminal:
            return TerminalPage(console)
    return Page(on_stderr=on_stderr)


def print_result(
    form: Format,
    data: Mapping[str, object] | Callable[[], Mapping[str, object]],
    write: Callable[[Page], None],
    *,
    quiet: bool = False,
    on_stderr: bool = False,
) -> None:
    """Print a result as the JSON document `data`, or as text with `write` unless `quiet` is true.

    A function as `data` is called for JSON only. Raises a UsageError for the formats of findings.
    """
    if form not in PLAIN_FORMATS:
        raise UsageError("the result has no findings", place=f"--format {form}", remedy="use text or json")
    if form is Format.JSON:
        print_json(data() if callable(data) else data)
    elif not quiet:
        write(page_for(on_stderr=on_stderr))


def print_json(data: Mapping[str, object]) -> None:
    """Print one JSON document in ASCII, which any encoding of stdout can represent."""
    typer.echo(displayable_json(json_values(data), indent=2))


def write_out(out: Path | None, content: bytes, *, force: bool) -> None:
    """Write to OUT, or to stdout for `None` or `-`; raise a UsageError if OUT exists and `force` is false."""
    if out is None or str(out) == DASH:
        typer.get_binary_stream("stdout").write(content)
        return
    place = write_destination(out)
    if place.exists() and not force:
        raise UsageError("already exists", place=str(out), remedy="replace it with --force")
    write_files({place: content}, new=() if force else (place,))
