"""Remedies for unknown names: the similar names that exist."""

import difflib
from collections.abc import Iterable
from functools import lru_cache

MAX_NAME = 200
"""Characters of a name that is compared with others, which takes quadratic time."""


@lru_cache(maxsize=16)
def _spellings(names: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the names in lower case by each of their keys, see `_keys`."""
    found: dict[str, list[str]] = {}
    for name in map(str.lower, names):
        for key in _keys(name):
            found.setdefault(key, []).append(name)
    return found


def _keys(name: str) -> set[str]:
    """Return the first and the last two letters of a name, and its sorted letters, which typos transpose."""
    return {name[:2], name[-2:], "".join(sorted(name))}


def did_you_mean(wanted: str, names: Iterable[str], otherwise: str) -> str:
    """Return a remedy for an unknown name: the similar names that exist, or another advice."""
    similar = similar_names(wanted, names)
    return f"did you mean {' or '.join(similar)}?" if similar else otherwise


def hint_at_similar(wanted: str, names: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: a question after the most similar one, if any."""
    similar = similar_names(wanted, names)
    return f"; did you mean {similar[0]!r}?" if similar else ""


def similar_names(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that resemble an unknown one, most similar first."""
    known, wanted = tuple(names), str(name)[:MAX_NAME].lower()
    # A comparison takes microseconds, and a file of 1 MB can name 30,000 unknown operators: compare only
    # names with the same start or end, or with the same letters.
    table = _spellings(known)
    candidates = dict.fromkeys(each for key in sorted(_keys(wanted)) for each in table.get(key, ()))
    similar = difflib.get_close_matches(wanted, candidates)
    return [each for close in similar for each in known if each.lower() == close]
