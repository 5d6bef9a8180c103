"""How a command answers: text for people or one JSON document, and what it is doing meanwhile."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from opshift.cli.options import Format

if TYPE_CHECKING:
    from opshift.cli.page import Page


class Column(NamedTuple):
    """A column of a table: its heading, whether it holds numbers, and its style in a terminal."""

    heading: str
    is_number: bool = False
    style: str = ""


def emit(form: Format, data: Mapping[str, Any], write: Callable[[Page], None]) -> None:
    """Answer in the wanted form."""
    if form is Format.JSON:
        emit_json(data)
        return
    from opshift.cli.page import page_for

    write(page_for())


def emit_error(write: Callable[[Page], None]) -> None:
    """Say something on stderr."""
    from opshift.cli.page import page_for

    write(page_for(on_stderr=True))


def emit_json(data: Mapping[str, Any]) -> None:
    """One JSON document, in ASCII, so that it is whole whatever stdout's encoding is."""
    typer.echo(json.dumps(_plain(data), indent=2, allow_nan=False))


@contextmanager
def working(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Say what is being done, on stderr, while it lasts and if somebody watches."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from opshift.cli.terminal import console_for

    with console_for(on_stderr=True).status(visible(what)):
        yield


def counted(count: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def visible(text: str) -> str:
    """The text with its control characters spelled out, so that a name cannot steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _plain(value: Any) -> Any:
    """What JSON can hold; it has no number for infinity and NaN."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)
