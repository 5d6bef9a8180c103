"""The quick tests draw the same cases on every machine, and the full tests run the others."""

from __future__ import annotations

from typing import Any, cast

import pytest
from support.quick_tests import MAX_QUICK_CASES, slow_cases


class Item:
    """Case of a test function, with the methods of `pytest.Item` that are called."""

    def __init__(self, nodeid: str, *markers: pytest.Mark) -> None:
        self.nodeid = nodeid
        self._markers = {each.name: each for each in markers}

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self._markers.get(name)


@pytest.mark.parametrize(
    ("count", "markers", "quick"),
    [
        (1, (), 1),
        (MAX_QUICK_CASES, (), MAX_QUICK_CASES),
        (100, (), MAX_QUICK_CASES),
        (100, (pytest.mark.every_case.mark,), 100),
        (100, (pytest.mark.some_cases(3).mark,), 3),
        (2, (pytest.mark.some_cases(3).mark,), 2),
        (100, (pytest.mark.every_case.mark, pytest.mark.some_cases(40).mark), 40),
        (100, (pytest.mark.full.mark,), 100),  # marked already
    ],
)
def test_draws_cases(count: int, markers: tuple[pytest.Mark, ...], quick: int) -> None:
    items = [Item(f"test_a.py::test[{number}]", *markers) for number in range(count)]
    slow = list(slow_cases(cast("Any", items)))
    assert len(items) - len(slow) == quick
    assert slow == list(slow_cases(cast("Any", items)))


def test_functions_are_drawn_apart() -> None:
    items = [Item(f"test_a.py::test_{name}[{number}]") for name in "ab" for number in range(20)]
    slow = [each.nodeid for each in slow_cases(cast("Any", items))]
    counts = [sum(f"test_{name}[" in each for each in slow) for name in "ab"]
    assert counts == [20 - MAX_QUICK_CASES] * 2
