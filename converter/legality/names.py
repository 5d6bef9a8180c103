"""How findings tell of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence


def repeated(kind: str, names: Iterable[str]) -> Iterator[str]:
    """A sentence on each name that is there more than once."""
    for each, count in Counter(names).items():
        if each and count > 1:
            yield f"{count} {kind}s are called {each!r}"


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{', '.join(map(repr, names[:3]))}{more}"
