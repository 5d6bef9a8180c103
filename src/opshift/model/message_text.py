"""Parts of texts for users: similar names, and counts with their nouns."""

import difflib
from collections.abc import Iterable, Sequence
from functools import lru_cache

from opshift.model.operator_ids import short_label

MAX_NAME = 200
"""Maximum number of characters of a name to compare: a comparison takes quadratic time."""


@lru_cache(maxsize=16)
def _spellings(names: tuple[str, ...]) -> dict[str, list[str]]:
    """Return an index of the names in lower case, by each key of `_keys`."""
    found: dict[str, list[str]] = {}
    for name in map(str.lower, names):
        for key in _keys(name):
            found.setdefault(key, []).append(name)
    return found


def _keys(name: str) -> set[str]:
    """Return the index keys of a name: the first two letters, the last two, and all letters sorted."""
    return {name[:2], name[-2:], "".join(sorted(name))}


def did_you_mean(wanted: str, names: Iterable[str], otherwise: str) -> str:
    """Return a remedy for an unknown name: the similar names, or `otherwise` if no name is similar."""
    return suggest(similar_names(wanted, names), otherwise)


def suggest(similar: Sequence[str], otherwise: str) -> str:
    """Return a remedy that suggests the names, or `otherwise` if there are none."""
    return f"did you mean {' or '.join(similar)}?" if similar else otherwise


def hint_at_similar(wanted: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'Softmax'?` with the most similar name; empty if no name is similar."""
    similar = similar_names(wanted, names)
    return f"; did you mean {similar[0]!r}?" if similar else ""


def similar_names(name: str, names: Iterable[str]) -> list[str]:
    """Return the known names `names` that resemble an unknown name, most similar first."""
    known, wanted = tuple(names), str(name)[:MAX_NAME].lower()
    # A comparison takes microseconds, and a file of 1 MB can name 30,000 unknown operators: compare only
    # names with the same start or end, or with the same letters in a different order.
    table = _spellings(known)
    candidates = dict.fromkeys(each for key in sorted(_keys(wanted)) for each in table.get(key, ()))
    similar = difflib.get_close_matches(wanted, candidates)
    return [each for close in similar for each in known if each.lower() == close]


def count_text(count: int, noun: str) -> str:
    """Return a count and its noun in the right number: `1 node`, `2 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def counted_labels(counts: Sequence[tuple[str, int]], most: int | None) -> str:
    """Join counted labels; summarize those after the first `most`: `2 Mul:14, Add:14, 3 others (9 nodes)`."""
    # A summary such as "1 other" is as long as a single further label: show the label.
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
