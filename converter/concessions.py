"""What a caller allows that is not exact, and where use was made of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from opshift.adapters.rewriter import Concession
from opshift.converter.errors import UsageError

KINDS: tuple[Concession, ...] = get_args(Concession)


class Concessions:
    """The kinds that are allowed, and the reasons for which each was used, in order."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = frozenset([allowed] if isinstance(allowed, str) else allowed)
        unknown = sorted(self._allowed - set(KINDS))
        if unknown:
            raise UsageError(f"{unknown[0]!r} is nothing to allow", remedy=f"there are {', '.join(KINDS)}")
        self.used: list[tuple[Concession, str]] = []

    def allows(self, kind: Concession) -> bool:
        """Whether `kind` is allowed."""
        return kind in self._allowed

    def concede(self, kind: Concession, reason: str) -> bool:
        """Whether `kind` is allowed; if so, the reason is noted."""
        if kind not in self._allowed:
            return False
        self.used.append((kind, reason))
        return True
