"""Markdown as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a heading and its content; nothing if all lines are empty."""
    listed = list(lines)
    if any(listed):
        yield from ("", f"## {title}", "", *listed)


def paragraphs(text: str) -> list[str]:
    """Return a text followed by an empty line; nothing if the text is empty."""
    return [text.strip(), ""] if text.strip() else []


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table; no lines if there are no rows."""
    listed = [_row(row) for row in rows]
    return [_row(heads), _row(["---"] * len(heads)), *listed] if listed else []


def cell(value: object) -> str:
    """Return a value as text for a table cell: on one line, with `|` escaped."""
    return " ".join(str(value).split()).replace("|", "\\|")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
