"""Reasons of findings that list names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence


def repeated(kind: str, names: Iterable[str]) -> Iterator[str]:
    """Yield a reason for each name that occurs more than once; empty names are allowed to repeat."""
    for name, count in Counter(names).items():
        if name and count > 1:
            yield f"{count} {kind}s have the name {name!r}"


def some(names: Sequence[str]) -> str:
    """Return the first three names and the number of remaining ones."""
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{', '.join(map(repr, names[:3]))}{more}"
