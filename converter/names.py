"""Names for new values, so that one clashes with none, in any graph of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property


class Names:
    """The names of one model's values: a set for each graph and function, and those made up since."""

    def __init__(self) -> None:
        self.sets: list[set[str]] = []
        """What the survey of the model found; complete before a new name is asked for."""
        self.mentions: list[Callable[[], Iterable[str]]] = []
        """What gives names that a model says something about, be they of values or of none."""
        self.made: set[str] = set()
        self._next: dict[str, int] = {}

    @cached_property
    def _taken(self) -> set[str]:
        return set().union(*self.sets, *(names() for names in self.mentions))

    def fresh(self, hint: str) -> str:
        """A name that starts with `hint` and that no value of the model has."""
        number = self._next.get(hint, 0)
        name = f"{hint}_{number}" if number else hint
        while name in self._taken or name in self.made:
            number += 1
            name = f"{hint}_{number}"
        self._next[hint] = number + 1
        self.made.add(name)
        return name
