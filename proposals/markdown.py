"""Markdown, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """A heading and what stands under it; nothing if that is nothing."""
    listed = list(lines)
    if any(listed):
        yield from ("", f"## {title}", "", *listed)


def paragraphs(text: str) -> list[str]:
    """A text, and an empty line behind it."""
    return [text.strip(), ""] if text.strip() else []


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; no lines at all without rows."""
    listed = [_row(row) for row in rows]
    return [_row(heads), _row(["---"] * len(heads)), *listed] if listed else []


def cell(value: object) -> str:
    """A value on one line, which does not end the cell that it is in."""
    return " ".join(str(value).split()).replace("|", "\\|")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
