"""Fresh names for new values, unique across all graphs of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property


class FreshNames:
    """Generator of names that do not occur in a model.

    Names are unique across the model, because a name in a subgraph must not hide a value of an outer graph.
    """

    def __init__(self) -> None:
        self.name_sets: list[set[str]] = []
        """Sets of used names; complete before the first fresh name."""
        self.sources: list[Callable[[], Iterable[str]]] = []
        """Functions that return used names; they are called before the first fresh name."""
        self.created: set[str] = set()
        self._next_number: dict[str, int] = {}

    @cached_property
    def _existing(self) -> set[str]:
        return set().union(*self.name_sets, *(names() for names in self.sources))

    def fresh(self, hint: str) -> str:
        """Return an unused name that starts with `hint`."""
        number = self._next_number.get(hint, 0)
        name = f"{hint}_{number}" if number else hint
        while name in self._existing or name in self.created:
            number += 1
            name = f"{hint}_{number}"
        self._next_number[hint] = number + 1
        self.created.add(name)
        return name
