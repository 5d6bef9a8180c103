"""Choice of the cases that only the full tests run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

MAX_QUICK_CASES = 8
"""Number of cases of a test function in the quick tests without a marker."""


def slow_cases(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the cases that only the full tests run: the others are enough to notice an ordinary mistake.

    The choice depends on the name of the function and the number of its cases, and on nothing else.
    """
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("full") is None:
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in functions.items():
        limit = cases[0].get_closest_marker("some_cases")
        if limit is None and cases[0].get_closest_marker("every_case"):
            continue
        wanted = limit.args[0] if limit else MAX_QUICK_CASES
        yield from random.Random(name).sample(cases, len(cases) - min(wanted, len(cases)))
