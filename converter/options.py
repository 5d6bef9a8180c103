"""Inexact conversions that the caller allows, and their use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from opshift.model.errors import UsageError
from opshift.registry.steps import Allow

ALLOWANCE_KINDS: tuple[Allow, ...] = get_args(Allow)


class Allowances:
    """Kinds of inexact conversion that the caller allows.

    Attributes:
        used: each use of an allowance, as its kind and reason, in order.

    Raises:
        UsageError: a kind to allow does not exist.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = frozenset([allowed] if isinstance(allowed, str) else allowed)
        unknown = sorted(self._allowed - set(ALLOWANCE_KINDS))
        if unknown:
            raise UsageError(
                f"unknown allow value {unknown[0]!r}",
                remedy=f"the allowed values are {', '.join(ALLOWANCE_KINDS)}",
            )
        self.used: list[tuple[Allow, str]] = []

    def is_allowed(self, kind: Allow) -> bool:
        """Return whether a kind is allowed."""
        return kind in self._allowed

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether a kind is allowed; if so, record its use with the reason."""
        if kind not in self._allowed:
            return False
        self.used.append((kind, reason))
        return True
