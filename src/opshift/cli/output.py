"""Output of the commands: text or one JSON document."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import typer

from opshift.cli.options import PLAIN_FORMATS, Format
from opshift.cli.page import Page
from opshift.cli.streams import DASH
from opshift.model.errors import UsageError
from opshift.model.operator_ids import short_label
from opshift.model.plain_data import json_values

MAX_OPERATORS = 3
"""Maximum number of operators in one cell of a table."""

FORCE_TERMINAL_VARIABLES = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Environment variables that make rich treat any stream as a terminal."""


def page_for(*, on_stderr: bool = False) -> Page:
    """Return a `TerminalPage` if the stream is a terminal, else a `Page`."""
    stream = sys.stderr if on_stderr else sys.stdout
    # rich decides, but is slow to import: ask it only if the stream may be a terminal
    if stream.isatty() or any(each in os.environ for each in FORCE_TERMINAL_VARIABLES):
        from opshift.cli.terminal import TerminalPage, console_for

        console = console_for(on_stderr=on_stderr)
        if console.is_terminal:
            return TerminalPage(console)
    return Page(on_stderr=on_stderr)


def print_result(
    form: Format,
    data: Mapping[str, object],
    write: Callable[[Page], None],
    *,
    quiet: bool = False,
    on_stderr: bool = False,
) -> None:
    """Print a result as the JSON document `data`, or as text with `write` unless `quiet` is true."""
    if form not in PLAIN_FORMATS:
        raise UsageError("the result has no findings", place=f"--format {form}", remedy="use text or json")
    if form is Format.JSON:
        print_json(data)
    elif not quiet:
        write(page_for(on_stderr=on_stderr))


def print_json(data: Mapping[str, object]) -> None:
    """Print one JSON document in ASCII, which any encoding of stdout can represent."""
    typer.echo(json.dumps(json_values(data), indent=2, allow_nan=False))


def write_out(out: Path | None, content: bytes, *, force: bool) -> None:
    """Write OUT, or stdout without OUT or for `-`; raise a UsageError if it exists and `force` is false."""
    from opshift.model.atomic_files import write_destination, write_files

    if out is None or str(out) == DASH:
        typer.get_binary_stream("stdout").write(content)
        return
    place = write_destination(out)
    if place.exists() and not force:
        raise UsageError("already exists", place=str(out), remedy="replace it with --force")
    write_files({place: content}, new=() if force else (place,))


def count_text(count: int, noun: str) -> str:
    """Return a count and its noun in the right number: `1 node`, `2 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def counted_labels(counts: Sequence[tuple[str, int]], most: int | None) -> str:
    """Join labels with their numbers, `most` of them: `2 Mul:14, Add:14, 3 others (9 nodes)`."""
    # "1 other" would be as long as its label
    shown = counts[:most] if most is not None and len(counts) > most + 1 else counts
    parts = [
        short_label(label) if count == 1 else f"{count:,} {short_label(label)}" for label, count in shown
    ]
    if len(shown) < len(counts):
        rest = counts[len(shown) :]
        nodes = sum(count for _, count in rest)
        parts.append(
            f"{len(rest):,} others" if nodes == len(rest) else f"{len(rest):,} others ({nodes:,} nodes)"
        )
    return ", ".join(parts)
